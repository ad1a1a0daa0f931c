//! The tools and the follower, on a real store, against an agent that a test makes behave or
//! misbehave.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]
// Tests pass literals.
#![allow(clippy::needless_pass_by_value)]

mod agents;
mod cards;
mod hostile;
mod push;
mod tasks;
mod updates;
mod well_known;
mod world;
