//! The exact output of these tools for agents, the same wherever programs run. Changing it is a
//! deliberate decision.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::harness::{BASH, PYTHON, Programs, limited};

pub async fn results_and_failures_match_the_golden_file(tools: &Programs) {
    let cases: Vec<(&str, Value)> = vec![
        (BASH, json!({"command": "echo out; echo err >&2; exit 2"})),
        (BASH, json!({"command": "no-such-program"})),
        (BASH, json!({"command": "seq 400000"})),
        (BASH, json!({"command": "echo begun; sleep 600", "timeout_seconds": 1})),
        (BASH, json!({"command": "yes"})),
        (BASH, json!({"command": "x".repeat(140_000)})),
        (PYTHON, json!({"script": "print(6 * 7)"})),
        (PYTHON, json!({"script": "import sys\nprint('half')\nsys.exit('no more tea')"})),
        (PYTHON, json!({"script": "open('/etc/passwd', 'w')"})),
        (PYTHON, json!({"script": "print(1)", "pip_packages": ["git+https://example.com/x"]})),
        (PYTHON, json!({"script": "print(1)", "input_data": "x".repeat(140_000)})),
    ];
    let mut text = String::new();
    for (tool, input) in cases {
        let call = || limited(tools.call(tool, input.clone()), |limits| limits.cpu_ms = Some(60_000));
        let result = if input.get("timeout_seconds").is_some() {
            Err(tools.timed_out_after_output(call).await)
        } else {
            tools.execute(call()).await.result
        };
        let outcome = match result {
            Ok(Value::String(text)) => text,
            Ok(output) => serde_json::to_string_pretty(&output).unwrap(),
            Err(failure) => {
                let details = failure.details.map(|details| serde_json::to_string(&details).unwrap());
                let again = if failure.is_retryable { ", retryable" } else { "" };
                format!("{}{again}: {}\ndetails: {}", failure.code, failure.message, details.unwrap_or_default())
            }
        };
        let asked = input.to_string();
        writeln!(text, "=== {tool} {}\n{}", short(&asked, 200), short(&outcome, 1200)).unwrap();
    }
    rcrt_test_tenant::golden(env!("CARGO_MANIFEST_DIR"), "words.txt", &text);
}

/// The beginning and the end of a long text.
fn short(text: &str, most: usize) -> String {
    let count = text.chars().count();
    if count <= most {
        return text.to_owned();
    }
    let first: String = text.chars().take(most / 2).collect();
    let last: String = text.chars().skip(count - most / 2).collect();
    format!("{first} (… {} characters …) {last}", count - most / 2 * 2)
}

pub async fn seed_examples_are_correct(tools: &Programs) {
    let mut tried = 0;
    for tool in [BASH, PYTHON] {
        for example in rcrt_test_tenant::seeded(tool).examples {
            if let Some(output) = example.output {
                assert_eq!(tools.result(tool, example.input).await.unwrap(), output, "{}", example.description);
                tried += 1;
            }
        }
    }
    assert_eq!(tried, 3);
}
