//! Checks a call's input. Errors name the invalid field.

use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Limits, ToolFailure};
use serde_json::json;

/// The most bytes of one argument or one environment variable, by the kernel's limit minus some
/// room for names.
pub const LONGEST_ARGUMENT: usize = 130_000;
/// Time that is reserved to report how the program ended.
const ROOM: Duration = Duration::from_millis(500);

/// The error for one field.
pub fn wrong(field: &str, what: impl std::fmt::Display) -> ToolFailure {
    let message = format!("{field}: {what}");
    ToolFailure::new(ErrorCode::InvalidArguments, message).with_details(json!({"field": field}))
}

/// Checks that a text can be one argument or one variable of a program.
pub fn one_argument(field: &str, text: &str) -> Result<(), ToolFailure> {
    if text.contains('\0') {
        return Err(wrong(field, "contains a NUL character, which cannot be passed to a program"));
    }
    if text.len() > LONGEST_ARGUMENT {
        let instead = "write it to a file in the working folder and pass the file's name";
        return Err(wrong(field, format!("is {} bytes long, more than {LONGEST_ARGUMENT}; {instead}", text.len())));
    }
    Ok(())
}

/// The time limit of a program: the requested time, within the call's own limit.
pub fn time(seconds: Option<f64>, otherwise: Duration, limits: &Limits) -> Result<Duration, ToolFailure> {
    let asked = match seconds {
        None => otherwise,
        Some(seconds) if seconds > 0.0 => Duration::try_from_secs_f64(seconds)
            .map_err(|_| wrong("timeout_seconds", "must be a number of seconds above 0"))?,
        Some(_) => return Err(wrong("timeout_seconds", "must be a number of seconds above 0")),
    };
    let whole = limits.timeout();
    Ok(asked.min(whole.saturating_sub(ROOM.min(whole / 10))))
}
