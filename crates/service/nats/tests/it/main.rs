//! Copies of events in a real NATS server.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod address;
mod copying;
mod refusals;
mod server;
