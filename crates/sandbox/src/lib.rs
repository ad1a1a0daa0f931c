//! TypeScript → a result, inside a locked-down worker process: the parent's side. Starts workers by exec, speaks the
//! protocol with them over one inherited socket, keeps the limits, and kills for a breach.
//!
//! It knows no store, no HTTP and no engine: what a tool may do to the world is an op that a [`World`] performs, and
//! the engine lives in the `isolate` crate, in the worker.

mod invocation;
mod world;

pub use invocation::{ConsoleLevel, ConsoleLine, Invocation, Outcome, RequestContext, Script};
pub use world::{ApiCall, BodyStream, FetchRequest, FetchResponse, OpError, Redirect, World};
