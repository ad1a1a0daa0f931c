//! JSON Schema 2020-12: compiled once, checked many times, with bounds on the cost of a schema and
//! of a check.
//!
//! It knows no tool, no store and no network: references to other documents are never fetched.
//!
//! Begin with `schema.rs`, then `cost.rs` and `budget.rs` (the bounds).

mod budget;
mod by_hash;
mod cost;
mod graph;
mod lint;
mod message;
mod path;
mod pattern;
mod schema;

pub use budget::Budget;
pub use lint::{Lint, lint};
pub use schema::{MAX_VIOLATIONS, Schema};
