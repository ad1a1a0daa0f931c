//! A range of a text: from a line (and a character in it), with a maximum of lines and characters,
//! and where the text continues.

use std::io::{self, BufRead};

use rcrt_breadcrumb::ToolFailure;
use serde::Deserialize;

use super::decode::Decoder;
use crate::failure::invalid;

const DEFAULT_CHARS: u64 = 50_000;
const MAX_CHARS: u64 = 1_000_000;
/// The maximum length of the line that describes the range.
const LONGEST_NOTE: u64 = 240;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Range {
    /// From 1.
    pub start_line: u64,
    pub max_lines: Option<u64>,
    /// Characters to skip in the first line.
    pub start_char: u64,
    pub max_chars: u64,
}

impl Default for Range {
    fn default() -> Self {
        Self { start_line: 1, max_lines: None, start_char: 0, max_chars: DEFAULT_CHARS }
    }
}

/// A position in a text: the line from 1, and the number of its characters before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct At {
    pub line: u64,
    pub char: u64,
}

#[derive(Debug)]
pub struct FilePart {
    text: String,
    start: At,
    pub first_line: u64,
    /// 0 for an empty file.
    pub last_line: u64,
    /// Where the text continues; `None` at the end of the file.
    pub next: Option<At>,
    pub replaced: u64,
}

#[derive(Debug)]
pub enum Problem {
    Io(io::Error),
    /// The file contains NUL.
    Binary,
    PastEnd {
        lines: u64,
    },
    PastLine {
        line: u64,
        chars: u64,
    },
}

impl From<io::Error> for Problem {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl Range {
    pub fn check(&self) -> Result<(), ToolFailure> {
        if self.start_line == 0 {
            return Err(invalid("start_line: lines are counted from 1"));
        }
        if self.max_lines == Some(0) {
            return Err(invalid("max_lines: must be at least 1"));
        }
        if !(1..=MAX_CHARS).contains(&self.max_chars) {
            return Err(invalid(format!("max_chars: must be from 1 to {MAX_CHARS}")));
        }
        Ok(())
    }

    /// Limits the range to this many characters, including the line that says where it continues.
    pub fn within(self, most: u64) -> Self {
        Self { max_chars: self.max_chars.min(most.saturating_sub(LONGEST_NOTE)), ..self }
    }

    pub fn read<R: BufRead>(&self, decoder: &mut Decoder<R>) -> Result<FilePart, Problem> {
        let start = self.go_to_start(decoder)?;
        let mut text = String::new();
        let (mut at, mut chars, mut lines) = (start, 0, 0);
        let is_full = |chars: u64, lines: u64| chars == self.max_chars || self.max_lines == Some(lines);
        while !is_full(chars, lines) {
            let Some(c) = decoder.next()? else { break };
            if c == '\0' {
                return Err(Problem::Binary);
            }
            text.push(c);
            chars += 1;
            if c == '\n' {
                lines += 1;
                at = At { line: at.line + 1, char: 0 };
            } else {
                at.char += 1;
            }
        }
        let next = decoder.peek()?.is_some().then_some(at);
        // The cursor is at the start of a line that is not in the range.
        let last_line = if at.char == 0 { at.line - 1 } else { at.line };
        Ok(FilePart { text, start, first_line: start.line.min(last_line), last_line, next, replaced: decoder.replaced })
    }

    fn go_to_start<R: BufRead>(&self, decoder: &mut Decoder<R>) -> Result<At, Problem> {
        for before in 1..self.start_line {
            let is_anything_left = decoder.peek()?.is_some();
            if !is_anything_left || !decoder.skip_line()? {
                return Err(Problem::PastEnd { lines: if is_anything_left { before } else { before - 1 } });
            }
        }
        if self.start_line > 1 && decoder.peek()?.is_none() {
            return Err(Problem::PastEnd { lines: self.start_line - 1 });
        }
        for before in 0..self.start_char {
            match decoder.peek()? {
                None | Some('\n') => return Err(Problem::PastLine { line: self.start_line, chars: before }),
                Some(_) => decoder.next()?,
            };
        }
        Ok(At { line: self.start_line, char: self.start_char })
    }
}

impl FilePart {
    /// The text, with a line that describes the range if it is not the whole file.
    pub fn into_text(self) -> String {
        let is_whole = self.start == At { line: 1, char: 0 } && self.next.is_none();
        if is_whole {
            return self.text;
        }
        let note = self.note();
        let line_break = if self.text.ends_with('\n') { "" } else { "\n" };
        format!("{}{line_break}[{note}]", self.text)
    }

    fn note(&self) -> String {
        // The end of the range: a whole line, or a character in a line.
        let end = self.next.filter(|next| next.char > 0);
        let (first, last) = (self.start.line, end.map_or(self.last_line, |end| end.line));
        let what = match (self.start.char, end) {
            (0, None) if first == last => format!("line {first}"),
            (0, None) => format!("lines {first} to {last}"),
            (from, None) => format!("line {first} from character {from} to line {last}"),
            (from, Some(end)) if first == last => format!("line {first}, characters {from} to {}", end.char),
            (from, Some(end)) => format!("line {first} from character {from} to line {last}, character {}", end.char),
        };
        match self.next {
            Some(At { line, char: 0 }) => format!("{what}; the file continues at start_line {line}"),
            Some(At { line, char }) => format!("{what}; the file continues at start_line {line}, start_char {char}"),
            None => format!("{what}, the end of the file"),
        }
    }
}
