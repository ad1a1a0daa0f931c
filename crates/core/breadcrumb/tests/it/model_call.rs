use rcrt_breadcrumb::{ErrorCode, ModelCall, ToolFailure, ToolFormat, ToolResponse, Violation, Violations, model_text};
use serde_json::{Map, Value, json};

use crate::object;
use crate::tool_response::request;

fn response(result: Result<Value, ToolFailure>) -> ToolResponse {
    ToolResponse::new(&request(), result, 1, Map::new(), chrono::Utc::now())
}

fn read(format: ToolFormat, call: Value) -> ModelCall {
    ModelCall::read(format, &object(call)).unwrap()
}

#[test]
fn each_format_gets_its_own_message() {
    let openai =
        json!({"id": "call_1", "type": "function", "index": 0, "function": {"name": "add", "arguments": "{\"a\": 1}"}});
    let item =
        json!({"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "add", "arguments": "{\"a\": 1}"});
    let anthropic = json!({"type": "tool_use", "id": "toolu_1", "name": "add", "input": {"a": 1}});
    let mcp = json!({"name": "add", "arguments": {"a": 1}, "_meta": {"progressToken": 1}});
    let failure = ToolFailure::new(ErrorCode::InvalidArguments, "the input does not match: /a: is required").with_details(
        json!({"violations": [{"path": "/a", "message": "is required"}, {"path": "/b", "message": "must be a number"}]}),
    );
    let error = "InvalidArguments: the input does not match: /a: is required\n/b: must be a number";
    for (format, call, good, bad) in [
        (
            ToolFormat::OpenAi,
            openai,
            json!({"role": "tool", "tool_call_id": "call_1", "content": "{\"sum\":3}"}),
            json!({"role": "tool", "tool_call_id": "call_1", "content": error}),
        ),
        (
            ToolFormat::OpenAi,
            item.clone(),
            json!({"type": "function_call_output", "call_id": "call_1", "output": "{\"sum\":3}"}),
            json!({"type": "function_call_output", "call_id": "call_1", "output": error}),
        ),
        (
            ToolFormat::OpenAiResponses,
            item,
            json!({"type": "function_call_output", "call_id": "call_1", "output": "{\"sum\":3}"}),
            json!({"type": "function_call_output", "call_id": "call_1", "output": error}),
        ),
        (
            ToolFormat::Anthropic,
            anthropic,
            json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": "{\"sum\":3}", "is_error": false}),
            json!({"type": "tool_result", "tool_use_id": "toolu_1", "content": error, "is_error": true}),
        ),
        (
            ToolFormat::Mcp,
            mcp,
            json!({"content": [{"type": "text", "text": "{\"sum\":3}"}], "structuredContent": {"sum": 3}, "isError": false}),
            json!({"content": [{"type": "text", "text": error}], "isError": true}),
        ),
    ] {
        let call = read(format, call);
        assert_eq!((call.name.as_str(), &call.input), ("add", &Ok(json!({"a": 1}))), "{format}");
        assert_eq!(call.message(&response(Ok(json!({"sum": 3})))), good, "{format}");
        assert_eq!(call.message(&response(Err(failure.clone()))), bad, "{format}");
    }
}

#[test]
fn a_message_names_each_violation_once_up_to_a_bound() {
    let violations =
        |count: usize| (0..count).map(|n| Violation::new(format!("f{n}"), "is required")).collect::<Vec<_>>();
    assert_eq!(Violations::listed(&violations(2)), "f0: is required; f1: is required");
    let listed = Violations::listed(&violations(13));
    assert!(listed.ends_with("f9: is required; and 3 more"), "{listed}");
    let failure =
        ToolFailure::new(ErrorCode::InvalidArguments, listed).with_details(json!({"violations": violations(13)}));
    let message = read(ToolFormat::Anthropic, json!({"type": "tool_use", "id": "t", "name": "a"})).failure(&failure);
    let text = message["content"].as_str().unwrap();
    for n in 0..13 {
        assert_eq!(text.matches(&format!("f{n}: is required")).count(), 1, "{text}");
    }
}

