//! Ranks the tools and services of a tenant for a text: by their words (BM25), and by the vectors
//! that the store has of their records.
//!
//! It deliberately does not know who asks: callers say which tools the asker can call. It does no
//! I/O of its own; records are read through [`rcrt_breadcrumb::Records`].
//!
//! Begin with `tools.rs` (the index of a tenant's tools), `index.rs` (the ranking by words) and
//! `services.rs` (A2A agents, MCP servers and tool families).
//!
//! # Example
//! ```
//! use rcrt_breadcrumb::Registration;
//! use rcrt_tool_search::{Question, ToolSearch};
//! use serde_json::json;
//! use uuid::Uuid;
//!
//! let mut search = ToolSearch::default();
//! for (name, description) in [("forecast", "Tells the weather of a city."), ("send_mail", "Sends a letter.")] {
//!     let tool: Registration = serde_json::from_value(json!({
//!         "name": name,
//!         "description": description,
//!         "parameters": true,
//!         "source": "native",
//!         "tool_id": Uuid::new_v4(),
//!         "tool_version": 1,
//!     }))?;
//!     search.insert(tool);
//! }
//!
//! let question = Question::new("query", "what is the weather in Oslo")?;
//! let found = search.tools(&question, |_tool| true, 5);
//! assert_eq!(found[0].name, "forecast");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

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
