//! How a call ended: the reason, and the failure that its caller gets.

use rcrt_breadcrumb::{ErrorCode, LimitName, LimitReached, Limits, ToolFailure};
use serde_json::{Map, Value, json};

use crate::protocol::{CallResult, Failed, MAX_INPUT_BYTES, MAX_OUTPUT_BYTES};
use crate::worker::Death;
use crate::{SandboxError, Script, stack};

/// Size limits of a failure, in bytes: more than an honest worker sends.
const MAX_MESSAGE_BYTES: usize = 64 * 1024;
const MAX_DETAILS_BYTES: usize = 512 * 1024;

/// Why a call ended: the first reason that occurred.
#[derive(Debug)]
pub enum CallEnd {
    /// The worker sent a result within all limits.
    Finished(CallResult),
    Timeout,
    CpuBudget,
    /// The engine reported it, the kernel killed the process, or the process aborted.
    Memory,
    /// The size of the result, in bytes of JSON.
    OutputSize(u64),
    Cancelled,
    WorkerDied(Option<Death>),
    /// The worker broke the protocol.
    Breach(String),
    /// No worker was available.
    NoWorker(SandboxError),
    /// The size of input and context, in bytes of JSON.
    InputSize(u64),
}

impl CallEnd {
    /// For the log, without the call's data.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Finished(_) => "finished",
            Self::Timeout => "timeout",
            Self::CpuBudget => "cpu budget",
            Self::Memory => "memory",
            Self::OutputSize(_) => "output size",
            Self::Cancelled => "cancelled",
            Self::WorkerDied(_) => "worker died",
            Self::Breach(_) => "breach",
            Self::NoWorker(_) => "no worker",
            Self::InputSize(_) => "input size",
        }
    }

    pub fn result(self, script: &Script, limits: &Limits) -> Result<Value, ToolFailure> {
        let failure = |code, message: String| Err(ToolFailure::new(code, message));
        match self {
            Self::Finished(CallResult::Ok(json)) => serde_json::from_str(json.get()).map_err(|error| {
                ToolFailure::new(
                    ErrorCode::InvalidOutput,
                    format!("the result is nested too deeply or is not valid text: {error}"),
                )
            }),
            Self::Finished(CallResult::Failed(failed)) => Err(failed_call(failed, script)),
            Self::Finished(CallResult::OutOfMemory) | Self::Memory => Err(exhausted(
                LimitName::MemoryMb,
                limits.memory_mb,
                format!("the tool ran out of memory; its limit is {} MiB (limits.memory_mb)", limits.memory_mb),
            )),
            Self::Finished(CallResult::TooMuchOutput(bytes)) | Self::OutputSize(bytes) => Err(exhausted(
                LimitName::OutputBytes,
                MAX_OUTPUT_BYTES as u64,
                format!("the result has {bytes} bytes of JSON; the maximum is {MAX_OUTPUT_BYTES}"),
            )),
            Self::Finished(CallResult::Terminated) => {
                failure(ErrorCode::ExecutionFailed, "the call was stopped without a reason".into())
            }
            Self::Timeout => Err(reached(
                ErrorCode::Timeout,
                LimitName::TimeoutMs,
                limits.timeout_ms,
                format!("the tool did not end within {} ms", limits.timeout_ms),
            )),
            Self::CpuBudget => Err(exhausted(
                LimitName::CpuMs,
                limits.cpu_ms(),
                format!("the tool used up its {} ms of processor time (limits.cpu_ms)", limits.cpu_ms()),
            )),
            Self::Cancelled => failure(ErrorCode::Cancelled, "the call was cancelled".into()),
            Self::WorkerDied(Some(death)) if death.is_killed() => {
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the tool's worker process was killed")
                    .retryable(true))
            }
            Self::WorkerDied(death) => {
                let how = death.map_or_else(String::new, |death| format!(" ({})", death.status));
                failure(ErrorCode::ExecutionFailed, format!("the tool's worker process died{how}"))
            }
            Self::Breach(what) => {
                failure(ErrorCode::ExecutionFailed, format!("the tool's worker process was terminated: {what}"))
            }
            Self::NoWorker(error) => {
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, format!("no worker process is available: {error}"))
                    .retryable(true))
            }
            Self::InputSize(bytes) => Err(exhausted(
                LimitName::InputBytes,
                MAX_INPUT_BYTES as u64,
                format!("input and context have {bytes} bytes of JSON; the maximum is {MAX_INPUT_BYTES}"),
            )),
        }
    }
}

fn exhausted(limit: LimitName, allowed: u64, message: String) -> ToolFailure {
    reached(ErrorCode::ResourceExhausted, limit, allowed, message)
}

fn reached(code: ErrorCode, limit: LimitName, allowed: u64, message: String) -> ToolFailure {
    ToolFailure::new(code, message).with_details(json!(LimitReached { limit, allowed }))
}

fn failed_call(failed: Failed, script: &Script) -> ToolFailure {
    let mut message = failed.message;
    if message.len() > MAX_MESSAGE_BYTES {
        message.truncate(message.floor_char_boundary(MAX_MESSAGE_BYTES));
        message.push_str("...");
    }
    let mut failure = ToolFailure::new(failed.code, stack::mapped(&message, script));
    failure.is_retryable |= failed.is_retryable;
    let details = failed.details.filter(|details| details.to_string().len() <= MAX_DETAILS_BYTES);
    failure.details = details.map(|mut details| {
        for (name, value) in details.as_object_mut().into_iter().flatten() {
            if let Value::String(text) = value {
                *text = if name == "stack" { stack::mapped(text, script) } else { stack::storable(text) };
            }
        }
        details
    });
    if let Some(reached) = failed.reached {
        let details = failure.details.get_or_insert_with(|| Value::Object(Map::new()));
        if let (Some(details), Value::Object(reached)) = (details.as_object_mut(), json!(reached)) {
            details.extend(reached);
        }
    }
    failure
}
