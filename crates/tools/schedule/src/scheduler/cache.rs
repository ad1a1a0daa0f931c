//! The schedules that a scheduler knows: the version of each, and when to check it next.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Event, EventKind, schema_names};
use uuid::Uuid;

use crate::Settings;
use crate::schedule::{Schedule, Status};

#[derive(Default)]
pub(super) struct ScheduleCache {
    schedules: BTreeMap<Uuid, CachedSchedule>,
}

struct CachedSchedule {
    version: i64,
    /// `None` if only a change of the record can make it due.
    wake: Option<DateTime<Utc>>,
    /// A fire that another scheduler began, and since when it was seen unfinished.
    begun: Option<(DateTime<Utc>, DateTime<Utc>)>,
}

impl ScheduleCache {
    /// When to check the next schedule.
    pub fn wake(&self) -> Option<DateTime<Utc>> {
        self.schedules.values().filter_map(|one| one.wake).min()
    }

    /// The schedules to check now.
    pub fn due(&self, now: DateTime<Utc>) -> Vec<Uuid> {
        let is_due = |one: &CachedSchedule| one.wake.is_some_and(|wake| wake <= now);
        self.schedules.iter().filter(|(_, one)| is_due(one)).map(|(id, _)| *id).collect()
    }

    /// Whether another scheduler's fire is unfinished for so long that this scheduler finishes it.
    pub fn may_take_over(&self, id: Uuid, now: DateTime<Utc>, settings: &Settings) -> bool {
        let begun = self.schedules.get(&id).and_then(|one| one.begun);
        begun.is_some_and(|(_, seen)| (now - seen).to_std().is_ok_and(|since| since >= settings.help_after))
    }

    pub fn apply_event(&mut self, event: &Event, now: DateTime<Utc>, settings: &Settings) {
        if event.schema_name.as_deref() != Some(schema_names::SCHEDULE) || event.kind == EventKind::Deleted {
            self.schedules.remove(&event.breadcrumb_id);
            return;
        }
        self.insert(event.breadcrumb_id, event.version, &Schedule::read(&event.context), now, settings);
    }

    /// Removes all schedules but the active ones.
    pub fn keep(&mut self, is_active: impl Fn(Uuid) -> bool) {
        self.schedules.retain(|id, _| is_active(*id));
    }

    /// Adds a record at this version.
    pub fn insert(
        &mut self,
        id: Uuid,
        version: i64,
        schedule: &Result<Schedule, String>,
        now: DateTime<Utc>,
        settings: &Settings,
    ) {
        let old = self.schedules.get(&id);
        if old.is_some_and(|old| old.version >= version) {
            return;
        }
        let (wake, begun) = match schedule {
            Err(why) => {
                tracing::warn!(schedule = %id, version, why, "a schedule cannot be followed");
                (None, None)
            }
            Ok(schedule) if schedule.status != Status::Active => {
                self.schedules.remove(&id);
                return;
            }
            Ok(schedule) => match &schedule.state.firing {
                Some(firing) => {
                    let seen = old.and_then(|old| old.begun).filter(|(at, _)| *at == firing.at);
                    let (at, seen) = seen.unwrap_or((firing.at, now));
                    (Some(seen + settings.help_after), Some((at, seen)))
                }
                // If the time was computed from another cron expression, the check computes it
                // again.
                None if schedule.is_next_fire_current(settings) => (schedule.state.next_fire, None),
                None => (Some(now), None),
            },
        };
        self.schedules.insert(id, CachedSchedule { version, wake, begun });
    }

    /// Sets when to check it, at the known version.
    pub fn wake_at(&mut self, id: Uuid, wake: Option<DateTime<Utc>>) {
        if let Some(one) = self.schedules.get_mut(&id) {
            one.wake = wake;
        }
    }

    pub fn forget(&mut self, id: Uuid) {
        self.schedules.remove(&id);
    }
}
