//! Runs a tool until it finishes or is stopped.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::{ToolCall, ToolOutput};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::coordination::leases::LeaseGuard;
use crate::execution::deadline::Deadline;
use crate::execution::log_writer::LogWriter;
use crate::execution::progress_writer::ProgressWriter;
use crate::registry::tool::Tool;

/// Why a run was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    Lost,
    Cancelled,
    Deadline,
    Drained,
    Overtime,
}

/// A run that has begun. It progresses only while it is polled, and is cancelled when it is
/// dropped.
pub(crate) struct Run {
    tool: Arc<Tool>,
    work: Pin<Box<dyn Future<Output = ToolOutput> + Send>>,
    stop: CancellationToken,
    began: Instant,
    /// The output, and how long the run took.
    ended: Option<(ToolOutput, Duration)>,
}

impl Run {
    pub fn begin(tool: Arc<Tool>, call: ToolCall) -> Self {
        let stop = CancellationToken::new();
        let (stop_signal, runs) = (stop.clone(), tool.clone());
        let work = async move {
            let run = AssertUnwindSafe(runs.executor.execute(call, stop_signal)).catch_unwind();
            run.await.unwrap_or_else(|_| panicked())
        };
        Self { tool, work: Box::pin(work), stop, began: Instant::now(), ended: None }
    }

    /// Polls the run until it has finished. Can be cancelled and called again.
    pub async fn resume(&mut self) {
        if self.ended.is_none() {
            let output = (&mut self.work).await;
            let took = self.began.elapsed();
            self.tool.ran(took);
            self.ended = Some((output, took));
        }
    }

    pub fn has_ended(&self) -> bool {
        self.ended.is_some()
    }

    /// The result, if the run succeeded.
    pub fn result(&self) -> Option<&Value> {
        self.ended.as_ref().and_then(|(output, _)| output.result.as_ref().ok())
    }

    /// The output, and how long the run took, once it has finished.
    pub fn ended(&self) -> Option<(&ToolOutput, Duration)> {
        self.ended.as_ref().map(|(output, took)| (output, *took))
    }

    /// The output of a run that has finished.
    pub fn into_output(self) -> ToolOutput {
        self.ended.map_or_else(panicked, |(output, _)| output)
    }

    pub fn failure(&self) -> Option<ErrorCode> {
        self.ended.as_ref().and_then(|(output, _)| output.result.as_ref().err()).map(|failure| failure.code)
    }

    /// Requests a stop, and waits this long.
    async fn stop(&mut self, grace: Duration) {
        self.stop.cancel();
        let _ = timeout(grace, self.resume()).await;
    }
}

/// How a run ended.
pub(crate) struct RunResult {
    /// `None` if it did not stop in time and was dropped.
    pub output: Option<ToolOutput>,
    pub took: Duration,
    pub stopped: Option<Stopped>,
    /// What the response says of a call with `debug`.
    pub debug: Option<Map<String, Value>>,
}

/// What can stop a run, and how long it then has to stop.
pub(crate) struct RunLimits<'c> {
    pub held: &'c LeaseGuard,
    pub deadline: Option<&'c Deadline>,
    /// The runner's drain time is over.
    pub drained: &'c CancellationToken,
    pub overtime: Duration,
    pub grace: Duration,
}

/// Continues the run, and stops it at the first bound that it reaches. Writes its progress and its
/// log meanwhile. No such write is in progress when this returns.
pub(crate) async fn run(
    run: Run,
    limit: Duration,
    (progress_writer, log_writer): (ProgressWriter, Option<Box<LogWriter>>),
    bounds: RunLimits<'_>,
) -> RunResult {
    let over = CancellationToken::new();
    let progress = progress_writer.run(&over);
    let log = async {
        match log_writer {
            // Boxed, because few calls have one.
            Some(writer) => Some(Box::pin(writer.run(&over, &bounds.held.lost)).await),
            None => None,
        }
    };
    let ran = async {
        let ran = bounded(run, limit, &bounds).await;
        over.cancel();
        ran
    };
    let (ran, (), debug) = tokio::join!(ran, progress, log);
    RunResult { debug, ..ran }
}

async fn bounded(mut run: Run, limit: Duration, bounds: &RunLimits<'_>) -> RunResult {
    let stopped = tokio::select! {
        () = run.resume() => None,
        () = bounds.held.lost.cancelled() => Some(Stopped::Lost),
        () = bounds.held.cancel.cancelled() => Some(Stopped::Cancelled),
        () = Deadline::passed(bounds.deadline) => Some(Stopped::Deadline),
        () = bounds.drained.cancelled() => Some(Stopped::Drained),
        () = sleep(limit + bounds.overtime) => Some(Stopped::Overtime),
    };
    let stopped = match stopped {
        None => None,
        Some(stopped) => {
            run.stop(bounds.grace).await;
            // A lost lease takes precedence over the first reason.
            Some(if bounds.held.lost.is_cancelled() { Stopped::Lost } else { stopped })
        }
    };
    let (output, took) = run.ended.map_or((None, run.began.elapsed()), |(output, took)| (Some(output), took));
    RunResult { output, took, stopped, debug: None }
}

fn panicked() -> ToolOutput {
    tracing::error!("an executor panicked");
    let message = "the executor failed, which is a fault of the runtime; its runner's log has the cause";
    let failure = ToolFailure::new(ErrorCode::ExecutionFailed, message);
    ToolOutput::new(Err(failure), Map::new())
}
