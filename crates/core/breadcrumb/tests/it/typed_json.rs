//! Violations in place of serde's messages.

use rcrt_breadcrumb::{Violation, read_typed};
use serde::Deserialize;
use serde_json::{Value, json};

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
#[allow(dead_code)]
struct Order {
    title: String,
    #[serde(default)]
    items: Vec<Item>,
}

#[derive(Debug, Deserialize)]
#[allow(dead_code)]
struct Item {
    count: u32,
    size: Option<Size>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Size {
    Small,
    Large,
}

fn violation(value: Value) -> String {
    read_typed::<Order>(value).unwrap_err().to_string()
}

#[test]
fn a_violation_names_the_field_and_what_is_accepted() {
    for (value, expected) in [
        (json!({}), "title: is required"),
        (json!("x"), "must be an object, not a string"),
        (json!({"title": 5}), "title: must be a string, not a number"),
        (json!({"title": null}), "title: must be a string, not null"),
        (json!({"title": "t", "items": {}}), "items: must be an array, not an object"),
        (json!({"title": "t", "items": [{"count": 1}, {}]}), "items[1].count: is required"),
        (
            json!({"title": "t", "items": [{"count": "two, expected three"}]}),
            "items[0].count: must be a whole number, 0 or more, not a string",
        ),
        (json!({"title": "t", "items": [{"count": -2}]}), "items[0].count: must be a whole number, 0 or more, not -2"),
        (
            json!({"title": "t", "items": [{"count": 1, "size": "big"}]}),
            "items[0].size: must be one of small, large; \"big\" is not",
        ),
        (json!({"titel": "t"}), "titel: is not a known field; did you mean title?"),
        (json!({"colour": "red"}), "colour: is not a known field; expected `title` or `items`"),
    ] {
        assert_eq!(violation(value.clone()), expected, "{value}");
    }
    assert!(read_typed::<Order>(json!({"title": "t", "items": [{"count": 1, "size": "small"}]})).is_ok());
    assert_eq!(
        read_typed::<u8>(json!(true)).unwrap_err(),
        Violation::new("", "must be a whole number, 0 or more, not true or false")
    );
}
