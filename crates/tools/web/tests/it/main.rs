//! Tests of the `web` crate through its public interface: its tools in their executor, the gate,
//! and servers on loopback that replace the web.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests use literal values and have little state.
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
