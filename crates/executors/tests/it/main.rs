//! Executors through their public doors: the gate on real sockets, an HTTP tool, and what a tool's code may do.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests say values in place and hold little state.
#![allow(clippy::needless_pass_by_value, clippy::similar_names, clippy::unnecessary_wraps, clippy::large_futures)]

mod address;
mod chain;
mod gate;
mod host;
mod network;
mod redirects;
mod rest;
mod tenant;
mod world;
