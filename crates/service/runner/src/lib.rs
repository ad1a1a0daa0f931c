//! Claims calls, finds their tools, runs them and writes the responses. It follows the store's
//! events, so a tool works as soon as its record is written. It keeps leases alive, limits how many
//! calls run, and finishes or releases its calls when it stops.
//!
//! It uses the store only as [`rcrt_breadcrumb::Breadcrumbs`], and what runs a tool only as
//! [`rcrt_executors::Executor`]. It deliberately does not know Postgres, HTTP, the engine, or how
//! many other runners there are. What must happen once across runners is decided in the store, by
//! leases and idempotency keys.
//!
//! Begin with `runner.rs` (the parts and their order), `dispatch/claim_loop.rs` and
//! `execution/call.rs` (one call from its tool to its response). The folders, each of which imports
//! only itself and those before it: `registry` (the tools), `coordination` (leases, slots, other
//! runners), `publishing` (the catalog), `execution` (one call), `dispatch` (which calls are taken,
//! and when).
//!
//! # Example
//! ```no_run
//! use std::sync::Arc;
//!
//! use rcrt_breadcrumb::Breadcrumbs;
//! use rcrt_executors::{BuiltinExecutor, Executors};
//! use rcrt_runner::{Runner, RunnerError, RunnerOptions};
//! use tokio_util::sync::CancellationToken;
//!
//! /// `store`: as an agent with the role `runner` sees it, in this process or by the crate `client`.
//! async fn run(store: Arc<dyn Breadcrumbs>, stop: CancellationToken) -> Result<(), RunnerError> {
//!     let executors = Executors::new().with_native("builtin", Arc::new(BuiltinExecutor::new()));
//!     Runner::new(store, executors, RunnerOptions::default()).run(stop).await
//! }
//! ```

mod backoff;
mod claim_health;
mod coordination;
mod dispatch;
mod event_follower;
mod execution;
mod on_behalf_of;
mod options;
mod publishing;
mod registry;
mod runner;
mod subscriptions;

pub use claim_health::ClaimHealth;
pub use dispatch::local::{LocalDispatch, LocalRegistration};
pub use options::{AbsentProtection, Protections, RunnerOptions};
pub use runner::{Runner, RunnerError};
