//! Ranks the tools and services of a tenant for a text: by their words (BM25), and by the vectors
//! that the store has of their records.
//!
//! It deliberately does not know who asks: callers say which tools the asker can call. It does no
//! I/O of its own; records are read through [`rcrt_breadcrumb::Records`].
//!
//! Begin with `tools.rs` (the index of a tenant's tools), `index.rs` (the ranking by words) and
//! `services.rs` (A2A agents, MCP servers and tool families).

mod index;
mod meaning;
mod question;
mod scoring;
mod service_records;
mod services;
mod tools;
mod words;

pub use meaning::Meaning;
pub use question::{MEANING_WEIGHT, Question};
pub use service_records::ServiceRecords;
pub use services::{FoundService, MAX_SERVICES, ServiceKind};
pub use tools::{FoundTool, MAX_TOOLS, ToolSearch};
