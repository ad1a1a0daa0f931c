//! Runs a tool's examples as tests: each in the real sandbox, with the tool's permissions and
//! limits, in a world that the example describes. Network, records and other tools are the
//! example's; the clock and the random numbers are seeded; nothing is written. It also runs a tool
//! once on the real network, records that as an example, tries a tool with inputs made from its
//! schema, and compares an http tool with the code made from it.
//!
//! It deliberately does not know records of tools, queues or who may publish what.
//!
//! Begin with `runner.rs` (all examples of a tool) and `world.rs` (what one example's tool sees).
//!
//! # Example
//! ```no_run
//! use std::sync::Arc;
//!
//! use rcrt_breadcrumb::{ToolDefinition, ToolFailure};
//! use rcrt_egress::Egress;
//! use rcrt_examples::{ExampleRunner, has_failed};
//! use rcrt_sandbox::Sandbox;
//! use tokio_util::sync::CancellationToken;
//! use uuid::Uuid;
//!
//! /// Whether no example of the tool fails. The validators found no error in its definition.
//! async fn holds(
//!     sandbox: Arc<Sandbox>,
//!     egress: Arc<Egress>,
//!     tool: Arc<ToolDefinition>,
//! ) -> Result<bool, ToolFailure> {
//!     let runner = ExampleRunner::new(sandbox, egress);
//!     let reports = runner.run(Uuid::nil(), &tool, &CancellationToken::new()).await?;
//!     Ok(!has_failed(&reports))
//! }
//! ```

mod calls;
mod comparison;
mod fuzz;
mod live;
mod network;
mod record;
mod recording;
mod records;
mod report;
mod runner;
mod update;
mod world;

pub use live::{LiveReport, LiveRun};
pub use report::{ExampleReport, ExampleStatus, MissingField, has_failed};
pub use runner::ExampleRunner;
pub use update::updated;
