//! Maps positions in stack traces from the JavaScript that ran to the author's source.

use std::borrow::Cow;
use std::fmt::Write as _;

use crate::Script;

/// The URL scheme of the tool's module in the worker.
const SCHEME: &str = "tool:///";
/// Scripts of the worker itself.
const OWN: [&str; 2] = ["ext:", "sandbox:"];

/// The text with positions in the author's source, without the worker's own frames, and without
/// U+0000, which records cannot store.
pub fn mapped(text: &str, script: &Script) -> String {
    let text = &storable(text);
    if !text.contains(SCHEME) && !text.contains("    at ") {
        return text.to_owned();
    }
    let lines: Vec<Cow<'_, str>> =
        text.lines().filter(|line| !is_own_frame(line)).map(|line| map_line(line, script)).collect();
    lines.join("\n")
}

/// Replaces U+0000 with U+FFFD.
pub fn storable(text: &str) -> String {
    text.replace('\0', "\u{FFFD}")
}

fn is_own_frame(line: &str) -> bool {
    let Some(location) = line.trim_start().strip_prefix("at ") else { return false };
    let location = location.rsplit_once('(').map_or(location, |(_, inside)| inside);
    let location = location.strip_prefix("async ").unwrap_or(location);
    OWN.iter().any(|own| location.starts_with(own))
}

fn map_line<'l>(line: &'l str, script: &Script) -> Cow<'l, str> {
    let name = format!("{SCHEME}{}", script.file_name);
    let mut rest = line;
    let mut mapped = String::new();
    while let Some(at) = rest.find(&name) {
        mapped.push_str(&rest[..at]);
        mapped.push_str(&script.file_name);
        rest = &rest[at + name.len()..];
        if let Some((line, column, length)) = position(rest) {
            let (line, column) =
                script.source_map.as_ref().and_then(|map| map.original(line, column)).unwrap_or((line, column));
            let _ = write!(mapped, ":{line}:{column}");
            rest = &rest[length..];
        }
    }
    if mapped.is_empty() {
        return Cow::Borrowed(line);
    }
    mapped.push_str(rest);
    Cow::Owned(mapped)
}

/// Parses `:line:column` at the start; returns its length too.
fn position(text: &str) -> Option<(u32, u32, usize)> {
    let (line, after) = number(text)?;
    let (column, end) = number(after)?;
    Some((line, column, text.len() - end.len()))
}

fn number(text: &str) -> Option<(u32, &str)> {
    let text = text.strip_prefix(':')?;
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    Some((text.get(..digits)?.parse().ok()?, &text[digits..]))
}
