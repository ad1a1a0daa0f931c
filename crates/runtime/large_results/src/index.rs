//! The index of a chunked result, stored beside the chunks, and the table that the caller gets.

use std::fmt::Write;
use std::time::Duration;

use serde_json::{Value, json};

use super::outline::{Section, cut_below, depth};
use super::parts::{Layout, Split};
use super::threshold::MIN_CHUNK_CHARS;
use crate::excerpt::{at_most, one_line};

/// The names of a result's entries. The name of a page is its address, and colons separate the
/// parts.
pub(crate) fn chunk_name(base: &str, number: usize) -> String {
    format!("{}{number}", chunk_prefix(base))
}

/// The name of each chunk, without its number.
pub(crate) fn chunk_prefix(base: &str) -> String {
    if is_page(base) { format!("{base}:chunk:") } else { format!("{base}-chunk") }
}

pub(crate) fn index_name(base: &str) -> String {
    if is_page(base) { format!("{base}:index") } else { format!("{base}-index") }
}

/// The base name of the result whose index has this name.
pub(crate) fn base_of_index(name: &str) -> Option<&str> {
    name.strip_suffix(if is_page(name) { ":index" } else { "-index" })
}

fn is_page(name: &str) -> bool {
    name.rsplit('/').next().is_some_and(|name| name.starts_with("web:"))
}

/// The index as an agent reads it: never larger than the smallest chunk, so that it is always
/// returned whole.
pub(crate) fn index(tool: &str, base: &str, split: &Split) -> Value {
    let mut outline = split.outline.clone();
    let mut with_about = true;
    let mut left_out = false;
    loop {
        let chunk = |(index, part): (usize, &super::parts::SplitChunk)| {
            let key = chunk_name(base, index + 1);
            let mut chunk = json!({"chunk": index + 1, "key": key, "characters": part.characters});
            if let Layout::Text { starts, .. } = &split.layout {
                chunk["start"] = json!(starts.get(index));
            }
            if with_about {
                chunk["about"] = json!(part.about);
            }
            chunk
        };
        let mut value = json!({
            "key": base,
            "tool": tool,
            "kind": match split.layout { Layout::Text { .. } => "text", Layout::Json { .. } => "json" },
            "characters": split.characters,
            "chunk_keys": format!("{} to {}", chunk_name(base, 1), chunk_name(base, split.parts.len())),
            "chunks": split.parts.iter().enumerate().map(chunk).collect::<Vec<_>>(),
            "outline": with_keys(base, &outline),
        });
        if left_out {
            value["left_out"] = json!("the outline was too long: its deeper or later sections are left out");
        }
        let levels = depth(&outline);
        if super::json_size::json_chars(&value) <= MIN_CHUNK_CHARS {
            return value;
        }
        if levels > 1 {
            cut_below(&mut outline, levels - 1);
            left_out = true;
        } else if outline.len() > 20 {
            outline.truncate(outline.len() / 2);
            left_out = true;
        } else if with_about {
            with_about = false;
        } else if value["chunks"].as_array().is_some_and(|chunks| !chunks.is_empty()) {
            // Hundreds of chunks of one size need no list; their numbers are enough.
            value["chunks"] = json!([]);
            value["left_out"] = json!("too many chunks to list; the outline names some");
            return value;
        } else {
            return value;
        }
    }
}

/// The outline, each section with the key of the chunk in which it starts.
fn with_keys(base: &str, sections: &[Section]) -> Vec<Value> {
    let with_key = |section: &Section| {
        let key = chunk_name(base, section.chunk);
        let mut described = json!({"title": section.title, "chunk": section.chunk, "key": key});
        if let Some(start) = section.start {
            described["start"] = start.into();
        }
        if let Some(path) = &section.path {
            described["path"] = path.as_str().into();
        }
        if !section.sections.is_empty() {
            described["sections"] = with_keys(base, &section.sections).into();
        }
        described
    };
    sections.iter().map(with_key).collect()
}

/// The key as code in a table cell.
fn cell(key: &str) -> String {
    let key = key.replace('|', "\\|");
    if key.contains('`') { key } else { format!("`{key}`") }
}

/// `1 chunk`, `2 chunks`.
pub(crate) fn counted(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// What the caller gets instead of the result, which has `characters` characters; at most `most`
/// characters.
pub(crate) fn table(tool: &str, base: &str, split: &Split, characters: usize, most: usize, keep: Duration) -> String {
    let minutes = counted(keep.as_secs().div_ceil(60), "minute");
    let chunks = counted(split.parts.len() as u64, "chunk");
    let head = format!(
        "The result of {tool} has {characters} characters, more than the limit of {most}. It is kept for \
         {minutes} in {chunks}:\n\n| # | Heading | Key |\n|---|---|---|\n"
    );
    let example = match split.layout {
        Layout::Text { .. } => "",
        Layout::Json { .. } => {
            "\n- query the whole document with JSONPath: result_jsonpath {\"key\": KEY, \"path\": \"$.…\"}"
        }
    };
    let foot = format!(
        "\nKEY is \"{base}\".\n- read a chunk: get_from_working_memory {{\"key\": \"{base}-chunk1\"}}\n- see the outline: \
         get_from_working_memory {{\"key\": \"{base}-index\"}}\n- find words: result_search {{\"key\": KEY, \"query\": \
         \"…\"}}\n- read from any character: result_slice {{\"key\": KEY, \"start\": 0}}{example}\n"
    );
    let mut left = most.saturating_sub(head.chars().count() + foot.chars().count());
    if head.chars().count() + foot.chars().count() + 60 > most {
        let short = format!(
            "The result has {characters} characters and is kept for {minutes} in {chunks}. Read one with \
             get_from_working_memory {{\"key\": \"{base}-chunk1\"}}; {base}-index lists them."
        );
        return short.chars().take(most).collect();
    }
    let mut rows = String::new();
    for (index, part) in split.parts.iter().enumerate() {
        let about = one_line(&part.about).replace('\\', "\\\\").replace('|', "\\|");
        let key = cell(&chunk_name(base, index + 1));
        let row = format!("| {} | {} | {key} |\n", index + 1, at_most(&about, 160));
        let more = counted((split.parts.len() - index) as u64, "more chunk");
        let more = format!("| … | {more} | see the index |\n");
        let is_last = index + 1 == split.parts.len();
        let room_for_more = if is_last { 0 } else { more.chars().count() };
        if row.chars().count() + room_for_more > left {
            let _ = write!(rows, "{}", at_most(&more, left));
            break;
        }
        left -= row.chars().count();
        rows.push_str(&row);
    }
    head + &rows + &foot
}
