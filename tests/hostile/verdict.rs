//! The faults of a case, in sentences.

use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, ResponseStatus, ToolResponse};
use serde_json::Value;

use super::case::{Call, Case, Status};

/// What no response can contain about the machine that it ran on.
const NEVER: [&str; 4] = ["ext:sandbox", "ext:deno", "ext:core", "/proc/"];

/// Compares one response with the expected outcome of its call.
pub fn of_response(case: &Case, call: &Call, response: &ToolResponse, faults: &mut Vec<String>) {
    let mut fault = |what: String| faults.push(what);
    if response.tool != case.tool {
        fault(format!("it names the tool {:?}", response.tool));
    }
    if case.head.status == Status::Refused {
        of_refused(case, response, &mut fault);
        return;
    }
    match (call.error_code, response.error_code) {
        (Some(wanted), Some(found)) if wanted == found => {}
        (None, None) if response.status == ResponseStatus::Success => {}
        (wanted, found) => {
            let named = |code: Option<ErrorCode>| code.map_or("success", ErrorCode::as_str);
            fault(format!("the result is {}, not {}", named(found), named(wanted)));
        }
    }
    if let Some(wanted) = &call.output
        && response.output.as_ref() != Some(wanted)
    {
        fault(format!("the output is not {wanted}"));
    }
    let said = response.error.as_deref().unwrap_or_default();
    for text in call.message.iter().filter(|text| !said.contains(text.as_str())) {
        fault(format!("the message does not contain {text:?}"));
    }
    if let Some(wanted) = &call.details
        && !holds(response.error_details.as_ref().unwrap_or(&Value::Null), wanted)
    {
        fault(format!("the details do not contain {wanted}"));
    }
    let lines: Vec<&str> = response
        .metadata
        .get("console")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|line| line["message"].as_str())
        .collect();
    for text in case.head.console.iter().filter(|text| !lines.iter().any(|line| line.contains(text.as_str()))) {
        fault(format!("no console line contains {text:?}"));
    }
}

fn of_refused(case: &Case, response: &ToolResponse, fault: &mut impl FnMut(String)) {
    let rule = case.head.rule.as_deref().unwrap_or_default();
    let errors = response.error_details.as_ref().and_then(|details| details["errors"].as_array());
    if !errors.is_some_and(|errors| errors.iter().any(|error| error["rule"] == rule)) {
        fault(format!("the validators did not refuse it by the rule {rule:?}"));
    }
}

/// Checks the progress that subscribers see: one record, not written more often than the limit
/// allows.
pub fn of_progress(case: &Case, found: &[(Value, i64)], took: Duration, faults: &mut Vec<String>) {
    if found.len() > 1 {
        faults.push(format!("{} records have one call's progress", found.len()));
    }
    let most = took.as_millis() as i64 / 250 + 2;
    for (_, written) in found.iter().filter(|(_, written)| *written > most) {
        faults.push(format!("the progress was written {written} times, and at most {most} times are expected"));
    }
    if let Some(wanted) = &case.head.progress
        && !found.iter().any(|(progress, _)| holds(progress, wanted))
    {
        faults.push(format!("the progress does not contain {wanted}, but: {found:?}"));
    }
}

/// Texts that must not be in a case's records or log lines.
pub fn nevers(case: &Case) -> Vec<String> {
    let mut texts: Vec<String> = NEVER.map(str::to_owned).into();
    texts.extend(case.head.never.iter().cloned());
    for secret in case.head.secrets.iter().filter(|secret| !secret.readable) {
        texts.extend(forms(&secret.value));
    }
    texts
}

/// The forms in which a value must not appear.
pub fn forms(value: &str) -> Vec<String> {
    use base64::Engine;
    let shifted = |padding: usize| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{}{value}", "a".repeat(padding)));
        // Without the characters that contain bits of the text before or after it.
        let first = (padding * 8).div_ceil(6);
        let last = (padding + value.len()) * 8 / 6;
        encoded[first..last].to_owned()
    };
    let percent = url::form_urlencoded::byte_serialize(value.as_bytes()).collect();
    let json = Value::from(value).to_string();
    let mut forms =
        vec![value.to_owned(), shifted(0), shifted(1), shifted(2), percent, json[1..json.len() - 1].to_owned()];
    forms.extend([0, 1, 2].map(|padding| shifted(padding).replace('+', "-").replace('/', "_")));
    forms.sort();
    forms.dedup();
    forms
}

/// Whether everything in `wanted` is in `found`: members by name, elements of a list anywhere in
/// it.
pub fn holds(found: &Value, wanted: &Value) -> bool {
    match (found, wanted) {
        (Value::Object(found), Value::Object(wanted)) => {
            wanted.iter().all(|(name, value)| found.get(name).is_some_and(|there| holds(there, value)))
        }
        (Value::Array(found), Value::Array(wanted)) => {
            wanted.iter().all(|value| found.iter().any(|there| holds(there, value)))
        }
        (found, wanted) => found == wanted,
    }
}
