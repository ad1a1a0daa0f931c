//! Tasks that run by the clock: the tools by which agents make them, and the scheduler that fires each once, however
//! many runners there are.
//!
//! It keeps schedules in breadcrumbs and knows no queue: what a fire calls is a request like any other. It does not know
//! who else works on the same tenant; what happens once is decided in the store, by versions and idempotency keys.

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
