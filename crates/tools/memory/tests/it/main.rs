//! The `memory` crate through its public interface: the tools on a real store, and large results.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests say values in place and build texts by hand.
#![allow(clippy::large_futures, clippy::format_push_string, clippy::similar_names)]

mod entries;
mod fixture;
mod guides;
mod large_results;
mod listing;
mod questions;
mod races;
mod reading;
mod searching;
mod skills;
