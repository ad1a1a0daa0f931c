//! The included tools `context-builder`, `browser-context-capture` and `workflow` on real records
//! and with real calls.

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::Running;

#[test]
fn agents_get_their_context_pages_and_workflows() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    hints_apply_and_the_context_changes_in_place(&up);
    calls_at_the_same_time_leave_one_record(&up);
    a_tab_keeps_its_record(&up);
    steps_call_tools(&up);
    a_search_finds_no_records_of_the_runtime(&up);
    up.stop();
}

fn create(up: &Running, record: &Value) -> String {
    up.json(&["crumb", "create", &record.to_string()])["id"].as_str().unwrap().to_owned()
}

#[track_caller]
fn call(up: &Running, tool: &str, input: &Value) -> Value {
    up.json(&["call", tool, &input.to_string()])["output"].clone()
}

fn records(up: &Running, schema: &str, tag: &str) -> Vec<Value> {
    let found = up.json(&["crumb", "list", "--schema", schema, "--tag", tag, "--include-context"]);
    found.as_array().unwrap().clone()
}

fn message(text: &str, session: &str) -> Value {
    json!({"title": "Message", "schema_name": "user.message.v1", "tags": ["user:message", format!("session:{session}")],
        "context": {"content": text, "session_id": session}})
}

fn hints_apply_and_the_context_changes_in_place(up: &Running) {
    let first = create(up, &message("What did the customer order?", "c1"));
    create(
        up,
        &json!({"title": "Order", "schema_name": "order.v1", "tags": ["session:c1"],
            "context": {"item": "tea", "card_number": "4111"}, "llm_hints": {"exclude": ["card_number"]}}),
    );
    let input = |trigger: &str| json!({"trigger_id": trigger, "consumer_id": "helper", "search_limit": 0});
    let built = call(up, "context-builder", &input(&first));
    assert_eq!((&built["status"], &built["sources"]["recent"]), (&json!("created"), &json!(1)), "{built}");
    let contexts = records(up, "agent.context.v1", "consumer:helper");
    assert_eq!(contexts.len(), 1);
    let shown = &contexts[0]["context"]["breadcrumbs"];
    assert_eq!(shown[0]["content"], json!({"item": "tea"}), "{shown}");
    assert_eq!((&shown[1]["id"], &shown[1]["source"]), (&json!(first), &json!("trigger")), "{shown}");

    let second = create(up, &message("And the other one?", "c1"));
    let built_again = call(up, "context-builder", &input(&second));
    assert_eq!(built_again["status"], "updated", "{built_again}");
    assert_eq!((&built_again["context_id"], &built_again["version"]), (&built["context_id"], &json!(2)));
    // A late call for the older trigger does not replace the context of the newer one.
    assert_eq!(call(up, "context-builder", &input(&first))["status"], "superseded");
    let now = records(up, "agent.context.v1", "consumer:helper");
    assert_eq!(now[0]["context"]["trigger_event_id"], json!(second));
}

fn calls_at_the_same_time_leave_one_record(up: &Running) {
    let trigger = create(up, &message("Hello", "c2"));
    let input = json!({"trigger_id": trigger, "consumer_id": "many", "search_limit": 0});
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| call(up, "context-builder", &input));
        }
    });
    assert_eq!(records(up, "agent.context.v1", "consumer:many").len(), 1);
}

fn a_tab_keeps_its_record(up: &Running) {
    let page =
        |text: &str| json!({"url": "https://example.com/a?utm_source=x", "title": "A", "text": text, "tab_id": 3});
    let first = call(up, "browser-context-capture", &page("one\ntwo"));
    assert_eq!((&first["status"], &first["url"]), (&json!("created"), &json!("https://example.com/a")), "{first}");
    let second = call(up, "browser-context-capture", &page("one\nthree"));
    assert_eq!(second["breadcrumb_id"], first["breadcrumb_id"]);
    assert_eq!((&second["changes"]["added"], &second["changes"]["removed"]), (&json!(["three"]), &json!(["two"])));
    let third = call(up, "browser-context-capture", &page("one\nthree"));
    assert_eq!((&third["status"], &third["version"]), (&json!("unchanged"), &json!(3)), "{third}");
    assert_eq!(records(up, "browser.tab.context.v1", "tab:3").len(), 1);
    let id = first["breadcrumb_id"].as_str().unwrap();
    let full = up.json(&["crumb", "get", id, "--full"]);
    assert_eq!(full["ttl_config"]["duration"], 3600, "{full}");
}

fn steps_call_tools(up: &Running) {
    let steps = json!([{"id": "sum", "tool": "calculator", "input": {"expression": "6 * 7"}},
        {"id": "text", "tool": "echo", "input": {"message": "it is ${sum.result}"}}]);
    let done = call(up, "workflow", &json!({"steps": steps, "returnStep": "text"}));
    assert_eq!(done["result"], json!({"echo": "it is 42"}), "{done}");
    let steps = json!([{"id": "sum", "tool": "calculator", "input": {"expression": "6 *"}}]);
    let failed = up.run(&["call", "workflow", &json!({"steps": steps}).to_string()]).ends_with(4);
    assert!(failed.stderr.contains("steps[0] (calculator) failed with ExecutionFailed"), "{}", failed.stderr);
    let steps = json!([{"id": "a", "tool": "echo", "input": {"message": "${b.x}"}}]);
    let refused = up.run(&["call", "workflow", &json!({"steps": steps}).to_string()]).ends_with(4);
    assert!(refused.stderr.contains("no step ran") && refused.stderr.contains("no step \"b\""), "{}", refused.stderr);
}

/// The included guides have the words too.
fn a_search_finds_no_records_of_the_runtime(up: &Running) {
    let note = json!({"title": "Guide to our tools", "schema_name": "note.v1",
        "context": {"text": "How to call a tool that creates tools."}});
    let id = create(up, &note);
    let query = json!({"query": "guide: how to call and create a tool", "limit": 100});
    let found = call(up, "breadcrumb-search", &query);
    let found = found["breadcrumbs"].as_array().unwrap();
    assert_eq!(found[0]["id"], json!(id), "{found:?}");
    for item in found {
        let schema = item["schema_name"].as_str().unwrap_or_default();
        assert!(!rcrt_breadcrumb::schema_names::is_of_runtime(schema), "{item}");
    }
    let guides = json!({"query": "tools", "schema_name": "tool.guide.v1"});
    assert!(call(up, "breadcrumb-search", &guides)["count"].as_i64().unwrap() > 0);
}
