//! Results that are too large to return whole. They are split into chunks in the working memory of
//! the caller's session, and the caller gets a table of the chunks.

mod blocks;
mod headings;
mod index;
mod json;
mod json_path;
mod json_size;
mod json_text;
mod outline;
mod page;
mod parts;
#[cfg(test)]
mod properties;
mod shorten;
mod stored;
mod text;
mod threshold;
mod truncate;

pub use outline::Section;
pub use page::{ChunkedPage, PageLocation};
pub use shorten::{Shortened, shorten};
pub use threshold::{MAX_CHUNK_CHARS, MIN_CHUNK_CHARS, Settings};
pub use truncate::truncate;

pub(crate) use json::{leaves, leaves_and_containers};
pub(crate) use json_path::{Step, written};
pub(crate) use json_size::json_chars;
pub(crate) use parts::Layout;
pub(crate) use stored::{Error, ResultChunk, StoredResult};

/// The text that is measured: a string itself, any other result as compact JSON.
pub(crate) fn text_of(result: &serde_json::Value) -> std::borrow::Cow<'_, str> {
    match result {
        serde_json::Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}
