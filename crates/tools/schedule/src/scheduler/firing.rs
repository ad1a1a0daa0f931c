//! One fire of a schedule, in three writes. A scheduler can crash after each of them:
//!
//! 1. The schedule's record advances to its next time and says that a fire has begun
//!    (`state.firing`). The update names the version that was read, so one scheduler succeeds.
//! 2. The fire's record is written under an idempotency key made of the schedule and the time.
//! 3. The schedule's record says that the fire is done.
//!
//! A scheduler that finds a fire begun and not done, after a while, does 2 and 3. The key makes it
//! the same record.

use chrono::{DateTime, TimeDelta, Utc};
use rcrt_breadcrumb::{BreadcrumbQuery, StoreError};
use uuid::Uuid;

use super::Scheduler;
use super::step::{ScheduleStep, step};
use crate::fire;
use crate::records::{self, ScheduleRecord};
use crate::schedule::{Firing, Schedule, Status};

/// Attempts after conflicting changes, before the rest is left to the next check.
const TRIES: usize = 10;

/// Keys are remembered for a day. For an older fire, its record is searched for before it is
/// written.
fn key_may_be_forgotten() -> TimeDelta {
    TimeDelta::hours(12)
}

/// The result of checking a schedule.
pub(super) enum ScheduleCheck {
    Gone,
    /// The schedule at this version, with the time of the next check.
    At {
        entry: Box<ScheduleRecord>,
        wake: Option<DateTime<Utc>>,
    },
    /// The store failed.
    Failed(StoreError),
}

impl Scheduler {
    /// Does the next steps of a schedule. `may_take_over`: also finish another scheduler's fire.
    pub(super) async fn check(&self, id: Uuid, may_take_over: bool) -> ScheduleCheck {
        match self.try_check(id, may_take_over).await {
            Ok(looked) => looked,
            Err(StoreError::NotFound { .. }) => ScheduleCheck::Gone,
            Err(error) => ScheduleCheck::Failed(error),
        }
    }

    async fn try_check(&self, id: Uuid, may_take_over: bool) -> Result<ScheduleCheck, StoreError> {
        let mut entry = ScheduleRecord::from(self.store.get(id).await?);
        let mut begun_here = None;
        for _ in 0..TRIES {
            let now = self.clock.now();
            let at = |entry: ScheduleRecord, wake| Ok(ScheduleCheck::At { entry: Box::new(entry), wake });
            let Ok(schedule) = &entry.schedule else { return at(entry, None) };
            match step(schedule, now, &self.settings) {
                ScheduleStep::Rest => return at(entry, None),
                ScheduleStep::Wait(until) => return at(entry, Some(until)),
                ScheduleStep::Wrong(why) => {
                    tracing::warn!(schedule = schedule.name, why, "a schedule cannot be followed");
                    return at(entry, None);
                }
                ScheduleStep::Write(next) => {
                    match self.store.update(id, entry.version, entry.changed_to(&next)).await {
                        Ok(written) => {
                            begun_here = next.state.firing.as_ref().map(|firing| firing.at);
                            entry = written.into();
                        }
                        // Another scheduler was faster, or the record was changed.
                        Err(StoreError::VersionConflict { .. }) => entry = self.store.get(id).await?.into(),
                        Err(error) => return Err(error),
                    }
                }
                ScheduleStep::Finish(firing) if may_take_over || begun_here == Some(firing.at) => {
                    let schedule = schedule.clone();
                    entry = self.finish(entry, &schedule, &firing).await?;
                }
                ScheduleStep::Finish(_) => return at(entry, Some(now + self.settings.help_after)),
            }
        }
        Ok(ScheduleCheck::At { entry: Box::new(entry), wake: Some(self.clock.now() + self.settings.retry_after) })
    }

    /// Writes the fire's record, then marks the fire as done.
    async fn finish(
        &self,
        entry: ScheduleRecord,
        schedule: &Schedule,
        firing: &Firing,
    ) -> Result<ScheduleRecord, StoreError> {
        let error = match self.write_fire(&entry, schedule, firing).await {
            Ok(()) => None,
            Err(error) if error.is_retryable() => return Err(error),
            Err(
                error @ (StoreError::Invalid(_)
                | StoreError::TooLarge { .. }
                | StoreError::QuotaExceeded { .. }
                | StoreError::Forbidden(_)),
            ) => {
                tracing::warn!(schedule = schedule.name, at = %firing.at, %error, "a fire cannot be written");
                Some(error.to_string())
            }
            Err(error) => return Err(error),
        };
        let id = entry.id;
        let mut entry = entry;
        loop {
            let mut done = match &entry.schedule {
                Ok(schedule) if schedule.state.firing.as_ref().is_some_and(|one| one.at == firing.at) => {
                    schedule.clone()
                }
                // Another scheduler marked it as done, or the task was cancelled.
                _ => return Ok(entry),
            };
            done.state.firing = None;
            done.state.fires += u64::from(error.is_none());
            done.state.error.clone_from(&error);
            let mut changes = entry.changed_to(&done);
            if done.run_once && done.status == Status::Active {
                done.status = Status::Done;
                done.state.ended_at = Some(self.clock.now());
                changes = records::ending(entry.changed_to(&done), &self.settings);
            }
            match self.store.update(id, entry.version, changes).await {
                Ok(written) => return Ok(written.into()),
                Err(StoreError::VersionConflict { .. }) => entry = self.store.get(id).await?.into(),
                Err(error) => return Err(error),
            }
        }
    }

    async fn write_fire(&self, entry: &ScheduleRecord, schedule: &Schedule, firing: &Firing) -> Result<(), StoreError> {
        let key = fire::fire_tag(entry.id, firing.at);
        if self.clock.now() - firing.begun_at > key_may_be_forgotten() && self.is_written(&key).await? {
            return Ok(());
        }
        let record = fire::record(entry.id, entry.workspace.as_deref(), schedule, firing, &self.settings);
        // A fire acts on behalf of the agent that created the schedule, so its tool reads only what
        // that agent can read.
        let store = match schedule.made_by {
            Some(agent) => self.store.on_behalf_of(agent)?,
            None => self.store.clone(),
        };
        match store.create(record, Some(&key)).await {
            Ok(created) => {
                tracing::info!(schedule = schedule.name, at = %firing.at, record = %created.id, "fired");
                Ok(())
            }
            // It was already written, from another version of the schedule.
            Err(StoreError::IdempotencyMismatch) => Ok(()),
            Err(error) => Err(error),
        }
    }

    async fn is_written(&self, tag: &str) -> Result<bool, StoreError> {
        let query = BreadcrumbQuery { limit: 1, include_context: false, ..BreadcrumbQuery::tagged(tag) };
        Ok(!self.store.list(&query).await?.is_empty())
    }
}
