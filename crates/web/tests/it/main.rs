//! The `web` crate through its public door: its tools in their executor, the gate, and servers on loopback that stand
//! in for the web.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests say values in place and hold little state.
#![allow(clippy::needless_pass_by_value, clippy::large_futures, clippy::similar_names)]

mod browse;
mod chunked;
mod fetch;
mod github;
mod hostile;
mod hostile_markup;
mod pages;
mod search;
mod web;
