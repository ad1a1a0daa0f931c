//! The reports of examples as a result has them: together they must fit into a response.

use rcrt_examples::ExampleReport;
use serde_json::{Value, json};

/// The most characters of console output of all examples together.
const MAX_CONSOLE: usize = 20_000;
/// The most bytes of JSON of the values of all examples together. What is above is shortened or
/// left out.
const MAX_VALUES: usize = 256 * 1024;
/// The most characters that remain of a shortened value.
const MAX_SHORTENED: usize = 500;

/// The reports, with bounded console output and bounded values.
pub(crate) fn shown(reports: &[ExampleReport]) -> Value {
    let (mut console, mut values) = (MAX_CONSOLE, MAX_VALUES);
    let mut reports = reports.to_vec();
    for report in &mut reports {
        report.console.retain(|line| fits(line.message.len(), &mut console));
        report.differences.retain(|one| fits(json!(one).to_string().len(), &mut values));
        for value in report.expected.iter_mut().chain(&mut report.actual) {
            shorten(value, &mut values);
        }
        report.writes.retain(|write| fits(write.to_string().len(), &mut values));
    }
    json!(reports)
}

/// Whether this many fit into what is left, which they then use.
fn fits(size: usize, left: &mut usize) -> bool {
    let rest = left.checked_sub(size);
    *left = rest.unwrap_or(*left);
    rest.is_some()
}

/// Replaces a value that does not fit by the start of its JSON.
fn shorten(value: &mut Value, left: &mut usize) {
    let text = value.to_string();
    if !fits(text.len(), left) && text.chars().nth(MAX_SHORTENED).is_some() {
        let start: String = text.chars().take(MAX_SHORTENED).collect();
        *value = format!("{start}… ({} bytes of JSON)", text.len()).into();
    }
}
