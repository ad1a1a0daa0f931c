//! What runs a tool: the [`Executor`] trait and one module per family. The sandbox executor runs `tool.code.v1`; native
//! executors run `tool.v1`. Every request of a tool to the outside leaves through [`egress`], under its permissions.
//!
//! It knows no queue and no lease: the runner decides what runs when, and writes the answers.

mod allowance;
pub mod builtin;
mod chain;
mod checking;
pub mod egress;
mod executor;
mod go_ahead;
mod progress;
mod registry;
mod requests;
pub mod rest;
mod sandboxed;
pub mod trace;
mod vault;
mod world;

pub use builtin::{BuiltinExecutor, NativeTool};
pub use chain::Chain;
pub use executor::{Executor, Hold, ToolCall, ToolOutput};
pub use go_ahead::{GivesGoAhead, GoAhead, NeverGiven};
pub use progress::{Progress, Unheard};
pub use registry::Executors;
pub use rest::RestExecutor;
pub use sandboxed::SandboxExecutor;
pub use vault::{HeldSecret, Unsearchable, Vault};
pub use world::CallWorld;
