//! Converts the end of a call to the message for the parent.

use deno_core::error::{CoreError, CoreErrorKind, JsError};
use rcrt_breadcrumb::{ErrorCode, LimitName, LimitReached};
use rcrt_sandbox::protocol::{CallResult, Failed, MAX_OUTPUT_BYTES};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The error for a tool whose promise can no longer settle.
const NEVER_SETTLES: &str =
    "the promise that execute returned can never settle: no timer, request or other operation is pending";

/// The engine's message for a module whose top-level await can never settle.
const STUCK_MODULE: &str = "Top-level await promise never resolved";
const MODULE_NEVER_SETTLES: &str = "an await at the top of the tool's code can never settle: nothing is pending";

/// As in `failure.js`.
const MAX_CAUSES: usize = 5;
const MAX_MESSAGE: usize = 10_000;

/// The failure that `invoke` returns.
#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum InvokeFailure {
    Invalid { message: String, path: Option<String> },
    Thrown(Thrown),
}

#[derive(Deserialize)]
struct Thrown {
    name: String,
    message: String,
    stack: Option<String>,
    /// The errors that led to this one, nearest first.
    cause: Option<String>,
    /// The name of the parent's refusal, if the tool did not catch it.
    op: Option<String>,
    /// The limit of the call for which the parent refused.
    reached: Option<LimitReached>,
}

/// Parses the text that `invoke` returned in a call with this memory limit.
pub fn from_invoke(mut text: String, memory_mb: u64) -> CallResult {
    if text.len() > MAX_OUTPUT_BYTES {
        return CallResult::TooMuchOutput(text.len() as u64 - 1);
    }
    if text.starts_with('+') {
        text.remove(0);
        return match RawValue::from_string(text) {
            Ok(json) => CallResult::Ok(json),
            Err(error) => failed(ErrorCode::InvalidOutput, format!("the result is not valid JSON: {error}")),
        };
    }
    match serde_json::from_str(text.get(1..).unwrap_or_default()) {
        Ok(InvokeFailure::Invalid { message, path }) => {
            let at = path.as_deref().filter(|path| *path != "$").map(|path| format!("{path}: ")).unwrap_or_default();
            CallResult::Failed(Failed {
                code: ErrorCode::InvalidOutput,
                message: format!("{at}{message}"),
                details: path.map(|path| json!({ "path": path })),
                reached: None,
                is_retryable: false,
            })
        }
        Ok(InvokeFailure::Thrown(thrown)) => from_thrown(thrown, memory_mb),
        Err(error) => failed(ErrorCode::ExecutionFailed, format!("cannot parse the engine's result: {error}")),
    }
}

/// Errors of compiling and evaluating a module.
pub fn from_evaluation(error: &CoreError, memory_mb: u64) -> CallResult {
    match error.as_kind() {
        CoreErrorKind::PendingPromiseResolution => failed(ErrorCode::ExecutionFailed, MODULE_NEVER_SETTLES),
        _ => from_engine(error, memory_mb),
    }
}

/// Parts of the engine's errors about a change of an object that cannot be changed, and about a
/// proxy of one.
const REFUSED_CHANGES: [&str; 9] = [
    "Cannot add property ",
    "Cannot assign to read only property ",
    "Cannot define property ",
    "Cannot delete property ",
    "Cannot redefine property: ",
    "Cannot set property ",
    "Immutable prototype object ",
    " is not extensible",
    "' on proxy: ",
];

/// Whether the tool may have failed because it changes what calls share. Its own unchangeable
/// objects have the same errors, and text of others can look like one.
pub fn is_refused_change(result: &CallResult) -> bool {
    let CallResult::Failed(Failed { message, details, .. }) = result else { return false };
    let cause = details.as_ref().and_then(|details| details.get("cause")).and_then(Value::as_str).unwrap_or_default();
    tells_refused_change(message) || tells_refused_change(cause)
}

/// Whether an error with this text can be one for such a change.
pub fn tells_refused_change(text: &str) -> bool {
    REFUSED_CHANGES.iter().any(|words| text.contains(words))
}

