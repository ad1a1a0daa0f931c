//! The blocks of a Markdown text, in order and without gaps.

use pulldown_cmark::{CodeBlockKind, Event, Options, Parser, Tag};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// With its level, 1 to 6.
    Heading(usize),
    /// A table or a fence, which would be unreadable if it were split.
    Whole,
    Other,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Block {
    pub kind: Kind,
    /// The offset, in bytes.
    pub start: usize,
    pub end: usize,
}

/// Blank lines belong to the block before them, except that those after a table or a fence are a
/// block of their own.
pub(crate) fn blocks(text: &str) -> Vec<Block> {
    let mut starts: Vec<(usize, usize, Kind)> = Vec::new();
    let mut depth = 0_usize;
    for (event, range) in Parser::new_ext(text, Options::all()).into_offset_iter() {
        let kind = match &event {
            Event::Start(Tag::Heading { level, .. }) => Kind::Heading(*level as usize),
            Event::Start(Tag::Table(_) | Tag::CodeBlock(CodeBlockKind::Fenced(_))) => Kind::Whole,
            _ => Kind::Other,
        };
        if depth == 0 && !matches!(event, Event::End(_)) {
            let start = line_start(text, range.start);
            if starts.last().is_none_or(|(last, _, _)| *last < start) {
                starts.push((start, range.end, kind));
            }
        }
        match event {
            Event::Start(_) => depth += 1,
            Event::End(_) => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let mut blocks = Vec::with_capacity(starts.len() + 1);
    let mut covered = 0;
    for (index, (start, end, kind)) in starts.iter().enumerate() {
        if *start > covered {
            blocks.push(Block { kind: Kind::Other, start: covered, end: *start });
        }
        let next = starts.get(index + 1).map_or(text.len(), |(next, _, _)| *next);
        let end = match kind {
            Kind::Whole => start + text[*start..text.floor_char_boundary((*end).min(next))].trim_end().len(),
            Kind::Heading(_) | Kind::Other => next,
        };
        blocks.push(Block { kind: *kind, start: *start, end });
        covered = end;
    }
    if covered < text.len() {
        blocks.push(Block { kind: Kind::Other, start: covered, end: text.len() });
    }
    blocks.retain(|block| block.start < block.end);
    blocks
}

/// The start of the line if only spaces precede this offset, else the offset.
fn line_start(text: &str, at: usize) -> usize {
    let at = text.floor_char_boundary(at);
    let start = text[..at].rfind('\n').map_or(0, |before| before + 1);
    if text[start..at].bytes().all(|byte| matches!(byte, b' ' | b'\t')) { start } else { at }
}
