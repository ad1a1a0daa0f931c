//! Working memory (entries that agents keep for a limited time), guides for tools, skills, and the
//! chunks of results that are too large to return at once.
//!
//! Everything is stored in breadcrumbs. This crate does not depend on the queue or the network. All
//! agents of a tenant share the entries: a namespace groups entries and does not restrict access.
//!
//! Begin with `working_memory.rs`, `large_result/mod.rs` and `tools/mod.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod entry;
mod guides;
mod jsonpath_cost;
mod key;
pub mod large_result;
mod skills;
mod text_search;
mod tools;
mod working_memory;

pub use entry::{Entry, EntryRole, NewEntry, Saved};
pub use key::{EntryKey, MAX_DEPTH, MAX_PATH_CHARS, Namespace};
pub use tools::tools;
pub use working_memory::{EntryPage, Selection, WorkingMemory};
