//! Tests of the `schedule` crate through its public interface.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod clock;
mod crash;
mod cron;
mod fixture;
mod list;
mod recurrence;
mod scheduler;
mod task;
