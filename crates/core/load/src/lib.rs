//! Generates load and measures it. A [`Target`] is what is called; this crate does not know tools,
//! stores or HTTP.
//!
//! The latencies of a system that stalls are not hidden (no coordinated omission). In an open loop
//! a call's latency counts from when the call was due, not from when it could be sent. A call
//! without a response counts with the time that it has waited.
//!
//! Begin with `drive.rs`, then `open.rs` and `closed.rs` (the two kinds of load) and `report`.
//!
//! # Example
//! ```no_run
//! use std::sync::Arc;
//! use std::time::Duration;
//!
//! use rcrt_load::{Measured, Pace, Plan, Target, drive};
//! use tokio_util::sync::CancellationToken;
//!
//! async fn measured(target: Arc<dyn Target>) -> Measured {
//!     let pace = Pace::Open { per_second: 200.0, in_flight: 1_000 };
//!     let (warm_up, duration) = (Duration::from_secs(2), Duration::from_secs(10));
//!     drive(target, &Plan { pace, warm_up, duration }, &CancellationToken::new()).await
//! }
//! ```

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

pub use drive::{DRAIN, Target, drive};
pub use due::Due;
pub use histogram::Histogram;
pub use measured::Measured;
pub use plan::{Pace, Plan, PlanError};
pub use record::Record;
pub use report::{Machine, Ratio, Report, Row};
pub use table::Table;
