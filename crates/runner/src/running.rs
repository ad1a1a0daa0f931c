//! The run itself, until it ends or something ends it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{ErrorCode, ToolFailure};
use executors::{ToolCall, ToolOutput};
use futures::FutureExt;
use serde_json::Map;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::deadline::Deadline;
use crate::leases::Held;
use crate::progress::Telling;
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

/// How a run ended.
pub(crate) struct Ran {
    /// `None`: it did not stop, and was dropped.
    pub output: Option<ToolOutput>,
    pub stopped: Option<Stopped>,
}

/// What may end a run, and how long it has then to stop.
pub(crate) struct Bounds<'c> {
    pub held: &'c Held,
    pub deadline: Option<&'c Deadline>,
    /// The runner's time for running calls is over.
    pub drained: &'c CancellationToken,
    pub overtime: Duration,
    pub grace: Duration,
}

/// Runs the tool, and stops it for whatever comes first. What it tells of its progress is written meanwhile, and
/// nothing of that is under way any more when this returns.
pub(crate) async fn run(tool: &Arc<Tool>, call: ToolCall, telling: Telling, bounds: Bounds<'_>) -> Ran {
    let over = CancellationToken::new();
    let told = telling.run(&over);
    let ran = async {
        let ran = bounded(tool, call, &bounds).await;
        over.cancel();
        ran
    };
    let (ran, ()) = tokio::join!(ran, told);
    ran
}

async fn bounded(tool: &Tool, call: ToolCall, bounds: &Bounds<'_>) -> Ran {
    let token = CancellationToken::new();
    let limit = call.limits.timeout() + bounds.overtime;
    let run = AssertUnwindSafe(tool.executor.execute(call, token.clone())).catch_unwind();
    tokio::pin!(run);
    let stopped = tokio::select! {
        output = &mut run => return Ran { output: Some(output.unwrap_or_else(|_| panicked())), stopped: None },
        () = bounds.held.lost.cancelled() => Stopped::Lost,
        () = bounds.held.cancel.cancelled() => Stopped::Cancelled,
        () = Deadline::passed(bounds.deadline) => Stopped::Deadline,
        () = bounds.drained.cancelled() => Stopped::Drained,
        () = sleep(limit) => Stopped::Overtime,
    };
    token.cancel();
    let output = timeout(bounds.grace, &mut run).await.ok();
    // What was lost meanwhile is lost, whatever was the reason before.
    let stopped = if bounds.held.lost.is_cancelled() { Stopped::Lost } else { stopped };
    Ran { output: output.map(|output| output.unwrap_or_else(|_| panicked())), stopped: Some(stopped) }
}

fn panicked() -> ToolOutput {
    tracing::error!("an executor panicked");
    let failure = ToolFailure::new(ErrorCode::ExecutionFailed, "the executor failed; this is a fault of the runtime");
    ToolOutput::new(Err(failure), Map::new())
}
