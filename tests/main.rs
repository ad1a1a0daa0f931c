//! The house as a whole, through its front door: the one binary, real processes, a real Postgres, the real engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod examples;
mod failure;
mod hostile;
mod live;
mod process;
mod telemetry;
mod watcher;
mod written;
