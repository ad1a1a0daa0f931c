//! Runs a tool's examples as tests: each in the real sandbox, with the tool's permissions and
//! limits, in a world that the example describes. The network and the records are the example's;
//! the clock and the random numbers are seeded; nothing is written.
//!
//! It deliberately does not know records of tools, queues or who may publish what.
//!
//! Begin with `runner.rs` (all examples of a tool) and `world.rs` (what one example's tool sees).

mod network;
mod records;
mod report;
mod runner;
mod world;

pub use report::{ExampleReport, ExampleStatus, has_failed};
pub use runner::ExampleRunner;
