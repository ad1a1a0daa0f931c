//! Working memory: entries that agents keep for a while, the guides for tools, and the parts of results that are too
//! large to be handed over whole.
//!
//! It keeps everything in breadcrumbs and knows no queue and no network. Entries are shared by a tenant: a namespace
//! orders them, it keeps nobody out.

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
