//! How a call ended, as one reason, and what its caller is told.

use breadcrumb::{ErrorCode, Limits, ToolFailure};
use serde_json::Value;

use crate::protocol::{CallResult, Failed};
use crate::worker::Death;
use crate::{SandboxError, Script, stack};

/// The one reason why a call ended: whichever came first.
#[derive(Debug)]
pub enum Ending {
    /// The worker answered.
    Finished(CallResult),
    Deadline,
    Cancelled,
    WorkerDied(Option<Death>),
    /// The worker said what no worker says.
    Breach(String),
    /// There was no worker to be had.
    NoWorker(SandboxError),
    TooMuchInput(usize),
}

impl Ending {
    pub fn result(self, script: &Script, limits: &Limits) -> Result<Value, ToolFailure> {
        let failure = |code, message: String| Err(ToolFailure::new(code, message));
        match self {
            Self::Finished(CallResult::Ok(json)) => serde_json::from_str(json.get()).map_err(|error| {
                ToolFailure::new(
                    ErrorCode::InvalidOutput,
                    format!("the result is nested too deeply or no text: {error}"),
                )
            }),
            Self::Finished(CallResult::Failed(failed)) => Err(failed_call(failed, script)),
            Self::Finished(CallResult::OutOfMemory) => Err(out_of_memory(limits)),
            Self::Finished(CallResult::Terminated) => {
                failure(ErrorCode::ExecutionFailed, "the call was ended for no reason".into())
            }
            Self::Deadline => {
                failure(ErrorCode::Timeout, format!("the tool did not end within {} ms", limits.timeout_ms))
            }
            Self::Cancelled => failure(ErrorCode::Cancelled, "the call was cancelled".into()),
            Self::WorkerDied(Some(death)) if death.is_out_of_memory() => Err(out_of_memory(limits)),
            Self::WorkerDied(Some(death)) if death.is_killed() => {
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the tool's worker process was killed")
                    .retryable(true))
            }
            Self::WorkerDied(death) => {
                let how = death.map_or_else(String::new, |death| format!(" ({})", death.status));
                failure(ErrorCode::ExecutionFailed, format!("the tool's worker process died{how}"))
            }
            Self::Breach(what) => {
                failure(ErrorCode::ExecutionFailed, format!("the tool's worker process was ended: {what}"))
            }
            Self::NoWorker(error) => {
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, format!("no worker process: {error}")).retryable(true))
            }
            Self::TooMuchInput(most) => {
                failure(ErrorCode::ResourceExhausted, format!("input and context exceed {most} bytes of JSON"))
            }
        }
    }
}

fn out_of_memory(limits: &Limits) -> ToolFailure {
    ToolFailure::new(
        ErrorCode::ResourceExhausted,
        format!("the tool ran out of memory; its limit is {} MiB (limits.memory_mb)", limits.memory_mb),
    )
}

fn failed_call(failed: Failed, script: &Script) -> ToolFailure {
    let mut failure = ToolFailure::new(failed.code, stack::mapped(&failed.message, script));
    failure.details = failed.details.map(|mut details| {
        for (name, value) in details.as_object_mut().into_iter().flatten() {
            if let Value::String(text) = value {
                *text = if name == "stack" { stack::mapped(text, script) } else { stack::storable(text) };
            }
        }
        details
    });
    failure
}
