//! A tenant's tools, guides and records for clients of the Model Context Protocol (MCP): over HTTP
//! ([`HttpEndpoint`]) and over stdin and stdout ([`serve_stdio`]). Both serve the revision
//! 2026-07-28, which has no sessions, and the earlier ones, which begin with `initialize`.
//!
//! A call is an ordinary request in the queue, and its response is the result. The crate
//! deliberately knows neither Postgres nor routes and tokens: everything that it serves comes from
//! a [`Principal`]. It does not know MCP servers whose tools are offered here, either.
//!
//! Begin with `handler.rs` (one method for each method of the protocol), `tools/call.rs` (a call)
//! and `changes.rs` (notifications).
//!
//! # Example
//! ```no_run
//! use std::sync::Arc;
//!
//! use rcrt_mcp_server::{Principal, StdioError, serve_stdio};
//! use tokio_util::sync::CancellationToken;
//!
//! /// Serves the client that started this program. `principal`: what it can see and call.
//! async fn serve(principal: Arc<dyn Principal>, stop: CancellationToken) -> Result<(), StdioError> {
//!     serve_stdio(principal, stop).await
//! }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod changes;
mod completion;
mod endpoint;
mod errors;
mod handler;
mod input_required;
mod page;
mod principal;
mod prompts;
mod published;
mod resources;
mod sessions;
mod stdio;
mod tasks;
mod tools;

pub use endpoint::{EndpointError, HttpEndpoint};
pub use principal::Principal;
pub use stdio::{StdioError, serve_stdio};
