//! Misbehaving servers on loopback, for tests only: a DNS server with the real protocol, HTTP/1
//! controlled to the byte, HTTP/2 over TLS, and names that lead the egress gate to them. A test
//! makes them lie, stall, flood, or point to private addresses.
//!
//! Begin with `dns.rs` and `raw.rs`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests pass literals.
#![allow(clippy::needless_pass_by_value)]

use std::time::Duration;

pub mod dns;
pub mod network;
pub mod raw;
pub mod service;
pub mod tls;

/// How long a test waits for something that must happen. Long, so that no test fails on a busy
/// machine.
pub const PATIENCE: Duration = Duration::from_mins(2);
