//! The tools with which agents create, list and cancel tasks.

mod cancel_scheduled_task;
mod list_scheduled_tasks;
mod render;
mod schedule_task;

use std::sync::Arc;

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use rcrt_executors::NativeTool;
use rcrt_executors::builtin::{invalid, read_input, refused, store_failed};
use serde_json::json;

use crate::{Clock, Settings};
use cancel_scheduled_task::CancelScheduledTask;
use list_scheduled_tasks::ListScheduledTasks;
use schedule_task::ScheduleTask;

/// Attempts after conflicting changes, before the caller must retry.
const TRIES: usize = 20;

/// `schedule_task`, `list_scheduled_tasks` and `cancel_scheduled_task`.
pub fn tools(settings: &Settings, clock: &Arc<dyn Clock>) -> Vec<Arc<dyn NativeTool>> {
    let with = || (settings.clone(), clock.clone());
    let (a, b, c) = (with(), with(), with());
    vec![
        Arc::new(ScheduleTask { settings: a.0, clock: a.1 }),
        Arc::new(ListScheduledTasks { settings: b.0, clock: b.1 }),
        Arc::new(CancelScheduledTask { settings: c.0, clock: c.1 }),
    ]
}

fn with_nearest(mut failure: ToolFailure, nearest: &[String]) -> ToolFailure {
    if let Some(details) = &mut failure.details {
        details["nearest"] = json!(nearest);
    }
    failure
}

/// Converts a message of the form `field: problem` from a schedule.
fn invalid_field(message: &str) -> ToolFailure {
    match message.split_once(": ") {
        Some((field, message)) => invalid(field, message),
        None => invalid("", message),
    }
}

/// The failure after too many conflicting changes.
fn contended(name: &str) -> ToolFailure {
    let message = format!("the task {name:?} was changed concurrently several times; try again");
    ToolFailure::new(ErrorCode::ExecutionFailed, message).retryable(true)
}
