//! What is wrong with how a case ended, in sentences.

use std::time::Duration;

use breadcrumb::{ErrorCode, ResponseStatus, ToolResponse};
use serde_json::Value;

use super::case::{Call, Case, Status};

/// What no response may say about the machine that it ran on.
const NEVER: [&str; 4] = ["ext:sandbox", "ext:deno", "ext:core", "/proc/"];

/// One response against what its call must end with.
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
            fault(format!("it ended with {}, not with {}", named(found), named(wanted)));
        }
    }
    if let Some(wanted) = &call.output
        && response.output.as_ref() != Some(wanted)
    {
        fault(format!("the output is not {wanted}"));
    }
    let said = response.error.as_deref().unwrap_or_default();
    for text in call.message.iter().filter(|text| !said.contains(text.as_str())) {
        fault(format!("the message does not say {text:?}"));
    }
    if let Some(wanted) = &call.details
        && !holds(response.error_details.as_ref().unwrap_or(&Value::Null), wanted)
    {
        fault(format!("the details do not hold {wanted}"));
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
        fault(format!("no line on the console says {text:?}"));
    }
}

fn of_refused(case: &Case, response: &ToolResponse, fault: &mut impl FnMut(String)) {
    let rule = case.head.rule.as_deref().unwrap_or_default();
    let errors = response.error_details.as_ref().and_then(|details| details["errors"].as_array());
    if !errors.is_some_and(|errors| errors.iter().any(|error| error["rule"] == rule)) {
        fault(format!("the validators did not refuse it by their rule {rule:?}"));
    }
}

/// What subscribers see of a call's progress: one record, never written faster than they can use.
pub fn of_progress(case: &Case, found: &[(Value, i64)], took: Duration, faults: &mut Vec<String>) {
    if found.len() > 1 {
        faults.push(format!("{} records tell of one call's progress", found.len()));
    }
    let most = took.as_millis() as i64 / 250 + 2;
    for (_, written) in found.iter().filter(|(_, written)| *written > most) {
        faults.push(format!("the progress was written {written} times, and {most} times are enough"));
    }
    if let Some(wanted) = &case.head.progress
        && !found.iter().any(|(told, _)| holds(told, wanted))
    {
        faults.push(format!("the progress does not hold {wanted}, but: {found:?}"));
    }
}

/// Texts that must not be anywhere in what a case left behind.
pub fn nevers(case: &Case) -> Vec<String> {
    let mut texts: Vec<String> = NEVER.map(str::to_owned).into();
    texts.extend(case.head.never.iter().cloned());
    for secret in case.head.secrets.iter().filter(|secret| !secret.readable) {
        texts.extend(forms(&secret.value));
    }
    texts
}

/// The forms in which a value must not come back.
pub fn forms(value: &str) -> Vec<String> {
    use base64::Engine;
    let shifted = |padding: usize| {
        let encoded = base64::engine::general_purpose::STANDARD.encode(format!("{}{value}", "a".repeat(padding)));
        // Without the characters that hold bits of what stands before or may stand after it.
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

/// Whether everything in `wanted` is in `found`: members by name, elements of a list anywhere in it.
fn holds(found: &Value, wanted: &Value) -> bool {
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
