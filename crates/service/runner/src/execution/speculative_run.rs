//! A run that computes before the store knows of it: while its request is being committed, or
//! before its start is written. It cannot have side effects yet. A run that reaches its first side
//! effect is dropped, and starts again once its request is committed. So a run never waits for the
//! store while its time is counted, and holds no slot meanwhile.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use rcrt_breadcrumb::{ErrorCode, Limits, NewBreadcrumb, ToolRequest};
use rcrt_executors::{CallDebug, EffectGate, EffectGateOpener, ToolCall, ToolOutput};
use serde_json::Value;

use crate::execution::deadline::Deadline;
use crate::execution::log_writer::LogWriter;
use crate::execution::open_children::OpenChildren;
use crate::execution::progress_writer::ProgressWriter;
use crate::execution::running::Run;
use crate::options::SMALL_RESULT;
use crate::registry::tool::Tool;

/// The maximum input that is kept for a run that starts again; calls with more wait for the store.
const MOST_INPUT: usize = 64 * 1024;

/// A call that is ready to be run, or runs.
pub(crate) struct PreparedRun {
    pub tool: Arc<Tool>,
    pub progress_writer: ProgressWriter,
    pub children: Arc<OpenChildren>,
    call: ToolCall,
    begun: Option<StartedRun>,
}

struct StartedRun {
    run: Run,
    effect_gate: EffectGateOpener,
}

/// A run that may have effects, and what is written while it runs.
pub(crate) struct OpenedRun {
    pub tool: Arc<Tool>,
    pub limits: Limits,
    pub run: Run,
    pub progress_writer: ProgressWriter,
    /// For a call with `debug`.
    pub log_writer: Option<Box<LogWriter>>,
}

impl PreparedRun {
    /// `call` has a closed effect gate, whatever it says.
    pub fn new(tool: Arc<Tool>, call: ToolCall, progress_writer: ProgressWriter, children: Arc<OpenChildren>) -> Self {
        Self { tool, progress_writer, children, call, begun: None }
    }

    /// Begins it, if it supports speculation. `deadline`: the request's, or a little earlier.
    pub fn begin_speculatively(&mut self, deadline: Option<&Deadline>) {
        if self.begun.is_none()
            && !self.call.request.debug
            && self.tool.may_speculate()
            && takes_at_most(MOST_INPUT, &self.call.input)
        {
            let mut call = self.call.clone();
            call.deadline = deadline.map(|deadline| deadline.at);
            self.begun = Some(begin(&self.tool, call));
        }
    }

    /// Polls the run until it has ended or waits for the effect gate. Can be cancelled and called
    /// again.
    pub async fn compute(&mut self) {
        let Some(begun) = &mut self.begun else { return };
        let wants_more = tokio::select! {
            biased;
            // First: it may have ended without waiting for what it wants to do.
            () = begun.effect_gate.wanted() => true,
            () = begun.run.resume() => begun.effect_gate.wanted().now_or_never().is_some(),
        };
        if wants_more {
            self.tool.mark_as_acting();
        }
        // A timeout here does not count: the time limit of a request starts when it is written.
        if wants_more || begun.run.failure() == Some(ErrorCode::Timeout) {
            self.forget_run();
        }
    }

    /// Whether it is running.
    pub fn is_computing(&self) -> bool {
        self.begun.as_ref().is_some_and(|begun| !begun.run.has_ended())
    }

    pub fn has_ended(&self) -> bool {
        self.begun.as_ref().is_some_and(|begun| begun.run.has_ended())
    }

    /// Whether it has succeeded with a valid result that goes unchanged into its response: then
    /// nothing has happened, and nothing is left but the response.
    pub fn has_small_result(&self) -> bool {
        let result = self.begun.as_ref().and_then(|begun| begun.run.result());
        let schema = &self.tool.output;
        result.is_some_and(|result| {
            takes_at_most(SMALL_RESULT, result) && schema.is_quick(result) && schema.check(result).is_empty()
        })
    }

    /// What the tool may take, less what its input's check took.
    pub fn timeout_ms(&self) -> u64 {
        self.call.limits.timeout_ms
    }

    pub fn request(&self) -> &ToolRequest {
        &self.call.request
    }

    /// The call, for another run of it.
    pub fn call(&self) -> &ToolCall {
        &self.call
    }

    /// What came of it, and how long it took.
    pub fn ended(&self) -> Option<(&ToolOutput, Duration)> {
        self.begun.as_ref().and_then(|begun| begun.run.ended())
    }

    /// It starts again when the gate opens; its earlier progress is discarded.
    pub fn forget_run(&mut self) {
        self.begun = None;
        self.progress_writer.forget();
    }

    /// From here on the call may do what its tool may do. `deadline`: the request's.
    pub fn open_effect_gate(self, deadline: Option<&Deadline>, attempt: u32) -> OpenedRun {
        let Self { tool, progress_writer, mut call, begun, .. } = self;
        if let Some(deadline) = deadline {
            deadline.shorten(&mut call.limits);
            call.deadline = Some(deadline.at);
        }
        let limits = call.limits;
        // Such a call has not begun: what it writes must not be lost.
        let log_writer = call.request.debug.then(|| {
            let debug = CallDebug::begin();
            call.debug = Some(debug.clone());
            Box::new(LogWriter::new(&call, debug, progress_writer.seen(), attempt))
        });
        let StartedRun { run, effect_gate } = begun.unwrap_or_else(|| begin(&tool, call));
        effect_gate.open();
        OpenedRun { tool, limits, run, progress_writer, log_writer }
    }
}

fn begin(tool: &Arc<Tool>, mut call: ToolCall) -> StartedRun {
    let (effect_gate, waits) = EffectGate::closed();
    call.effect_gate = waits;
    StartedRun { run: Run::begin(tool.clone(), call), effect_gate }
}

/// Whether a call with this input is small enough to begin before its request is written.
pub(crate) fn has_small_input(request: &NewBreadcrumb) -> bool {
    request.context.get("input").is_none_or(|input| takes_at_most(MOST_INPUT, input))
}

/// Whether the value takes so many bytes, about.
pub(crate) fn takes_at_most(bytes: usize, value: &Value) -> bool {
    fn fits(value: &Value, left: &mut usize) -> bool {
        let takes = match value {
            Value::String(text) => text.len() + 4,
            Value::Object(fields) => 4 + fields.keys().map(|key| key.len() + 4).sum::<usize>(),
            _ => 8,
        };
        let Some(rest) = left.checked_sub(takes) else { return false };
        *left = rest;
        match value {
            Value::Array(items) => items.iter().all(|item| fits(item, left)),
            Value::Object(fields) => fields.values().all(|field| fits(field, left)),
            _ => true,
        }
    }
    let mut left = bytes;
    fits(value, &mut left)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_size_of_a_value_is_estimated() {
        for (value, most) in [
            (json!(null), 8),
            (json!("x".repeat(100)), 104),
            (json!({"key": "x".repeat(100)}), 4 + 7 + 104),
            (json!([[[1, 2], 3]]), 6 * 8),
        ] {
            assert!(takes_at_most(most, &value), "{value}");
            assert!(!takes_at_most(most - 1, &value), "{value}");
        }
    }
}
