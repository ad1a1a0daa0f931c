//! System tests through the public API: the one binary, real processes, a real Postgres, the real
//! engine.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod authoring;
mod balancer;
mod corrections;
mod examples;
mod failure;
mod hostile;
mod live;
mod old_runner;
mod process;
mod receiver;
mod standby;
mod telemetry;
mod tool_record;
mod watcher;