/// A model has no other way to learn it. The output itself is unchanged.
#[test]
fn a_notice_follows_the_text() {
    let call = read(ToolFormat::Mcp, json!({"name": "run"}));
    let with_notice = |result: Result<Value, ToolFailure>| ToolResponse {
        metadata: object(json!({"notice": "Python 3.11.2 ran the script"})),
        ..response(result)
    };
    let good = call.message(&with_notice(Ok(json!({"n": 1}))));
    assert_eq!(good["content"][0]["text"], "{\"n\":1}\n[Python 3.11.2 ran the script]");
    assert_eq!(good["structuredContent"], json!({"n": 1}));
    let bad = call.message(&with_notice(Err(ToolFailure::new(ErrorCode::ExecutionFailed, "it failed"))));
    assert_eq!(bad["content"][0]["text"], "ExecutionFailed: it failed\n[Python 3.11.2 ran the script]");
}

#[test]
fn arguments_can_be_missing_and_are_reported_if_they_are_not_json() {
    let call = |arguments: Value| {
        read(ToolFormat::OpenAi, json!({"id": "c", "function": {"name": "now", "arguments": arguments}})).input
    };
    assert_eq!(call(json!("")), Ok(json!({})));
    assert_eq!(call(json!({"a": 1})), Ok(json!({"a": 1})));
    assert!(call(json!("{\"a\": ")).unwrap_err().starts_with("the arguments are not valid JSON: EOF"));
    let large = call(json!("{\"m\": 123456789012345678901234567890}")).unwrap_err();
    assert_eq!(
        large,
        "the arguments cannot be read: m: is the number 123456789012345678901234567890, which has more than 64 bits; \
         send it as a string"
    );
    assert_eq!(call(json!("{\"m\": 18446744073709551615}")), Ok(json!({"m": u64::MAX})));
    for format in [ToolFormat::Anthropic, ToolFormat::Mcp] {
        assert_eq!(read(format, json!({"id": "c", "name": "now"})).input, Ok(json!({})));
    }
}

#[test]
fn other_shapes_are_refused_with_the_field() {
    for (format, call, field) in [
        (ToolFormat::OpenAi, json!({"function": {"name": "a"}}), "id"),
        (ToolFormat::OpenAi, json!({"id": "c"}), "function"),
        (ToolFormat::OpenAi, json!({"id": "c", "function": {"arguments": "{}"}}), "function.name"),
        (ToolFormat::OpenAi, json!({"id": "c", "function": {"name": "a", "arguments": 7}}), "function.arguments"),
        (ToolFormat::OpenAiResponses, json!({"id": "c", "function": {"name": "a"}}), "call_id"),
        (ToolFormat::OpenAiResponses, json!({"type": "message", "call_id": "c", "name": "a"}), "type"),
        (ToolFormat::Anthropic, json!({"type": "text", "text": "hello"}), "type"),
        (ToolFormat::Anthropic, json!({"type": "tool_use", "name": "a"}), "id"),
        (
            ToolFormat::Mcp,
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "a"}}),
            "params",
        ),
        (ToolFormat::Mcp, json!({"arguments": {}}), "name"),
        (ToolFormat::Rcrt, json!({"input": {}}), "format"),
    ] {
        let found = ModelCall::read(format, &object(call.clone())).unwrap_err();
        assert_eq!(found.0[0].field, field, "{format} {call}");
    }
}

#[test]
fn a_model_reads_texts_unchanged_and_the_index_of_a_large_result() {
    assert_eq!(model_text(&json!("a \"text\"")), "a \"text\"");
    assert_eq!(model_text(&json!(null)), "null");
    let large = json!({"type": "large_result", "text": "| # |", "kind": "json", "characters": 9, "truncated": false, "parts": 2});
    assert_eq!(model_text(&large), "| # |");
    let mcp = read(ToolFormat::Mcp, json!({"name": "run"})).message(&response(Ok(large)));
    assert_eq!(mcp, json!({"content": [{"type": "text", "text": "| # |"}], "isError": false}));
    let similar = json!({"type": "large_result"});
    assert_eq!(model_text(&similar), similar.to_string());
}
