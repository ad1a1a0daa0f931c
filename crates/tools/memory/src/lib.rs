//! The tools for working memory, guides for tools, skills, and the chunks of large results. The
//! entries and the chunks themselves are in [`rcrt_large_results`].
//!
//! Begin with `tools/mod.rs`.

#![cfg_attr(test, allow(clippy::unwrap_used, clippy::expect_used, clippy::panic))]

mod jsonpath_cost;
mod skills;
mod text_search;
mod tools;

pub use tools::tools;
