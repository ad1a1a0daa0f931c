//! What runs a tool: the [`Executor`] trait and one module per family. The sandbox executor runs `tool.code.v1`; native
//! executors run `tool.v1`. Every request of a tool to the outside leaves through [`egress`], under its permissions.
//!
//! It knows no queue and no lease: the runner decides what runs when, and writes the answers.

pub mod builtin;
mod call_quota;
mod effect_gate;
pub mod egress;
mod executor;
mod host_ops;
mod load_check;
mod progress;
mod provenance;
mod registry;
pub mod rest;
mod sandbox_executor;
pub mod trace;
mod trigger_chain;
mod vault;

pub use builtin::{BuiltinExecutor, NativeTool};
pub use effect_gate::{EffectGate, EffectGateOpener, NeverOpened};
pub use executor::{Executor, Hold, ToolCall, ToolOutput};
pub use host_ops::CallHostOps;
pub use progress::{DiscardProgress, ProgressSink};
pub use registry::Executors;
pub use rest::RestExecutor;
pub use sandbox_executor::SandboxExecutor;
pub use trigger_chain::TriggerChain;
pub use vault::{HeldSecret, Unsearchable, Vault};
