//! The Model Context Protocol at `/mcp`, as its clients use it: JSON-RPC messages over HTTP.

#![allow(clippy::needless_pass_by_value)] // Messages are written as literals.

mod calls;
mod client;
mod input;
mod lists;
mod notifications;
mod sessions;
