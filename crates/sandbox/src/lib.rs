//! TypeScript → a result, inside a locked-down worker process: the parent's side. Starts workers, speaks the
//! protocol with them over one inherited socket, keeps the limits, and kills for a breach.
//!
//! It knows no store, no HTTP and no engine: what a tool may do to the world is an op that a [`HostOps`] performs, and
//! the engine lives in the `isolate` crate, in the worker.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod code_cache;
mod console;
mod ending;
mod error;
mod host_ops;
mod invocation;
pub mod level;
mod limits;
mod ops;
mod options;
mod pool;
mod process;
mod progress;
pub mod protocol;
mod report;
mod sandbox;
mod snapshot;
mod spawner;
mod stack;
mod supervise;
mod upload;
mod worker;
mod zygote;

pub use breadcrumb::Isolation;
pub use code_cache::CodeCache;
pub use error::SandboxError;
pub use host_ops::{ApiCall, BodyStream, FetchRequest, FetchResponse, HostOps, OpError, Redirect};
pub use invocation::{ConsoleLevel, ConsoleLine, Invocation, Outcome, RequestContext, Script, Task};
pub use level::Level;
pub use options::{CgroupUse, SandboxOptions, WorkerCommand};
pub use report::{CgroupLocation, Protection, ProtectionState, Report};
pub use sandbox::Sandbox;
