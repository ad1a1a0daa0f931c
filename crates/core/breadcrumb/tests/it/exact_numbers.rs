use rcrt_breadcrumb::check_numbers;

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
