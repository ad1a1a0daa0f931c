//! The included tools `openrouter`, `venice` and `ollama` in the real sandbox, against a server
//! that speaks their protocols, and misbehaves.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::model_server::ModelServer;
use crate::program::{Ran, Running};

const PATIENCE: Duration = Duration::from_mins(2);
const KEY: &str = "sk-a-secret-value";
/// The tools, and the paths that they ask.
const TOOLS: [(&str, &str); 3] =
    [("openrouter", "/v1/chat/completions"), ("venice", "/v1/chat/completions"), ("ollama", "/api/chat")];

#[test]
fn models_answer_through_the_included_tools() {
    let (folder, server) = (TempDir::new().unwrap(), ModelServer::start());
    let address = server.address.to_string();
    let data = folder.path().join("data");
    let up = Running::start(&data, &["up", "--no-seed", "--listen", "127.0.0.1:0", "--allow-private-host", &address]);
    let tools = tools_for(folder.path(), &address);
    // The examples name the real hosts.
    let more = ["--no-examples", "--allow-private-host", &address];
    up.run(&[&["bootstrap", tools.to_str().unwrap()], &more[..]].concat()).ends_with(0);
    for (tool, secret) in [("openrouter", "OPENROUTER_API_KEY"), ("venice", "VENICE_API_KEY")] {
        up.run_with_stdin(&["secret", "set", secret, "--host", &address], KEY).ends_with(0);
        up.run(&["secret", "grant", secret, tool]).ends_with(0);
        configure(&up, tool, &json!({"baseUrl": format!("http://{address}/v1/")}));
    }
    configure(&up, "ollama", &json!({"baseUrl": format!("http://{address}")}));

    for (tool, path) in TOOLS {
        an_answer_is_streamed(&up, &server, tool, path);
        tools_are_called_and_their_results_go_back(&up, &server, tool, path);
        busy_servers_are_asked_again(&up, &server, tool, path);
        bad_answers_are_errors(&up, tool);
        an_endless_answer_is_cut(&up, tool);
    }
    the_text_is_progress(&up, &server);
    a_request_names_its_settings(&up, &address);
    let absent = failure(ask(&up, "ollama", "absent", &json!({})));
    assert!(absent.ends_with("the installed models are fine:latest"), "{absent}");
    up.stop();
}

/// The included tools, with this server as the only host.
pub fn tools_for(folder: &Path, address: &str) -> PathBuf {
    let included = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bootstrap-breadcrumbs/tools-self-contained");
    let tools = folder.join("tools");
    std::fs::create_dir(&tools).unwrap();
    for (tool, _) in TOOLS {
        let json = std::fs::read_to_string(included.join(tool).with_extension("json")).unwrap();
        let mut record: Value = serde_json::from_str(&json).unwrap();
        record["context"]["permissions"]["net"] = json!([address]);
        std::fs::write(tools.join(tool).with_extension("json"), record.to_string()).unwrap();
        std::fs::copy(included.join(tool).with_extension("ts"), tools.join(tool).with_extension("ts")).unwrap();
    }
    tools
}

/// Writes settings. Returns the record's id.
fn configure(up: &Running, tool: &str, config: &Value) -> String {
    let record = json!({"title": format!("Settings of {tool}"), "schema_name": "tool.config.v1",
        "tags": ["tool:config", format!("tool:{tool}")], "context": {"tool_name": tool, "config": config}});
    up.json(&["crumb", "create", &record.to_string()])["id"].as_str().unwrap().to_owned()
}

fn ask(up: &Running, tool: &str, model: &str, more: &Value) -> Ran {
    let mut input = json!({"messages": [{"role": "user", "content": "Hello"}], "model": model});
    input.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    up.run(&["call", tool, &input.to_string(), "--max-result-chars", "4000000", "--output", "json"])
}

#[track_caller]
fn output(ran: Ran) -> Value {
    ran.ends_with(0).json()["output"].clone()
}

#[track_caller]
fn failure(ran: Ran) -> String {
    ran.ends_with(4).json()["error"].as_str().unwrap().to_owned()
}

fn an_answer_is_streamed(up: &Running, server: &ModelServer, tool: &str, path: &str) {
    let answer = output(ask(up, tool, "fine", &json!({"temperature": 0.5, "max_tokens": 20})));
    assert_eq!(answer["content"], "Grüß dich", "{tool}: {answer}");
    assert_eq!((&answer["model"], &answer["finish_reason"]), (&json!("fine"), &json!("stop")));
    assert_eq!(answer["usage"], json!({"prompt_tokens": 5, "completion_tokens": 2, "total_tokens": 7}));
    assert_eq!(answer["cost_estimate"], if tool == "ollama" { json!(0) } else { json!(0.25) });
    let seen = server.seen(path, "fine").pop().unwrap();
    let body: Value = serde_json::from_str(&seen.body).unwrap();
    assert_eq!(body["stream"], true);
    if tool == "ollama" {
        assert_eq!(body["options"], json!({"temperature": 0.5, "num_predict": 20}));
        assert_eq!(seen.authorization, None);
    } else {
        assert_eq!((&body["temperature"], &body["max_tokens"]), (&json!(0.5), &json!(20)));
        assert_eq!(seen.authorization, Some(format!("Bearer {KEY}")));
    }
}

