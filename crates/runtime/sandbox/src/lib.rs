//! Runs TypeScript in a locked-down worker process and returns the result: the parent's side. It
//! starts workers, exchanges frames with them over one inherited socket, enforces the limits, and
//! kills a worker that exceeds them.
//!
//! It does not depend on a store, HTTP or an engine. A [`HostOps`] performs the ops that tool code
//! requests; the engine is in the crate `isolate`, in the worker.
//!
//! Begin with `sandbox.rs` (the entry), `pool.rs` (the workers) and `supervise.rs` (one call in a
//! worker). `protocol` has the messages.
//!
//! # Example
//! ```no_run
//! use std::sync::Arc;
//!
//! use rcrt_sandbox::{HostOps, Invocation, Sandbox, SandboxError, SandboxOptions, WorkerCommand};
//! use tokio_util::sync::CancellationToken;
//!
//! /// `host` performs what the code asks for, within its permissions.
//! async fn run(invocation: Invocation, host: Arc<dyn HostOps>) -> Result<(), SandboxError> {
//!     let worker = WorkerCommand { program: "/usr/bin/rcrt".into(), args: vec!["sandbox-worker".into()] };
//!     // Fails unless every required protection is in force.
//!     let sandbox = Sandbox::start(SandboxOptions::new(worker)).await?;
//!     let outcome = sandbox.run(invocation, host, CancellationToken::new()).await;
//!     match outcome.result {
//!         Ok(output) => tracing::info!(%output, "the tool finished"),
//!         Err(failure) => tracing::warn!(%failure, "the tool failed"),
//!     }
//!     sandbox.close().await;
//!     Ok(())
//! }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod call_end;
mod call_frames;
mod call_limits;
mod code_cache;
mod console;
mod error;
mod host_ops;
mod invocation;
pub mod level;
mod limits;
mod memory_pressure;
mod ops;
mod options;
mod pool;
mod process;
mod progress;
pub mod protocol;
mod report;
mod sandbox;
mod sharing;
mod snapshot;
mod spawner;
mod stack;
mod supervise;
mod upload;
mod worker;
mod zygote;

pub use code_cache::CodeCache;
pub use error::SandboxError;
pub use host_ops::{ApiCall, CallObserver, HostOps, ProcessUsage};
pub use invocation::{ConsoleLevel, ConsoleLine, Invocation, RequestContext, RunOutcome, Script, Seed, Task};
pub use level::Level;
pub use options::{CgroupUse, SandboxOptions, WorkerCommand};
pub use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, Isolation, OpError, Redirect};
pub use report::{CgroupLocation, Protection, ProtectionState, Report};
pub use sandbox::Sandbox;
pub use sharing::Sharing;
