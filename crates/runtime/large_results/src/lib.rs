//! Results that are too large to return whole. [`shorten`] splits one into chunks in the working
//! memory of the caller's session, and the caller gets a table of the chunks. [`StoredResult`]
//! reads them. [`WorkingMemory`] is the entries that agents keep for a limited time, by namespace
//! and key.
//!
//! Everything is stored in breadcrumbs. This crate does not depend on the queue or the network, and
//! does not know the tools that read entries. All agents of a tenant share the entries: a namespace
//! groups entries and does not restrict access.
//!
//! Begin with `shorten.rs`, `parts.rs` (how a result is split) and `working_memory.rs`.
//!
//! # Example
//! ```no_run
//! use std::sync::Arc;
//!
//! use rcrt_breadcrumb::{Profiles, Records};
//! use rcrt_executors::TriggerChain;
//! use rcrt_large_results::{EntryKey, Namespace, NewEntry, Selection, WorkingMemory};
//!
//! async fn remember(store: Arc<dyn Records>) -> Result<(), Box<dyn std::error::Error>> {
//!     let memory = WorkingMemory::new(store, TriggerChain::default(), Profiles::default(), None);
//!     let session = Namespace::session("chat-1");
//!     let key = EntryKey::read("city", &session)?;
//!     memory.save(&NewEntry::new(key, "Oslo".into())).await?;
//!     let page = memory.page(&Selection::of(session), 0).await?;
//!     assert_eq!(page.entries[0].value, "Oslo");
//!     Ok(())
//! }
//! ```

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod blocks;
mod entry;
mod excerpt;
mod headings;
mod index;
mod json;
mod json_path;
mod json_size;
mod json_text;
mod key;
mod outline;
mod page;
mod parts;
#[cfg(test)]
mod properties;
mod shorten;
mod stored;
mod text;
mod threshold;
mod working_memory;

pub use entry::{EntryRole, MemoryEntry, NewEntry, Saved};
pub use excerpt::{at_most, one_line, text_of, truncate};
pub use json::{Begin, leaves, leaves_and_containers};
pub use json_path::{JsonPathStep, written};
pub use json_size::json_chars;
pub use key::{EntryKey, MAX_DEPTH, MAX_PATH_CHARS, Namespace};
pub use outline::Section;
pub use page::{ChunkedPage, PageLocation};
pub use parts::Layout;
pub use shorten::{Shortened, shorten};
pub use stored::{ResultChunk, StoredResult, StoredResultError};
pub use threshold::{MAX_CHUNK_CHARS, MAX_RESULT_BYTES, MIN_CHUNK_CHARS, Settings};
pub use working_memory::{EntryPage, Selection, WorkingMemory};