/// Errors of the engine: compiling, importing, evaluating the module, a promise that can never
/// settle.
pub fn from_engine(error: &CoreError, memory_mb: u64) -> CallResult {
    match error.as_kind() {
        CoreErrorKind::PendingPromiseResolution => failed(ErrorCode::ExecutionFailed, NEVER_SETTLES),
        CoreErrorKind::Js(js) if js.exception_message.contains(STUCK_MODULE) => {
            failed(ErrorCode::ExecutionFailed, MODULE_NEVER_SETTLES)
        }
        CoreErrorKind::Js(js) => {
            let thrown = Thrown {
                name: js.name.clone().unwrap_or_else(|| "Error".into()),
                message: js.message.clone().unwrap_or_else(|| js.exception_message.clone()),
                stack: with_place(js),
                cause: causes(js),
                op: None,
                reached: None,
            };
            from_thrown(thrown, memory_mb)
        }
        _ => failed(ErrorCode::ExecutionFailed, error.to_string()),
    }
}

/// The errors and the causes of this error, nearest first, as `failure.js` formats them.
fn causes(js: &JsError) -> Option<String> {
    let errors = |error: &JsError| {
        let errors = error.aggregated.as_deref().filter(|errors| !errors.is_empty())?;
        let mut parts: Vec<String> = errors.iter().take(MAX_CAUSES).map(named).collect();
        parts.extend((errors.len() > MAX_CAUSES).then(|| "...".to_owned()));
        let s = if errors.len() == 1 { "" } else { "s" };
        Some(format!("{} error{s}: {}", errors.len(), parts.join("; ")))
    };
    let mut parts: Vec<String> = errors(js).into_iter().collect();
    let chain = std::iter::successors(js.cause.as_deref(), |cause| cause.cause.as_deref());
    parts.extend(chain.take(MAX_CAUSES).map(|cause| match errors(cause) {
        Some(errors) => format!("{} ({errors})", named(cause)),
        None => named(cause),
    }));
    let text = parts.join("; caused by ");
    (!text.is_empty()).then(|| text.chars().take(MAX_MESSAGE).collect())
}

fn named(error: &JsError) -> String {
    let text = match (&error.name, &error.message) {
        (Some(name), Some(message)) => format!("{name}: {message}"),
        _ => error.exception_message.trim_start_matches("Uncaught ").to_owned(),
    };
    text.chars().take(MAX_MESSAGE).collect()
}

/// The stack of a syntax error has no position; the engine reports it separately.
fn with_place(js: &JsError) -> Option<String> {
    let stack = js.stack.clone().unwrap_or_default();
    let location = js.frames.iter().find_map(|frame| {
        let file = frame.file_name.as_ref()?;
        let (line, column) = (frame.line_number?, frame.column_number?);
        file.starts_with("tool:///").then(|| format!("    at {file}:{line}:{column}"))
    });
    match location {
        Some(location) if !stack.contains("tool:///") => Some(format!("{stack}\n{location}")),
        _ => js.stack.clone(),
    }
}

fn from_thrown(mut thrown: Thrown, memory_mb: u64) -> CallResult {
    let is_out_of_memory = is_out_of_memory(&thrown);
    if is_out_of_memory && thrown.reached.is_none() {
        thrown.reached = Some(LimitReached { limit: LimitName::MemoryMb, allowed: memory_mb });
    }
    let code = match thrown.op.as_deref() {
        Some("PermissionDenied") => ErrorCode::PermissionDenied,
        Some("ResourceExhausted") => ErrorCode::ResourceExhausted,
        _ if is_out_of_memory => ErrorCode::ResourceExhausted,
        _ => ErrorCode::ExecutionFailed,
    };
    let message = match thrown.name.as_str() {
        "Error" | "string" | "object" => thrown.message.clone(),
        // Every client shows the code before the message.
        name if name == code.as_str() => thrown.message.clone(),
        name => format!("{name}: {}", thrown.message),
    };
    let mut details = json!({ "name": thrown.name });
    if let Some(details) = details.as_object_mut() {
        details.extend(thrown.stack.map(|stack| ("stack".into(), stack.into())));
        details.extend(thrown.cause.map(|cause| ("cause".into(), cause.into())));
    }
    let is_retryable = thrown.op.as_deref() == Some("Unavailable");
    CallResult::Failed(Failed { code, message, details: Some(details), reached: thrown.reached, is_retryable })
}

/// Whether the engine threw this because a buffer does not fit.
fn is_out_of_memory(thrown: &Thrown) -> bool {
    let words = [
        "Array buffer allocation failed",
        "could not allocate memory",
        "Out of memory",
        "Unable to grow instance memory",
    ];
    thrown.name == "RangeError" && words.iter().any(|words| thrown.message.contains(words))
}

pub fn failed(code: ErrorCode, message: impl Into<String>) -> CallResult {
    CallResult::Failed(Failed { code, message: message.into(), details: None, reached: None, is_retryable: false })
}
