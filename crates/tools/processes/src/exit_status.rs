//! Reports to the caller how a program ended.

use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Limits, ToolFailure};
use rcrt_jail::command::{ExitReason, Finished};
use serde_json::json;

/// What a shell adds to the number of a signal that terminated a process.
const SIGNALLED: i32 = 128;

/// Returns the exit code of a program that exited, as a shell reports it, or the failure of a
/// program that was terminated. The failure contains the program's output up to then.
pub fn exit_code(finished: &Finished, limits: &Limits, time: Duration) -> Result<i32, ToolFailure> {
    let (code, message, limit) = match finished.how {
        ExitReason::Exited(code) => return Ok(code),
        ExitReason::Signalled(signal) => return Ok(SIGNALLED + signal),
        ExitReason::OutOfTime => {
            let message = format!("it ran longer than {} s and was killed", seconds(time));
            let allowed = time.as_millis() as u64;
            (ErrorCode::Timeout, message, json!({"limit": "timeout_ms", "allowed": allowed}))
        }
        ExitReason::OutOfProcessorTime => {
            let allowed = limits.cpu_ms();
            let message = format!("it used more than {allowed} ms of processor time and was killed");
            (ErrorCode::ResourceExhausted, message, json!({"limit": "cpu_ms", "allowed": allowed}))
        }
        ExitReason::OutOfMemory => {
            let allowed = limits.memory_mb;
            let message = format!("it used more than {allowed} MiB of memory and was killed");
            (ErrorCode::ResourceExhausted, message, json!({"limit": "memory_mb", "allowed": allowed}))
        }
        ExitReason::TooMuchOutput => {
            let message = "it exceeded the output limit and was killed; write to a file instead".to_owned();
            (ErrorCode::ResourceExhausted, message, json!({"limit": "output_bytes"}))
        }
    };
    Err(ToolFailure::new(code, message).with_details(with_output(limit, finished)))
}

/// The details of a failure, with what the program wrote.
pub fn with_output(mut details: serde_json::Value, finished: &Finished) -> serde_json::Value {
    for (name, stream) in [("stdout", &finished.stdout), ("stderr", &finished.stderr)] {
        if !stream.is_empty() {
            details[name] = last(&text(stream), MAX_FAILURE_CHARS).into();
        }
    }
    details
}

/// The text of a stream in a form that JSON and Postgres can store.
pub fn text(stream: &rcrt_jail::command::Captured) -> String {
    stream.text().replace('\0', "\u{fffd}")
}

/// The most characters of a stream in a failure. The last ones are the most useful.
const MAX_FAILURE_CHARS: usize = 8_000;

/// The last characters of a text, from the beginning of a line if that costs little.
pub fn last(text: &str, most: usize) -> String {
    let Some((start, _)) = text.char_indices().rev().nth(most.saturating_sub(1)).filter(|(start, _)| *start > 0) else {
        return text.to_owned();
    };
    let tail = &text[start..];
    let line = tail.find('\n').filter(|at| *at < tail.len() / 4).map_or(0, |at| at + 1);
    format!("[…]\n{}", &tail[line..])
}

fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 10.0).round() / 10.0
}
