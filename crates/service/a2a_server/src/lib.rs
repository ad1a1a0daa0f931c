//! The server side of A2A 1.0 over the calls of a tenant: a message becomes a `tool.request.v1`,
//! and its call is the task. The id of the task is the id of the request's record.
//!
//! This crate knows records, calls and events by the traits of `breadcrumb`. It deliberately does
//! not know HTTP: the crate `server` has the routes, checks tokens, and sends what this crate
//! returns. A task is visible to the agent that sent its message and to no one else. `wake.rs` is
//! the one part of the client's side: it receives the push notifications of other agents.
//!
//! Begin with `agent.rs` (the operations) and `skill.rs` (from a message to a request).
//! `error.rs` is the one place where errors of the store become errors of the protocol.
//!
//! # Example
//! ```no_run
//! use rcrt_a2a_server::{A2aAgent, Get};
//! use rcrt_a2a_types::{A2aError, Task};
//!
//! /// `agent`: the tenant as the caller of a route sees it.
//! async fn task(agent: &A2aAgent, id: &str) -> Result<Task, A2aError> {
//!     agent.get(&Get { id: id.to_owned(), history_length: Some(0) }).await
//! }
//! ```

mod agent;
mod card;
mod error;
mod follow;
mod list;
mod params;
mod push;
mod rpc;
mod settings;
mod skill;
mod task;
mod wake;

pub use agent::{A2aAgent, Updates};
pub use card::{Card, card};
pub use error::from_store;
pub use params::{Get, List, PushConfig, PushName, Send};
pub use push::notification;
pub use rpc::{Answer, Call};
pub use settings::{CARD_SETTINGS, CardSettings, SkillSettings};
pub use wake::{is_notified, wake};
