//! Decides the next step for one schedule. It uses no clock and no store: all inputs are
//! parameters.

use chrono::{DateTime, Utc};

use crate::schedule::{Firing, Missed, Schedule, State, Status};
use crate::{PastFires, Settings};

#[derive(Debug, PartialEq)]
pub(super) enum ScheduleStep {
    /// Do nothing until the record changes.
    Rest,
    /// Do nothing until this time.
    Wait(DateTime<Utc>),
    /// Write this into the record, based on the version that was read.
    Write(Box<Schedule>),
    /// A fire has begun; write its record.
    Finish(Firing),
    /// The schedule is invalid.
    Wrong(String),
}

pub(super) fn step(schedule: &Schedule, now: DateTime<Utc>, settings: &Settings) -> ScheduleStep {
    if schedule.status != Status::Active {
        return ScheduleStep::Rest;
    }
    if let Some(firing) = &schedule.state.firing {
        return ScheduleStep::Finish(firing.clone());
    }
    let recurrence = match schedule.recurrence(settings) {
        Ok(recurrence) => recurrence,
        Err(why) => return ScheduleStep::Wrong(why),
    };
    let basis = Some(schedule.basis(&recurrence));
    let write = |state: State| ScheduleStep::Write(Box::new(Schedule { state, ..schedule.clone() }));
    let state = schedule.state.clone();
    let due = match state.next_fire {
        Some(due) if state.basis == basis => due,
        // Written by hand, or changed since: compute from now on, never from the past.
        _ => {
            let after = state.last_fire.map_or(now, |last| last.max(now));
            return match recurrence.next(after) {
                Some(next) => write(State { basis, next_fire: Some(next), ..state }),
                None => ScheduleStep::Rest,
            };
        }
    };
    if due > now {
        return ScheduleStep::Wait(due);
    }
    let PastFires { latest, before } = recurrence.past(due, now);
    let next_fire = recurrence.next(latest);
    let is_late = (now - latest).to_std().is_ok_and(|late| late > settings.lateness);
    if is_late && schedule.missed == Missed::Skip {
        return write(State { next_fire, missed: state.missed + before + 1, ..state });
    }
    let firing = Firing {
        at: latest,
        begun_at: now,
        missed: before,
        missed_more: before == PastFires::COUNTED,
        missed_since: (before > 0).then_some(due),
        catch_up: is_late,
    };
    write(State {
        next_fire: next_fire.filter(|_| !schedule.run_once),
        last_fire: Some(latest),
        missed: state.missed + before,
        firing: Some(firing),
        ..state
    })
}
