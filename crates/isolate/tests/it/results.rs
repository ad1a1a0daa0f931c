//! What goes in and what comes out.

use serde_json::json;

use crate::fixture::{execute, value};

#[test]
fn returns_json() {
    let outcome = execute("return { sum: input.a + input.b };", json!({"a": 1, "b": 2}));
    assert_eq!(outcome.result.unwrap(), json!({"sum": 3}));
    assert_eq!(value("return null"), json!(null));
}
