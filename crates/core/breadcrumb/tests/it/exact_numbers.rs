use rcrt_breadcrumb::{check_javascript_numbers, check_numbers};
use serde_json::json;

#[test]
fn integers_of_64_bits_and_floats_pass() {
    for json in [
        r#"{"a": 18446744073709551615, "b": [-9223372036854775808, 9223372036854775807]}"#,
        r#"{"text": "123456789012345678901234567890", "1234567890123456789012": 1}"#,
        r"[1.2345678901234568e29, 0.1234567890123456789012, 1e3]",
        r#"{"escaped": "\"123456789012345678901234567890"}"#,
    ] {
        assert_eq!(check_numbers(json.as_bytes()), Ok(()), "{json}");
    }
}

#[test]
fn a_larger_integer_is_named_with_its_path() {
    for (json, path) in [
        ("123456789012345678901234567890", ""),
        (r#"{"context": {"input": {"list": [1, {"n": 18446744073709551616}]}}}"#, "context.input.list[1].n"),
        (r#"{"a": {"b": [[], {}, "x"]}, "c" : -9223372036854775809}"#, "c"),
        (r#"[{"a": 1}, [2, 123456789012345678901234567890.5]]"#, "[1][1]"),
        (r#"{"quote\"d": 99999999999999999999}"#, "quote\"d"),
    ] {
        assert_eq!(check_numbers(json.as_bytes()).unwrap_err().field, path, "{json}");
    }
    let found = check_numbers(b"{\"n\": 123456789012345678901234567890}").unwrap_err();
    assert_eq!(
        found.message,
        "is the number 123456789012345678901234567890, which has more than 64 bits; send it as a string"
    );
}

#[test]
fn an_integer_that_javascript_rounds_is_named_with_its_path() {
    for value in [
        json!([9_007_199_254_740_992_u64, -9_007_199_254_740_992_i64, 1_u64 << 63, i64::MIN]),
        json!({"float": 1e300, "fraction": 0.1, "text": "9007199254740993"}),
    ] {
        assert_eq!(check_javascript_numbers(&value), Ok(()), "{value}");
    }
    for (value, path) in [
        (json!(9_007_199_254_740_993_u64), ""),
        (json!({"a": [1, {"b": -9_007_199_254_740_993_i64}]}), "a[1].b"),
        (json!([[u64::MAX]]), "[0][0]"),
    ] {
        assert_eq!(check_javascript_numbers(&value).unwrap_err().field, path, "{value}");
    }
    assert_eq!(
        check_javascript_numbers(&json!({"id": 9_007_199_254_740_993_u64})).unwrap_err().to_string(),
        "id: is the integer 9007199254740993, which JavaScript rounds to 9007199254740992; send it as a string"
    );
}
