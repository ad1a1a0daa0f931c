//! The layer over the store, and the behaviour of the store that it must not change.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod definitions;
mod harness;
mod heavy_checks;
mod hints;
mod servers;
mod shipped;
mod time_to_live;
mod validation;
mod views;

mod conformance {
    ::rcrt_conformance::suite!(crate::harness::LayerHarness::start);
}
