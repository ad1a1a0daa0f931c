//! The `schedule` crate through its public door.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod book;
mod clock;
mod crash;
mod cron;
mod list;
mod mortal;
mod recurrence;
mod scheduler;
mod task;
