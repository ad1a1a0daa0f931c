//! JSON Schema 2020-12, compiled once and checked often, with bounds on what a schema and a check may cost.
//!
//! It knows no tool, no store and no network: nothing is ever fetched.

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
