//! Claims calls, finds their tools, runs them, and writes the answers; follows the store's events, so that a tool that
//! is written is live at once; keeps leases, caps and its word on shutdown.
//!
//! It knows the store only as [`breadcrumb::Breadcrumbs`] and what runs a tool only as [`executors::Executor`]. It
//! deliberately does not know Postgres, HTTP, the engine, or whether others run beside it: what must happen once across
//! runners is decided in the store, by leases and idempotency keys.

mod ahead;
mod answering;
mod backoff;
mod bootstrap;
mod call;
mod calls;
mod catalog_part;
mod claiming;
mod deadline;
mod elsewhere;
mod finding;
mod following;
mod hints;
mod judging;
mod lacks;
mod leases;
mod loading;
mod options;
mod own_event;
mod pace;
mod places;
mod preparing;
mod progress;
mod publishing;
mod rcrt_catalog;
mod readiness;
mod reconciling;
mod records;
mod registry;
mod remembered;
mod room;
mod runner;
mod running;
mod secrets;
mod stages;
mod standing_by;
mod subscriptions;
mod telemetry;
mod tool;
mod tool_errors;
mod unwritten;
mod voice;
mod wishes;

pub use judging::judge;
pub use options::RunnerOptions;
pub use runner::{Runner, RunnerError};
