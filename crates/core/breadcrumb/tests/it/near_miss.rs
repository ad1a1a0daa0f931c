use rcrt_breadcrumb::intended_field;

const FIELDS: [&str; 10] = [
    "tool",
    "input",
    "requestId",
    "session",
    "model",
    "max_result_chars",
    "deadline_ms",
    "version",
    "definition_hash",
    "workspace",
];

#[test]
fn other_spellings_and_other_names_are_recognized() {
    for (name, meant) in [
        ("args", "input"),
        ("arguments", "input"),
        ("Input", "input"),
        ("inpt", "input"),
        ("request_id", "requestId"),
        ("requestID", "requestId"),
        ("reqeustId", "requestId"),
        ("tool_call_id", "requestId"),
        ("session_id", "session"),
        ("sesion", "session"),
        ("maxResultChars", "max_result_chars"),
        ("deadlineMs", "deadline_ms"),
        ("timeout_ms", "deadline_ms"),
        ("work_space", "workspace"),
        ("tool_version", "version"),
        ("definitionHash", "definition_hash"),
        ("tool_hash", "definition_hash"),
    ] {
        assert_eq!(intended_field(name, FIELDS), Some(meant), "{name}");
    }
}

#[test]
fn names_of_a_tools_fields_are_recognized() {
    let known = ["name", "description", "input_schema", "output_schema", "required_secrets", "examples", "timeout_ms"];
    for (name, meant) in [
        ("desc", "description"),
        ("parameters", "input_schema"),
        ("inputSchema", "input_schema"),
        ("returns", "output_schema"),
        ("secrets", "required_secrets"),
        ("tests", "examples"),
        ("timeout", "timeout_ms"),
    ] {
        assert_eq!(intended_field(name, known), Some(meant), "{name}");
    }
}

#[test]
fn other_fields_are_not() {
    let long = "x".repeat(1_000_000);
    for name in ["note", "requestedBy", "config_id", "trigger", "id", "to", "", "priority", long.as_str()] {
        assert_eq!(intended_field(name, FIELDS), None, "{name:.50}");
    }
}
