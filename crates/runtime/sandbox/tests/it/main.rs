//! The protocol between parent and worker, without an engine. Calls in real workers are tested in
//! `isolate`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod frames;
mod hostile_worker;
mod level;
