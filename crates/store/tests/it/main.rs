//! The store against a real Postgres.

#![allow(clippy::unwrap_used, clippy::expect_used)]

mod harness;

mod conformance {
    ::conformance::suite!(crate::harness::StoreHarness::start);
}
