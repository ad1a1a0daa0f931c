//! Executors through their public interface: an HTTP tool, and the ops of tool code.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests say values in place and hold little state.
#![allow(clippy::needless_pass_by_value, clippy::similar_names, clippy::unnecessary_wraps, clippy::large_futures)]

mod chain;
mod conversion;
mod host_ops;
mod rest;
mod secrets;
