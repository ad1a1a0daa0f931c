//! The details of a failed call for people, one line each.

use serde_json::Value;

/// The lines that the error's message does not have: each violation with its path, the cause, a
/// stack, similar names.
pub fn failure_lines(error: &str, details: Option<&Value>) -> Vec<String> {
    let mut lines = details.map(of_details).unwrap_or_default();
    lines.retain(|line| !error.contains(line.as_str()));
    lines
}

fn of_details(details: &Value) -> Vec<String> {
    let list = |key: &str| details.get(key).and_then(Value::as_array);
    if let Some(violations) = details.as_array().or_else(|| list("violations")).or_else(|| list("errors")) {
        return violations.iter().map(violation_line).collect();
    }
    // These are in the message.
    if details.get("missing_requirements").is_some() || details.get("limit").is_some() {
        return cause_line(details).into_iter().collect();
    }
    if let Some(stack) = details.get("stack").and_then(Value::as_str) {
        // The first line repeats the message.
        let stack = stack.lines().skip(1).map(|line| line.trim().to_owned());
        return cause_line(details).into_iter().chain(stack).collect();
    }
    if let Some(nearest) = list("nearest") {
        let names: Vec<&str> = nearest.iter().filter_map(Value::as_str).collect();
        return if names.is_empty() { Vec::new() } else { vec![format!("did you mean {}?", names.join(" or "))] };
    }
    serde_json::to_string_pretty(details).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn cause_line(details: &Value) -> Option<String> {
    details.get("cause").and_then(Value::as_str).map(|cause| format!("caused by {cause}"))
}

fn violation_line(violation: &Value) -> String {
    let text = |key: &str| violation.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("path").or_else(|| text("field")), text("message")) {
        (Some(path), Some(message)) => format!("{path}: {message}"),
        (None, Some(message)) => message.to_owned(),
        _ => violation.to_string(),
    }
}
