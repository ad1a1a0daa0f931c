use rcrt_breadcrumb::{json_bytes, object_bytes};
use serde_json::json;

use crate::object;

#[test]
fn a_value_is_as_long_as_its_text() {
    let controls: String = (0..=0x7f_u8).map(char::from).collect();
    for value in [
        json!(null),
        json!([true, false, [], {}, ""]),
        json!([0, -1, u64::MAX, i64::MIN, 0.1, 1e300, -2.5e-9, 100.0]),
        json!(controls.repeat(3)),
        json!({"a \"key\"\n": {"ü": "é\u{2028}😀"}, "list": [1, "two", {"three": null}]}),
        json!("\\".repeat(1000)),
        json!("x".repeat(100_000)),
    ] {
        let text = value.to_string();
        assert_eq!(json_bytes(&value), text.len(), "{text:.200}");
    }
    assert_eq!(object_bytes(&object(json!({}))), 2);
    assert_eq!(object_bytes(&object(json!({"a": 1, "b": [2]}))), r#"{"a":1,"b":[2]}"#.len());
}
