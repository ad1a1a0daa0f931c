//! Tests of the `mcp` crate through its public interface: a real store, real servers over HTTP and
//! in the jail, and the egress gate.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests use literal values and have little state.
#![allow(clippy::needless_pass_by_value, clippy::large_futures, clippy::similar_names)]

mod config_files;
mod eras;
mod fixture;
mod hostile;
mod http;
mod management;
mod oauth;
mod pins;
mod questions;
mod redaction;
mod refresh;
mod replaced;
mod rights;
mod server;
#[cfg(target_os = "linux")]
mod stdio;
