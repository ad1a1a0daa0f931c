//! What a call with `debug` did and used, for people.

use serde_json::Value;

use crate::output::one_line;

/// The lines for `metadata.debug` of a response.
pub fn debug_lines(debug: &Value) -> Vec<String> {
    let steps = debug["timeline"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut lines: Vec<String> = steps.iter().map(step_line).collect();
    if let Some(omitted) = debug["timeline_omitted"].as_u64() {
        lines.push(format!("... {omitted} more"));
    }
    let mut used = Vec::new();
    if let Some(ms) = debug["cpu_ms"].as_f64() {
        used.push(format!("{ms:.1} ms of processor time"));
    }
    if let Some(bytes) = debug["peak_memory_bytes"].as_u64() {
        used.push(format!("{:.1} MB of memory", bytes as f64 / 1e6));
    }
    used.push(match (debug["log"]["lines"].as_u64(), debug["log"]["dropped"].as_u64()) {
        (lines, None | Some(0)) => format!("{} console lines", lines.unwrap_or_default()),
        (lines, Some(dropped)) => format!("{} console lines, and {dropped} left out", lines.unwrap_or_default()),
    });
    lines.push(format!("used {}", used.join(", ")));
    lines
}

fn step_line(step: &Value) -> String {
    let text = |field: &str| one_line(step[field].as_str().unwrap_or_default(), 100);
    let (at, took) = (step["at_ms"].as_f64().unwrap_or_default(), step["ms"].as_f64().unwrap_or_default());
    let what = if step["kind"] == "fetch" {
        let ended = step["status"].as_u64().map_or_else(|| text("outcome"), |status| status.to_string());
        let (sent, read) = (&step["bytes_out"], &step["bytes_in"]);
        format!("{} {}:{}  {ended}, {sent} bytes sent, {read} received", text("method"), text("host"), step["port"])
    } else {
        format!("{}  {}", text("operation"), text("outcome"))
    };
    format!("{at:>8.1} ms  {what}, {took:.1} ms")
}
