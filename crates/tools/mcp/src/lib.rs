//! MCP servers as tools. An operator describes a server in a `mcp.server.v1` record; the
//! [`Connector`] connects to it and registers its tools as `tool.v1` records; the [`McpExecutor`]
//! calls them.
//!
//! A tool's definition is pinned by a hash when it is registered. A server that changes a
//! definition later changes nothing here: the new one waits in a `mcp.change.v1` record until a
//! curator accepts it, and until then calls of the tool are refused.
//!
//! The crate `rmcp` implements the protocol itself. The transports are our own: a program in the
//! jail (`transport/stdio.rs`), and HTTP through the egress gate (`transport/http_client.rs`).
//!
//! This crate does not know the queue. Versions and idempotency keys in the store decide what
//! happens once if several runners follow the same servers.
//!
//! Begin with `server.rs` (the record), `connection.rs`, `definition.rs` and `connector/mod.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod attempt;
pub mod config_file;
mod connection;
mod connector;
mod definition;
mod executor;
mod failure;
mod handler;
pub mod oauth;
mod output;
mod plain_text;
mod questions;
mod records;
mod secrets;
mod server;
mod servers;
mod settings;
mod text;
mod tools;
mod transport;

pub use connector::Connector;
pub use definition::tool_name;
pub use executor::{KIND, McpExecutor};
pub use records::{Change, ServerState, Status, Summary, accept_change, changes, remove_server_records, server_record};
pub use server::{Auth, Elicitation, ServerConfig, Transport};
pub use servers::Servers;
pub use settings::Settings;
pub use tools::tools;
