//! The run itself, until it ends or is stopped.

use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{ErrorCode, ToolFailure};
use executors::{ToolCall, ToolOutput};
use futures::FutureExt;
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::deadline::Deadline;
use crate::leases::LeaseGuard;
use crate::progress_writer::ProgressWriter;
use crate::tool::Tool;

/// Why a run was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stopped {
    Lost,
    Cancelled,
    Deadline,
    Drained,
    Overtime,
}

/// A run that was begun. It goes on while somebody waits for it, and dies when it is dropped.
pub(crate) struct Run {
    tool: Arc<Tool>,
    work: Pin<Box<dyn Future<Output = ToolOutput> + Send>>,
    stop: CancellationToken,
    began: Instant,
    /// What came of it, and how long it took.
    ended: Option<(ToolOutput, Duration)>,
}

impl Run {
    pub fn begin(tool: Arc<Tool>, call: ToolCall) -> Self {
        let stop = CancellationToken::new();
        let (told, runs) = (stop.clone(), tool.clone());
        let work = async move {
            let run = AssertUnwindSafe(runs.executor.execute(call, told)).catch_unwind();
            run.await.unwrap_or_else(|_| panicked())
        };
        Self { tool, work: Box::pin(work), stop, began: Instant::now(), ended: None }
    }

    /// Until it has ended; it may be left and come back to.
    pub async fn go_on(&mut self) {
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

    /// What it gave, where it ended well.
    pub fn result(&self) -> Option<&Value> {
        self.ended.as_ref().and_then(|(output, _)| output.result.as_ref().ok())
    }

    /// What came of it, and how long it took.
    pub fn ended(&self) -> Option<(&ToolOutput, Duration)> {
        self.ended.as_ref().map(|(output, took)| (output, *took))
    }

    pub fn failure(&self) -> Option<ErrorCode> {
        self.ended.as_ref().and_then(|(output, _)| output.result.as_ref().err()).map(|failure| failure.code)
    }

    /// Asks it to stop, and waits this long.
    async fn stop(&mut self, grace: Duration) {
        self.stop.cancel();
        let _ = timeout(grace, self.go_on()).await;
    }
}

/// How a run ended.
pub(crate) struct Ran {
    /// `None`: it did not stop, and was dropped.
    pub output: Option<ToolOutput>,
    pub took: Duration,
    pub stopped: Option<Stopped>,
}

/// What may end a run, and how long it has then to stop.
pub(crate) struct RunLimits<'c> {
    pub held: &'c LeaseGuard,
    pub deadline: Option<&'c Deadline>,
    /// The runner's time for running calls is over.
    pub drained: &'c CancellationToken,
    pub overtime: Duration,
    pub grace: Duration,
}

/// Continues the run, and stops it for whatever comes first. Its progress is written meanwhile, and
/// no such write is in progress when this returns.
pub(crate) async fn run(run: Run, limit: Duration, progress_writer: ProgressWriter, bounds: RunLimits<'_>) -> Ran {
    let over = CancellationToken::new();
    let told = progress_writer.run(&over);
    let ran = async {
        let ran = bounded(run, limit, &bounds).await;
        over.cancel();
        ran
    };
    let (ran, ()) = tokio::join!(ran, told);
    ran
}

async fn bounded(mut run: Run, limit: Duration, bounds: &RunLimits<'_>) -> Ran {
    let stopped = tokio::select! {
        () = run.go_on() => None,
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
            // What was lost meanwhile is lost, whatever was the reason before.
            Some(if bounds.held.lost.is_cancelled() { Stopped::Lost } else { stopped })
        }
    };
    let (output, took) = run.ended.map_or((None, run.began.elapsed()), |(output, took)| (Some(output), took));
    Ran { output, took, stopped }
}

fn panicked() -> ToolOutput {
    tracing::error!("an executor panicked");
    let failure = ToolFailure::new(ErrorCode::ExecutionFailed, "the executor failed; this is a fault of the runtime");
    ToolOutput::new(Err(failure), Map::new())
}
