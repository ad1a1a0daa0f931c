//! The XML report of JUnit, which CI systems read.

use std::fmt::Write;

use rcrt_examples::ExampleStatus;

use super::tested_tool::{TestedTool, details};

/// A `testsuites` document: a suite for each tool, a case for each example.
pub fn report(tested: &[TestedTool]) -> String {
    let mut xml = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for tool in tested {
        let count = |status| tool.examples.iter().filter(|example| example.status == status).count();
        let _ = writeln!(
            xml,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\">",
            escaped(&tool.name),
            tool.examples.len() + tool.errors.len(),
            count(ExampleStatus::Failed),
            tool.errors.len(),
            count(ExampleStatus::NotRun),
        );
        for error in &tool.errors {
            let _ =
                writeln!(xml, "    <testcase name=\"definition\"><error message=\"{}\"/></testcase>", escaped(error));
        }
        for example in &tool.examples {
            let why = escaped(&details(example).join("\n"));
            let outcome = match example.status {
                ExampleStatus::Passed => String::new(),
                ExampleStatus::Failed => format!("<failure message=\"{why}\"/>"),
                ExampleStatus::NotRun => format!("<skipped message=\"{why}\"/>"),
            };
            let _ = writeln!(
                xml,
                "    <testcase name=\"{}\" time=\"{:.3}\">{outcome}</testcase>",
                escaped(&example.description),
                example.duration_ms as f64 / 1000.0,
            );
        }
        xml += "  </testsuite>\n";
    }
    xml + "</testsuites>"
}

/// Text in an attribute. Control characters are not allowed in XML.
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\n' => escaped.push_str("&#10;"),
            '\t' => escaped.push(' '),
            c if c.is_control() || matches!(c, '\u{fffe}' | '\u{ffff}') => escaped.push('\u{fffd}'),
            c => escaped.push(c),
        }
    }
    escaped
}
