//! Servers on loopback that a test lets lie, drip, flood and point inside: a name server that speaks the real protocol,
//! HTTP/1 down to the byte, HTTP/2 behind TLS, and names that lead the egress gate to them. For tests only.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests say values in place.
#![allow(clippy::needless_pass_by_value)]

pub mod dns;
pub mod network;
pub mod raw;
pub mod tls;
