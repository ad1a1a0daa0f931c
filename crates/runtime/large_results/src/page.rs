//! A web page in chunks: stored under its address, section by section, with a table of the chunks.

use std::fmt::Write;
use std::time::Duration;

use rcrt_breadcrumb::{StoreError, ToolRequest};
use serde_json::{Value, json};

use super::index::{chunk_name, counted, index_name};
use super::parts::{Split, split_page};
use super::shorten::ResultWriter;
use crate::excerpt::{at_most, one_line};
use crate::{EntryKey, Namespace, WorkingMemory};

/// The maximum length of a heading in the table, in characters.
const MAX_HEADING: usize = 120;

/// A page, split at its headings.
pub struct ChunkedPage(Split);

/// Where a page is stored.
pub struct PageLocation<'p> {
    pub session: &'p str,
    /// The prefix of the names of its entries: `web:` and an identifier of the address. Without
    /// `/`.
    pub name: &'p str,
    pub keep: Duration,
    pub request: &'p ToolRequest,
    pub memory: WorkingMemory,
}

impl ChunkedPage {
    /// Markdown in chunks of at most `most` characters: split at headings of levels 1 to 3, larger
    /// sections at blank lines, then anywhere. Slow for a large page.
    pub fn split(markdown: &str, most: usize) -> Self {
        Self(split_page(markdown, most.max(1)))
    }

    /// The number of chunks.
    pub fn parts(&self) -> usize {
        self.0.parts.len()
    }

    /// The chunk with this number, from 1.
    pub fn part(&self, number: usize) -> Option<&str> {
        self.0.parts.get(number.checked_sub(1)?)?.value.as_str()
    }

    /// Stores the chunks, then their index. Returns the response's `large_result` metadata.
    pub async fn keep(&self, location: PageLocation<'_>) -> Result<Value, StoreError> {
        let kept = ResultWriter {
            base: EntryKey::of(&Namespace::session(location.session), location.name),
            memory: location.memory,
            tool: location.request.tool.clone(),
            keep: location.keep,
            saved_by: location.request.agent_id,
        };
        kept.write(&self.0).await?;
        Ok(json!({"key": kept.base.path(), "chunks": self.parts(), "characters": self.0.characters}))
    }

    /// What the caller of a stored page gets: the heading and the key of as many chunks as fit into
    /// `room` characters. `key` is the one in the metadata.
    pub fn table(&self, key: &str, keep: Duration, room: usize) -> String {
        let chunks = self.parts();
        let (counted_chunks, minutes) =
            (counted(chunks as u64, "chunk"), counted(keep.as_secs().div_ceil(60), "minute"));
        let mut table = format!(
            "The page has {} characters. It is kept in working memory for {minutes}, in {counted_chunks}. Read the \
             chunks that matter with get_from_working_memory before you draw conclusions.\n- outline: \
             get_from_working_memory {{\"key\": \"{}\"}}\n- find words: result_search {{\"key\": \"{key}\", \"query\": \
             \"…\"}}\n\n| # | Heading | Characters | Key |\n|---|---|---|---|\n",
            self.0.characters,
            index_name(key)
        );
        let mut left = room.saturating_sub(table.chars().count());
        for (index, part) in self.0.parts.iter().enumerate() {
            let heading = at_most(&one_line(&part.about), MAX_HEADING).replace('\\', "\\\\").replace('|', "\\|");
            let number = index + 1;
            let row = format!("| {number} | {heading} | {} | `{}` |\n", part.characters, chunk_name(key, number));
            let more = format!("| … | {} more: see the outline | | |\n", chunks - index);
            let needed = row.chars().count() + if number == chunks { 0 } else { more.chars().count() };
            if needed > left {
                let _ = write!(table, "{more}");
                break;
            }
            left -= row.chars().count();
            table.push_str(&row);
        }
        table
    }
}
