use chrono::{TimeZone, Utc};
use rcrt_breadcrumb::{ErrorCode, ToolFailure, ToolRequest, ToolResponse};
use serde_json::{Map, json};
use uuid::Uuid;

use crate::object;

pub fn request() -> ToolRequest {
    ToolRequest {
        id: Uuid::from_u128(9),
        request_id: "r-1".into(),
        tool: "echo".into(),
        input: json!({}),
        workspace: Some("workspace:w".into()),
        ..ToolRequest::default()
    }
}

#[test]
fn success_has_output_and_no_error_fields() {
    let now = Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).unwrap();
    let response = ToolResponse::new(&request(), Ok(json!(null)), 12, Map::new(), now);
    let record = response.clone().record(&request());
    assert_eq!(record.tags, ["workspace:w", "tool:response", "request:r-1"]);
    assert_eq!(
        record.context,
        object(json!({
            "request_id": "r-1", "tool": "echo", "status": "success", "output": null,
            "execution_time_ms": 12, "metadata": {}, "timestamp": "2026-01-02T03:04:05.000Z",
        }))
    );
    assert!(record.check().is_ok());
}

#[test]
fn failure_has_code_and_retryable_flag() {
    let failure = ToolFailure::new(ErrorCode::Timeout, "too slow\u{0}").with_details(json!({"timeout_ms": 5}));
    let response = ToolResponse::new(&request(), Err(failure), 5, Map::new(), Utc::now());
    let record = response.clone().record(&request());
    assert_eq!(record.context["error_code"], json!("Timeout"));
    assert_eq!(record.context["is_retryable"], json!(true));
    assert_eq!(record.context["error_details"], json!({"timeout_ms": 5}));
    assert!(!record.context.contains_key("output"));
    assert!(record.check().is_ok(), "a NUL in a message must not prevent storing the response");
    assert_eq!(ToolResponse::from_context(&record.context).unwrap(), response);
}
