//! The load generator through its public interface.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod closed;
mod due;
mod histogram;
mod open;
mod plans;
mod plot;
mod record;
mod report;
mod table;
mod targets;
