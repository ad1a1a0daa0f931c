//! The client against a real server over real sockets, on the real store and a real Postgres.
#![allow(clippy::unwrap_used, clippy::expect_used)]

mod address;
mod errors;
mod harness;
mod proxy;
mod repeats;
mod streams;
mod tokens;
mod tools;

mod conformance {
    ::rcrt_conformance::suite!(crate::harness::ClientHarness::start);
}
