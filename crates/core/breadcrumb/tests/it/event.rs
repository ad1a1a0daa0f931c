use chrono::{TimeZone, Utc};
use rcrt_breadcrumb::{Event, EventKind, EventNumber};
use serde_json::json;
use uuid::Uuid;

use crate::object;

#[test]
fn event_json_has_the_documented_shape() {
    let event = Event {
        number: EventNumber(7),
        kind: EventKind::Created,
        breadcrumb_id: Uuid::from_u128(1),
        owner_id: Uuid::from_u128(2),
        version: 1,
        tags: vec!["a".into()],
        schema_name: Some("note.v1".into()),
        updated_at: Utc.with_ymd_and_hms(2026, 1, 2, 3, 4, 5).unwrap(),
        context: object(json!({"k": true})).into(),
        redacted: false,
        private: false,
    };
    assert_eq!(
        serde_json::to_value(&event).unwrap(),
        json!({
            "type": "breadcrumb.created",
            "breadcrumb_id": "00000000-0000-0000-0000-000000000001",
            "owner_id": "00000000-0000-0000-0000-000000000002",
            "version": 1,
            "tags": ["a"],
            "schema_name": "note.v1",
            "updated_at": "2026-01-02T03:04:05Z",
            "context": {"k": true},
        })
    );
}

/// Regression: every unknown name was a deletion.
#[test]
fn unknown_name_is_no_kind_of_event() {
    for kind in EventKind::ALL {
        assert_eq!(kind.as_str().parse(), Ok(kind));
    }
    "breadcrumb.moved".parse::<EventKind>().unwrap_err();
}
