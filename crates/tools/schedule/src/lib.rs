//! Scheduled tasks: the tools by which agents create them, and the scheduler that fires each once,
//! with any number of runners.
//!
//! Schedules are stored in breadcrumbs. A fire writes an ordinary request, so this crate knows no
//! queue. It does not know which other schedulers work on the same tenant: versions and idempotency
//! keys in the store decide what happens once.
//!
//! Begin with `schedule.rs`, `scheduler/mod.rs` and `scheduler/firing.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod clock;
mod cron;
mod fire;
mod records;
mod recurrence;
mod schedule;
mod scheduler;
mod settings;
mod tools;

pub use clock::{Clock, SystemClock};
pub use cron::{Cron, CronError};
pub use fire::{FIRED_TAG, fire_tag};
pub use recurrence::{PastFires, Recurrence, zone};
pub use schedule::{Basis, Firing, Missed, Schedule, State, Status, TAG, name_tag};
pub use scheduler::Scheduler;
pub use settings::Settings;
pub use tools::tools;
