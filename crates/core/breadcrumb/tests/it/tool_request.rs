use rcrt_breadcrumb::{NewBreadcrumb, ToolRequest};
use serde_json::{Value, json};

use crate::object;

#[test]
fn request_record_has_documented_tags_and_context() {
    let record = ToolRequest::record("echo", json!({"a": 1}), Some("r-1"), Some("workspace:w"));
    assert_eq!(record.tags, ["tool:request", "workspace:w"]);
    assert_eq!(record.schema_name.as_deref(), Some("tool.request.v1"));
    assert_eq!(record.context, object(json!({"tool": "echo", "input": {"a": 1}, "requestId": "r-1"})));
    assert!(record.check().is_ok());
}

#[test]
fn a_request_with_a_misspelled_schema_name_is_refused() {
    let mut record = ToolRequest::record("echo", json!({}), None, None);
    for name in [Some("tool.request"), Some("Tool.Request.v1"), Some("tool.request.v2"), Some("tool-requests.v1"), None]
    {
        record.schema_name = name.map(str::to_owned);
        let found = ToolRequest::check_spelling(&record).unwrap_err();
        assert_eq!(found.to_string(), "schema_name: must be tool.request.v1 in a request; no tool is called otherwise");
    }
    for name in ["tool.create.request.v1", "note.v1", "tool.response.v1"] {
        record.schema_name = Some(name.into());
        assert!(ToolRequest::check_spelling(&record).is_ok(), "{name}");
    }
    let note = NewBreadcrumb { title: "a note".into(), ..NewBreadcrumb::default() };
    assert!(ToolRequest::check_spelling(&note).is_ok());
}

#[test]
fn a_request_to_create_a_tool_with_another_schema_name_is_refused() {
    let context = object(json!({"tool_spec": {"name": "x"}}));
    for name in [Some("tool.create.v1"), Some("tool.create.request"), Some("tool.create.requst.v1"), None] {
        let schema_name = name.map(str::to_owned);
        let record = NewBreadcrumb { schema_name, context: context.clone(), ..NewBreadcrumb::default() };
        let found = ToolRequest::check_spelling(&record).unwrap_err().to_string();
        assert!(found.starts_with("schema_name: must be tool.create.request.v1"), "{name:?}: {found}");
    }
    for name in ["tool.create.request.v1", "draft.v1"] {
        let schema_name = Some(name.to_owned());
        let record = NewBreadcrumb { schema_name, context: context.clone(), ..NewBreadcrumb::default() };
        assert!(ToolRequest::check_spelling(&record).is_ok(), "{name}");
    }
}

#[test]
fn request_id_invalid_as_a_tag_is_refused() {
    for id in [json!(""), json!(7), json!("x".repeat(181)), json!("a\u{0}")] {
        let found = ToolRequest::check(&object(json!({"tool": "echo", "requestId": id}))).unwrap_err();
        assert_eq!(found.0[0].field, "context.requestId", "{id}");
    }
}

#[test]
fn each_problem_of_a_request_is_named_once() {
    let record = ToolRequest::record("echo", json!({}), Some("a\u{0}"), None);
    let found = record.check().unwrap_err().to_string();
    assert_eq!(found, "context.requestId: contains a NUL character (U+0000), which cannot be stored");
}

#[test]
fn debug_is_true_or_false() {
    for (debug, is_debugged) in [(json!(true), true), (json!(false), false), (json!(null), false)] {
        let context = object(json!({"tool": "echo", "debug": debug}));
        ToolRequest::check(&context).unwrap();
        assert_eq!(ToolRequest::is_debugged(&context), is_debugged);
    }
    for debug in [json!("true"), json!(1), json!({})] {
        let found = ToolRequest::check(&object(json!({"tool": "echo", "debug": debug}))).unwrap_err();
        assert_eq!((&*found.0[0].field, &*found.0[0].message), ("context.debug", "must be true or false"), "{debug}");
    }
}

#[test]
fn misspelled_fields_are_refused_with_the_intended_one() {
    for (key, meant) in [
        ("args", "input"),
        ("arguments", "input"),
        ("request_id", "requestId"),
        ("requestID", "requestId"),
        ("session_id", "session"),
        ("maxResultChars", "max_result_chars"),
        ("timeout_ms", "deadline_ms"),
        ("tol", "tool"),
        ("tool_version", "version"),
        ("definitionHash", "definition_hash"),
    ] {
        let found = ToolRequest::check_spelling(&request(json!({"tool": "echo", key: "x"}))).unwrap_err();
        assert_eq!(found.0[0].field, format!("context.{key}"));
        assert!(found.0[0].message.ends_with(&format!("did you mean {meant}?")), "{found:?}");
    }
    let found = ToolRequest::check_spelling(&request(json!({"tool": "echo", "workspace": "one"}))).unwrap_err();
    assert!(found.0[0].message.contains("the tag workspace:"), "{found:?}");
    let found = ToolRequest::check_spelling(&request(json!({"tool": "echo", "idempotency_key": "k"}))).unwrap_err();
    assert!(found.0[0].message.contains("the header Idempotency-Key"), "{found:?}");
    // Fields of the original RCRT's clients, of the runtime, and of callers.
    let other =
        json!({"tool": "echo", "requestedBy": "agent", "config_id": "c", "schedule": {}, "bootstrap": {}, "note": 1});
    assert!(ToolRequest::check_spelling(&request(other)).is_ok());
}

#[test]
fn session_id_becomes_the_session_of_a_request_without_one() {
    let adopted = |context: Value| {
        let mut record = request(context);
        ToolRequest::adopt_session_id(&mut record);
        record.context.get("session").cloned()
    };
    assert_eq!(adopted(json!({"session_id": "s1"})), Some(json!("s1")));
    assert_eq!(adopted(json!({"session_id": "s1", "session": null})), Some(json!("s1")));
    assert_eq!(adopted(json!({"session_id": "s1", "session": "s2"})), Some(json!("s2")));
    for other in [json!(null), json!(7), json!(" "), json!("x".repeat(151)), json!("a\u{0}")] {
        assert_eq!(adopted(json!({"session_id": other})), None, "{other}");
    }
    let mut note = request(json!({"session_id": "s1"}));
    note.schema_name = Some("note.v1".into());
    ToolRequest::adopt_session_id(&mut note);
    assert!(!note.context.contains_key("session"));
}

fn request(context: Value) -> NewBreadcrumb {
    NewBreadcrumb { context: object(context), ..ToolRequest::record("echo", json!({}), None, None) }
}
