//! JSON Schema 2020-12: schemas are compiled once and checked many times, with bounds on the cost
//! of a schema and of a check.
//!
//! This crate knows no tools, stores or networks. References to other documents are never fetched.
//!
//! Begin with `schema.rs`, then `cost.rs`, `errors.rs`, `pattern.rs` and `budget.rs` (the bounds).
//!
//! # Example
//! ```
//! use rcrt_json_schema::Schema;
//! use serde_json::json;
//!
//! let schema = Schema::compile(&json!({
//!     "type": "object",
//!     "properties": {"city": {"type": "string"}, "days": {"type": "integer", "maximum": 14}},
//!     "required": ["city"],
//! }))?;
//! assert!(schema.check(&json!({"city": "Oslo", "days": 3})).is_empty());
//!
//! let violations = schema.check_as("input", &json!({"city": "Oslo", "days": 30}));
//! assert_eq!(violations[0].field, "input.days");
//! # Ok::<(), rcrt_breadcrumb::Violations>(())
//! ```

mod alternatives;
mod budget;
mod by_hash;
mod cost;
mod errors;
mod expansion;
mod graph;
mod lint;
mod matching;
mod message;
mod multiple_of;
mod path;
mod pattern;
mod schema;

pub use budget::Budget;
pub use lint::{Lint, lint};
pub use schema::{MAX_VIOLATIONS, Schema};
