use rcrt_breadcrumb::ToolRequest;
use serde_json::json;

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
fn request_id_invalid_as_a_tag_is_refused() {
    for id in [json!(""), json!(7), json!("x".repeat(181)), json!("a\u{0}")] {
        let found = ToolRequest::check(&object(json!({"tool": "echo", "requestId": id}))).unwrap_err();
        assert_eq!(found.0[0].field, "context.requestId", "{id}");
    }
}
