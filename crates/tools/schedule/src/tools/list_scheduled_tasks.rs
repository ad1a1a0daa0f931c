//! `list_scheduled_tasks`: the tasks, their next fires, and the current time.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::ToolFailure;
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::render::{current_time, table, task};
use super::store_failed;
use crate::records::{self, ScheduleRecord};
use crate::{Clock, Settings};

/// The most ended tasks in the list.
const MOST_ENDED: u32 = 50;

pub(super) struct ListScheduledTasks {
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    name: Option<String>,
    #[serde(default)]
    include_ended: bool,
}

#[async_trait]
impl InputTool for ListScheduledTasks {
    const NAME: &'static str = "list_scheduled_tasks";
    type Input = Input;

    async fn run(&self, Input { name, include_ended }: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let store = &*call.breadcrumbs;
        let mut entries = match &name {
            Some(name) => records::named(store, name).await,
            None => records::active(store).await,
        }
        .map_err(store_failed)?;
        if include_ended && name.is_none() {
            entries.extend(records::ended(store, MOST_ENDED).await.map_err(store_failed)?);
        }
        let now = self.clock.now();
        entries.sort_by_key(|entry| order(entry, now));
        let tasks: Vec<Value> = entries.iter().map(|entry| self.describe(entry, now)).collect();
        let zone = self.settings.timezone;
        Ok(json!({"table": table(&tasks, now, zone), "now": current_time(now, zone), "tasks": tasks}))
    }
}

impl ListScheduledTasks {
    fn describe(&self, entry: &ScheduleRecord, now: DateTime<Utc>) -> Value {
        match &entry.schedule {
            Ok(schedule) => Value::Object(task(schedule, now, &self.settings)),
            // The record was written by hand.
            Err(why) => json!({"name": entry.context.get("name"), "schedule_id": entry.id, "problem": why}),
        }
    }
}

/// The next to fire first, then those that never fire, then ended ones, newest first.
fn order(entry: &ScheduleRecord, now: DateTime<Utc>) -> (bool, DateTime<Utc>, i64) {
    let Ok(schedule) = &entry.schedule else { return (false, DateTime::<Utc>::MAX_UTC, 0) };
    let ended_ago = schedule.state.ended_at.map_or(0, |ended| (now - ended).num_seconds());
    (!entry.is_active(), schedule.state.next_fire.unwrap_or(DateTime::<Utc>::MAX_UTC), ended_ago)
}
