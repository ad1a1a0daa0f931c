use chrono::{TimeZone, Utc};
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbView, MAX_RECORD_BYTES, NewBreadcrumb, Sensitivity, TtlType, Visibility,
};
use serde_json::json;
use uuid::Uuid;

use crate::object;

fn new(title: &str) -> NewBreadcrumb {
    NewBreadcrumb { title: title.into(), ..NewBreadcrumb::default() }
}

fn fields(record: &NewBreadcrumb) -> Vec<String> {
    record.check().err().map(|found| found.0.into_iter().map(|one| one.field).collect()).unwrap_or_default()
}

fn stored() -> Breadcrumb {
    let now = Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).unwrap();
    Breadcrumb {
        id: Uuid::from_u128(1),
        owner_id: Uuid::from_u128(2),
        title: "A note".into(),
        description: None,
        semantic_version: None,
        context: object(json!({"a": 1})),
        tags: vec!["note".into()],
        schema_name: None,
        llm_hints: None,
        visibility: Visibility::Team,
        sensitivity: Sensitivity::Low,
        version: 3,
        checksum: String::new(),
        ttl: None,
        ttl_type: None,
        ttl_config: None,
        created_at: now,
        updated_at: now,
        created_by: None,
        updated_by: None,
        size_bytes: 7,
        read_count: None,
        reads_left: None,
        warnings: Vec::new(),
    }
}

#[test]
fn all_violations_are_reported_together() {
    let record = NewBreadcrumb {
        title: " ".into(),
        tags: vec!["good".into(), String::new()],
        context: object(json!({"deep": [{"text": "a\u{0}b"}]})),
        ttl_type: Some(TtlType::Duration),
        ..NewBreadcrumb::default()
    };
    assert_eq!(fields(&record), ["title", "tags[1]", "context.deep[0].text", "ttl_config.duration"]);
}

#[test]
fn request_without_a_tool_names_the_field() {
    let record = NewBreadcrumb { schema_name: Some("tool.request.v1".into()), ..new("Call") };
    assert_eq!(fields(&record), ["context.tool"]);
}

#[test]
fn oversized_context_names_the_limit() {
    let record = NewBreadcrumb { context: object(json!({"text": "x".repeat(MAX_RECORD_BYTES)})), ..new("Big") };
    let found = record.check().unwrap_err();
    assert_eq!(found.0[0].field, "context");
    assert!(found.0[0].message.contains(&MAX_RECORD_BYTES.to_string()));
}

#[test]
fn nesting_is_bounded() {
    let mut value = json!(1);
    for _ in 0..200 {
        value = json!([value]);
    }
    assert!(!fields(&NewBreadcrumb { context: object(json!({"a": value})), ..new("Deep") }).is_empty());
}

#[test]
fn unknown_fields_are_refused() {
    let error = serde_json::from_value::<NewBreadcrumb>(json!({"title": "A", "schema": "x"})).unwrap_err();
    assert!(error.to_string().contains("unknown field `schema`"), "{error}");
}

#[test]
fn changes_replace_only_present_fields() {
    let changes = BreadcrumbChanges { context: Some(object(json!({"b": 2}))), ..BreadcrumbChanges::default() };
    let record = changes.applied_to(&stored()).unwrap();
    assert_eq!(record.context, object(json!({"b": 2})));
    assert_eq!((record.title.as_str(), record.tags.as_slice()), ("A note", &["note".to_owned()][..]));
}

#[test]
fn schema_name_cannot_change_to_tool_request() {
    let changes = BreadcrumbChanges { schema_name: Some("tool.request.v1".into()), ..BreadcrumbChanges::default() };
    assert_eq!(changes.applied_to(&stored()).unwrap_err().0[0].field, "schema_name");
}

#[test]
fn short_view_has_no_owner_audit_or_ttl_fields() {
    let view = object(serde_json::to_value(BreadcrumbView::from(stored())).unwrap());
    for field in ["owner_id", "created_at", "created_by", "updated_by", "ttl", "visibility", "size_bytes"] {
        assert!(!view.contains_key(field), "{field}");
    }
}

#[test]
fn fingerprints_of_different_bodies_differ() {
    assert_eq!(new("A").fingerprint(), new("A").fingerprint());
    assert_ne!(new("A").fingerprint(), new("B").fingerprint());
}

#[test]
fn traceparent_does_not_change_the_fingerprint() {
    let request = |traceparent: Option<&str>| {
        let mut record = rcrt_breadcrumb::ToolRequest::record("echo", json!({}), None, None);
        record.context.extend(traceparent.map(|traceparent| ("traceparent".to_owned(), json!(traceparent))));
        record
    };
    assert_eq!(request(None).fingerprint(), request(Some("one")).fingerprint());
    let note = |traceparent: &str| NewBreadcrumb { schema_name: Some("note.v1".into()), ..request(Some(traceparent)) };
    assert_ne!(note("one").fingerprint(), note("two").fingerprint());
}
