//! Claims calls, finds their tools, runs them and writes the responses. It follows the store's
//! events, so a tool works as soon as its record is written. It keeps leases alive, limits how many
//! calls run, and finishes or releases its calls when it stops.
//!
//! It uses the store only as [`rcrt_breadcrumb::Breadcrumbs`], and what runs a tool only as
//! [`rcrt_executors::Executor`]. It deliberately does not know Postgres, HTTP, the engine, or how many
//! other runners there are. What must happen once across runners is decided in the store, by leases
//! and idempotency keys.
//!
//! Begin with `runner.rs` (the parts and their order), `claim_loop.rs` and `call.rs` (one call from
//! its tool to its response). `registry.rs` and `tool_loader.rs` have the tools.

mod backoff;
mod bootstrap;
mod call;
mod calls;
mod catalog_part;
mod catalog_publisher;
mod claim_loop;
mod claim_pacing;
mod deadline;
mod event_follower;
mod leases;
mod load_queue;
mod local_dispatch;
mod missing_requirements;
mod options;
mod peer_runners;
mod previous_catalog;
mod progress_writer;
mod queue_hints;
mod rcrt_catalog;
mod readiness;
mod reconciling;
mod registry;
mod request_event;
mod response_writer;
mod runner;
mod running;
mod secrets;
mod slot_pool;
mod slots;
mod speculative_call;
mod speculative_run;
mod stages;
mod subscriptions;
mod telemetry;
mod tool;
mod tool_access;
mod tool_errors;
mod tool_loader;
mod tool_preparation;
mod tool_records;
mod tool_validation;
mod voice;

pub use options::RunnerOptions;
pub use runner::{Runner, RunnerError};
pub use tool_validation::validate_tool;
