//! `cancel_scheduled_task`: stops a task from firing.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{BreadcrumbChanges, Records, StoreError, ToolFailure, nearest_names};
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::render::current_time;
use super::{TRIES, contended, invalid, store_failed, with_nearest};
use crate::fire::in_zone;
use crate::records::{self, ScheduleRecord};
use crate::schedule::{Schedule, Status};
use crate::{Clock, Settings};

pub(super) struct CancelScheduledTask {
    pub settings: Settings,
    pub clock: Arc<dyn Clock>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    name: String,
}

#[async_trait]
impl InputTool for CancelScheduledTask {
    const NAME: &'static str = "cancel_scheduled_task";
    type Input = Input;

    async fn run(&self, Input { name }: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let store = &*call.breadcrumbs;
        let mut last = None;
        for _ in 0..TRIES {
            let entries = records::named(store, &name).await.map_err(store_failed)?;
            let Some(entry) = entries.iter().find(|entry| entry.is_open()) else {
                let ended = last.or_else(|| entries.into_iter().next_back()?.schedule.ok());
                return match ended {
                    Some(schedule) => Ok(self.output(&schedule)),
                    None => Err(unknown(store, &name).await),
                };
            };
            match self.cancel(store, call, entry).await {
                // Also cancels records with the same name that were written by hand.
                Ok(schedule) => last = Some(schedule),
                Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. }) => {}
                Err(error) => return Err(store_failed(error)),
            }
        }
        Err(contended(&name))
    }
}

impl CancelScheduledTask {
    /// Returns the schedule with its end.
    async fn cancel(
        &self,
        store: &dyn Records,
        call: &ToolCall,
        entry: &ScheduleRecord,
    ) -> Result<Schedule, StoreError> {
        let Ok(there) = &entry.schedule else {
            return Err(StoreError::NotFound { what: "schedule", id: entry.id });
        };
        let mut schedule = there.clone();
        schedule.status = Status::Cancelled;
        schedule.state.ended_at = Some(self.clock.now());
        schedule.state.next_fire = None;
        let begun = schedule.state.firing.take();
        let mut changes: BreadcrumbChanges = records::ending(entry.changed_to(&schedule), &self.settings);
        if !call.chain.is_empty() {
            let mut tags = store.get(entry.id).await?.tags;
            call.chain.mark(&mut tags, entry.version + 1);
            changes.tags = Some(tags);
        }
        store.update(entry.id, entry.version, changes).await?;
        schedule.state.firing = begun;
        Ok(schedule)
    }

    fn output(&self, schedule: &Schedule) -> Value {
        let zone = schedule.recurrence(&self.settings).map_or(self.settings.timezone, |recurrence| recurrence.zone);
        let local = |moment: DateTime<Utc>| in_zone(moment, zone);
        let mut output = json!({
            "name": schedule.name,
            "status": schedule.status.as_str(),
            "ended_at": schedule.state.ended_at.map(local),
            "fires": schedule.state.fires,
            "last_fire": schedule.state.last_fire.map(local),
            "now": current_time(self.clock.now(), zone),
        });
        if let Some(firing) = &schedule.state.firing {
            let note = format!("the fire of {} had already started; its record can still arrive", local(firing.at));
            output["note"] = note.into();
        }
        output
    }
}

async fn unknown(store: &dyn Records, name: &str) -> ToolFailure {
    let entries = match records::active(store).await {
        Ok(entries) => entries,
        Err(error) => return store_failed(error),
    };
    let mut names: Vec<&str> = entries
        .iter()
        .filter_map(|entry| entry.schedule.as_ref().ok())
        .map(|schedule| schedule.name.as_str())
        .collect();
    names.sort_unstable();
    let nearest = nearest_names(name, names.iter().copied());
    let shown: String = name.chars().take(100).collect();
    let message = match (&nearest[..], &names[..]) {
        ([], []) => format!("there is no scheduled task {shown:?}, and no others exist"),
        ([], some) => format!(
            "there is no scheduled task {shown:?}; there are: {}",
            some.iter().take(20).copied().collect::<Vec<_>>().join(", ")
        ),
        (nearest, _) => format!("there is no scheduled task {shown:?}; did you mean {}?", nearest.join(", ")),
    };
    with_nearest(invalid("name", message), &nearest)
}