fn tools_are_called_and_their_results_go_back(up: &Running, server: &ModelServer, tool: &str, path: &str) {
    let offered = json!([{"type": "function", "function": {"name": "calculator", "parameters": {"type": "object"}}}]);
    let answer = output(ask(up, tool, "tools", &json!({"tools": offered})));
    assert_eq!(answer["finish_reason"], "tool_calls", "{tool}: {answer}");
    let calls = answer["tool_calls"].as_array().unwrap();
    assert_eq!(calls[0]["function"], json!({"name": "calculator", "arguments": r#"{"expression":"6 * 7"}"#}));
    assert_eq!(calls.len(), if tool == "ollama" { 1 } else { 2 });
    let seen: Value = serde_json::from_str(&server.seen(path, "tools").pop().unwrap().body).unwrap();
    assert_eq!(seen["tools"], offered);

    let messages = json!([{"role": "user", "content": "Hello"},
        {"role": "assistant", "content": answer["content"], "tool_calls": [calls[0]]},
        {"role": "tool", "tool_call_id": calls[0]["id"], "content": "42"}]);
    output(ask(up, tool, "fine", &json!({"messages": messages})));
    let seen: Value = serde_json::from_str(&server.seen(path, "fine").pop().unwrap().body).unwrap();
    let (call, result) = (&seen["messages"][1]["tool_calls"][0]["function"], &seen["messages"][2]);
    if tool == "ollama" {
        assert_eq!(call, &json!({"name": "calculator", "arguments": {"expression": "6 * 7"}}));
        assert_eq!(result, &json!({"role": "tool", "content": "42", "tool_name": "calculator"}));
    } else {
        assert_eq!((call, result), (&calls[0]["function"], &messages[2]));
    }
}

fn busy_servers_are_asked_again(up: &Running, server: &ModelServer, tool: &str, path: &str) {
    // The server counts by path, so each tool has a model of its own.
    let model = format!("busy-{tool}");
    let answer = output(ask(up, tool, &model, &json!({"timeout_ms": 120_000})));
    assert_eq!((&answer["attempts"], &answer["content"]), (&json!(3), &json!("Grüß dich")), "{tool}");
    assert_eq!(server.seen(path, &model).len(), 3);
    let gave_up = failure(ask(up, tool, &format!("{model}-once"), &json!({"max_retries": 0})));
    assert!(gave_up.contains("answered 429: slow down"), "{tool}: {gave_up}");
    // The wait that it asks for would exceed the time: there is no second request.
    let late = failure(ask(up, tool, &format!("full-{tool}"), &json!({})));
    assert!(late.contains("answered 429: Later; an attempt in 3600000 ms would exceed timeout_ms"), "{tool}: {late}");
    assert_eq!(server.seen(path, &format!("full-{tool}")).len(), 1);
}

fn bad_answers_are_errors(up: &Running, tool: &str) {
    for (model, says) in [
        ("cut", "cut the response off after"),
        ("unfinished", "cut the answer off after 3 characters"),
        ("malformed", "sent a malformed response"),
        ("failing", "reported an error: "),
        ("forbidden", "answered 401: No such key"),
    ] {
        let error = failure(ask(up, tool, model, &json!({"timeout_ms": 120_000})));
        assert!(error.contains(says), "{tool}, {model}: {error}");
        assert!(!error.contains(KEY), "{error}");
    }
    let slow = failure(ask(up, tool, "silent", &json!({"timeout_ms": 500})));
    assert!(slow.contains("did not finish within timeout_ms, which is 500"), "{tool}: {slow}");
}

fn an_endless_answer_is_cut(up: &Running, tool: &str) {
    let answer = output(ask(up, tool, "endless", &json!({"timeout_ms": 120_000})));
    assert_eq!(answer["content"].as_str().unwrap().len(), 1_000_000, "{tool}");
    assert_eq!((&answer["truncated"], &answer["finish_reason"]), (&json!(true), &json!("length")));
}

/// The server goes on only when the beginning of the answer was seen as progress.
fn the_text_is_progress(up: &Running, server: &ModelServer) {
    std::thread::scope(|scope| {
        let asking = scope.spawn(|| output(ask(up, "openrouter", "drips", &json!({"timeout_ms": 300_000}))));
        let list = ["crumb", "list", "--schema", "tool.progress.v1", "--include-context"];
        let ends = Instant::now() + PATIENCE;
        let is_there = || {
            let reports = up.json(&list);
            reports.as_array().unwrap().iter().any(|report| report["context"]["message"] == "Once upon a time")
        };
        let mut was_there = is_there();
        while !was_there && Instant::now() < ends {
            was_there = is_there();
        }
        server.go_on();
        assert_eq!(asking.join().unwrap()["content"], "Once upon a time, the end.");
        assert!(was_there, "no progress has the text");
    });
}

/// As clients of RCRT do: beside the input, and not in it.
fn a_request_names_its_settings(up: &Running, address: &str) {
    let settings = json!({"baseUrl": format!("http://{address}/v1"), "defaultModel": "other-model"});
    let id = configure(up, "openrouter", &settings);
    // A newer record, which would be used otherwise.
    configure(up, "openrouter", &json!({"baseUrl": format!("http://{address}/v1"), "defaultModel": "newer-model"}));
    let input = json!({"messages": [{"role": "user", "content": "Hello"}]});
    let request = json!({"title": "Ask", "schema_name": "tool.request.v1", "tags": ["tool:request"],
        "context": {"tool": "openrouter", "config_id": id, "requestId": "llm-1", "input": input}});
    up.json(&["crumb", "create", &request.to_string()]);
    let list = ["crumb", "list", "--schema", "tool.response.v1", "--tag", "request:llm-1", "--include-context"];
    let ends = Instant::now() + PATIENCE;
    let mut responses = up.json(&list);
    while responses.as_array().unwrap().is_empty() && Instant::now() < ends {
        responses = up.json(&list);
    }
    assert_eq!(responses[0]["context"]["output"]["model"], "other-model", "{responses}");
    let newest = output(up.run(&["call", "openrouter", &input.to_string(), "--output", "json"]));
    assert_eq!(newest["model"], "newer-model");
}
