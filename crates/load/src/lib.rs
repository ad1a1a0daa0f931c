//! Generates load and measures it. It knows of no tool, no store and no HTTP: what is called stands behind [`Target`].
//! Latencies are taken so that a system that stalls cannot hide it: in an open loop each counts from the moment when
//! the call was due, not from when there was room to send it, and a call that never came back counts with the time
//! that it had waited.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod closed;
mod drive;
mod due;
mod fine_sleep;
mod histogram;
mod measured;
mod open;
mod plan;
pub mod plot;
mod record;
pub mod report;
mod table;
mod target;

pub use drive::{DRAIN, drive};
pub use due::Due;
pub use histogram::Histogram;
pub use measured::Measured;
pub use plan::{Pace, Plan, PlanError};
pub use record::Record;
pub use report::{Machine, Ratio, Report, Row};
pub use table::Table;
pub use target::Target;
