//! Splits text: at headings, then between blocks (blank lines), then between lines, sentences and
//! words, then anywhere. Tables and fences stay whole if they fit. The chunks in order are the text
//! again.

use std::panic::{AssertUnwindSafe, catch_unwind};

use text_splitter::{ChunkConfig, ChunkSizer, MarkdownSplitter};

use super::blocks::{Block, Kind, blocks};

/// A piece is not ended at a better place before it has a part so large of what it may have: 20,000 of the ordinary
/// 64,000 characters.
const LEAST_PART: usize = 3;

/// The pieces, none larger than `most` as the sizer counts.
pub(crate) fn split<'t>(text: &'t str, most: usize, sizer: &impl ChunkSizer) -> Vec<&'t str> {
    if sizer.size(text) <= most {
        return vec![text];
    }
    let structured = guarded(text, || {
        let mut filling = Filling::new(text, most, sizer);
        for block in blocks(text) {
            filling.put(block);
        }
        filling.end()
    });
    checked(text, structured, most, sizer)
}

/// The most pieces of a text that is split by sections: with more of them, each is a record that nobody reads.
const MOST_SECTIONS: usize = 500;

/// A piece for each section under a heading of levels 1 to 3, and for what stands before the first. Headings without
/// text of their own go with the next section. A section larger than `most` is split like any text. A text of very many
/// sections is split as [`split`] does, into at most [`MOST_SECTIONS`] pieces or so.
pub(crate) fn sections<'t>(text: &'t str, most: usize, sizer: &impl ChunkSizer) -> Vec<&'t str> {
    let structured = guarded(text, || {
        let mut pieces = Vec::new();
        let (mut start, mut has_text) = (0, false);
        for block in blocks(text) {
            match block.kind {
                Kind::Heading(1..=3) if has_text => {
                    pieces.extend(split(&text[start..block.start], most, sizer));
                    (start, has_text) = (block.start, false);
                }
                Kind::Heading(_) => {}
                Kind::Whole | Kind::Other => has_text |= !text[block.start..block.end].trim().is_empty(),
            }
        }
        pieces.extend(split(&text[start..], most, sizer));
        pieces
    });
    let pieces = checked(text, structured, most, sizer);
    if pieces.len() <= MOST_SECTIONS {
        return pieces;
    }
    split(text, most.max(sizer.size(text).div_ceil(MOST_SECTIONS / LEAST_PART)), sizer)
}

/// The first piece of such a split. What fits into it of the text, when that has no better end.
pub(crate) fn first<'t>(text: &'t str, most: usize, sizer: &impl ChunkSizer) -> &'t str {
    // No more is looked at than could be in the piece: one character is at most four bytes.
    let window = &text[..text.floor_char_boundary(most.saturating_mul(4).saturating_add(4))];
    let pieces = inside(window, most, sizer);
    pieces.first().copied().unwrap_or_default()
}

/// Fills one piece after the other with blocks.
struct Filling<'t, 's, S> {
    text: &'t str,
    most: usize,
    sizer: &'s S,
    pieces: Vec<&'t str>,
    /// Where the piece begins that is being filled, and where it ends so far, in bytes.
    start: usize,
    end: usize,
    /// By the sizer.
    size: usize,
    /// Where it could be ended.
    ends: Vec<End>,
}

#[derive(Clone, Copy)]
struct End {
    at: usize,
    /// What the piece would have then.
    size: usize,
    /// Lower is better: the level of the heading that follows.
    rank: usize,
}

/// The rank of an end that no heading follows.
const NO_HEADING: usize = 7;

impl<'t, 's, S: ChunkSizer> Filling<'t, 's, S> {
    fn new(text: &'t str, most: usize, sizer: &'s S) -> Self {
        Self { text, most, sizer, pieces: Vec::new(), start: 0, end: 0, size: 0, ends: Vec::new() }
    }

    fn put(&mut self, block: Block) {
        let size = self.sizer.size(&self.text[block.start..block.end]);
        let rank = match block.kind {
            Kind::Heading(level) => level,
            Kind::Whole | Kind::Other => NO_HEADING,
        };
        while self.size + size > self.most {
            let is_enough = self.size >= self.most / LEAST_PART;
            if self.size > 0 && (is_enough || (size <= self.most && block.kind == Kind::Whole)) {
                if size > self.most && self.most - self.size >= self.most / LEAST_PART {
                    // It has to be cut somewhere: the room is better used.
                    return self.cut(block);
                }
                self.break_off(End { at: block.start, size: self.size, rank });
            } else {
                return self.cut(block);
            }
        }
        if self.size > 0 {
            self.ends.push(End { at: block.start, size: self.size, rank });
        }
        self.size += size;
        self.end = block.end;
    }

    /// Ends the piece at the best place, which is `here` if there is no better; what is behind it begins the next one.
    fn break_off(&mut self, here: End) {
        let least = self.most / LEAST_PART;
        let mut best = here;
        for end in &self.ends {
            // Of two that are as good the later one. A heading goes with what follows it, however small the piece.
            let is_lonely_heading = end.rank < NO_HEADING && self.ends.last().is_some_and(|last| last.at == end.at);
            if (end.size >= least || is_lonely_heading) && end.rank < best.rank {
                best = *end;
            }
        }
        let better = |end: &&End| end.size >= least && end.rank == best.rank;
        if let Some(end) = self.ends.iter().rev().find(better)
            && best.at != here.at
        {
            best = *end;
        }
        self.pieces.push(&self.text[self.start..best.at]);
        self.start = best.at;
        self.size -= best.size;
        self.ends.retain(|end| end.at > best.at);
        for end in &mut self.ends {
            end.size -= best.size;
        }
    }

    /// Cuts a block that fits nowhere, or that is wanted to fill this piece.
    fn cut(&mut self, block: Block) {
        let mut rest = &self.text[block.start..block.end];
        let mut at = block.start;
        if self.size > 0 {
            let head = first(rest, self.most - self.size, self.sizer);
            at += head.len();
            rest = &rest[head.len()..];
            self.pieces.push(&self.text[self.start..at]);
        }
        let pieces = inside(rest, self.most, self.sizer);
        let last = pieces.last().copied().unwrap_or_default();
        for piece in &pieces[..pieces.len().saturating_sub(1)] {
            self.pieces.push(piece);
            at += piece.len();
        }
        // The last one is gone on with.
        self.start = at;
        self.end = block.end;
        self.size = self.sizer.size(last);
        self.ends.clear();
    }

    fn end(mut self) -> Vec<&'t str> {
        if self.end > self.start {
            self.pieces.push(&self.text[self.start..self.end]);
        }
        self.pieces
    }
}

/// The splitter looks for words and sentences in all of the text that is left, for each piece: 5 MiB without a blank took it
/// minutes. So it gets this many times `most` bytes at once, which are four pieces or more.
const WINDOW: usize = 16;

/// Splits what is inside of a block: between its own blocks, lines, sentences, words.
fn inside<'t>(text: &'t str, most: usize, sizer: &impl ChunkSizer) -> Vec<&'t str> {
    if sizer.size(text) <= most {
        return vec![text];
    }
    let mut pieces = Vec::new();
    let mut rest = text;
    loop {
        let window = &rest[..rest.floor_char_boundary(most.saturating_mul(WINDOW).saturating_add(4))];
        let structured = guarded(window, || {
            let config = ChunkConfig::new(most).with_sizer(sizer).with_trim(false);
            joined(window, MarkdownSplitter::new(config).chunks(window), most, sizer)
        });
        let mut found = checked(window, structured, most, sizer);
        if window.len() == rest.len() {
            pieces.append(&mut found);
            return pieces;
        }
        // The last one was cut by the window's end, and is split again with what follows.
        found.truncate(found.len().saturating_sub(1).max(1));
        let read: usize = found.iter().map(|piece| piece.len()).sum();
        rest = &rest[read..];
        pieces.append(&mut found);
    }
}

/// Neighbours that fit into one piece as one, and none but the last so small that it wastes its place.
fn joined<'t>(
    text: &'t str,
    pieces: impl Iterator<Item = &'t str>,
    most: usize,
    sizer: &impl ChunkSizer,
) -> Vec<&'t str> {
    let mut bounds = vec![0];
    let (mut end, mut size) = (0, 0);
    for piece in pieces {
        let more = sizer.size(piece);
        if size + more > most && size > 0 {
            bounds.push(end);
            size = 0;
        }
        end += piece.len();
        size += more;
    }
    bounds.push(end);
    for index in 0..bounds.len().saturating_sub(2) {
        if sizer.size(&text[bounds[index]..bounds[index + 1]]) >= most / LEAST_PART {
            continue;
        }
        // The small one and its neighbour are split again, so that both get enough.
        let (start, middle, end) = match index {
            0 => (0, 1, 2),
            _ => (index - 1, index, index + 1),
        };
        bounds[middle] = bounds[start] + middle_of(&text[bounds[start]..bounds[end]], most, sizer);
    }
    bounds.windows(2).map(|bound| &text[bound[0]..bound[1]]).collect()
}

/// Where a text of more than one piece, and less than one and a third, is best cut in two.
fn middle_of(text: &str, most: usize, sizer: &impl ChunkSizer) -> usize {
    let (mut size, mut line, mut word, mut any) = (0, None, None, 0);
    for (at, character) in text.char_indices() {
        let end = at + character.len_utf8();
        size += sizer.size(&text[at..end]);
        if size > most * 2 / LEAST_PART {
            break;
        }
        any = end;
        if size > most / LEAST_PART {
            match character {
                '\n' => line = Some(end),
                blank if blank.is_whitespace() => word = Some(end),
                _ => {}
            }
        }
    }
    line.or(word).unwrap_or(any)
}

/// Any text comes here: one that a library cannot take must not cost the result.
fn guarded<'t>(text: &str, split: impl FnOnce() -> Vec<&'t str>) -> Vec<&'t str> {
    catch_unwind(AssertUnwindSafe(split)).unwrap_or_else(|_| {
        tracing::error!(bytes = text.len(), "a text cannot be split along its structure");
        Vec::new()
    })
}

/// The pieces, if they are the text, each within bounds; else pieces by length alone.
fn checked<'t>(text: &'t str, pieces: Vec<&'t str>, most: usize, sizer: &impl ChunkSizer) -> Vec<&'t str> {
    let mut rest = text;
    let is_whole =
        pieces.iter().all(|piece| rest.strip_prefix(piece).inspect(|after| rest = after).is_some()) && rest.is_empty();
    if is_whole && pieces.iter().all(|piece| !piece.is_empty() && sizer.size(piece) <= most) {
        return pieces;
    }
    by_length(text, most, sizer)
}

fn by_length<'t>(mut text: &'t str, most: usize, sizer: &impl ChunkSizer) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    while !text.is_empty() {
        let (mut size, mut end) = (0, 0);
        for (at, character) in text.char_indices() {
            let after = at + character.len_utf8();
            size += sizer.size(&text[at..after]);
            if size > most && end > 0 {
                break;
            }
            end = after;
        }
        let (piece, rest) = text.split_at(end);
        pieces.push(piece);
        text = rest;
    }
    pieces
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use proptest::collection::vec;
    use proptest::prelude::*;
    use text_splitter::Characters;

    use super::*;

    /// Counts the bytes that it is asked about.
    #[derive(Default)]
    struct Counting(Cell<usize>);

    impl ChunkSizer for Counting {
        fn size(&self, chunk: &str) -> usize {
            self.0.set(self.0.get() + chunk.len());
            chunk.chars().count()
        }
    }

    fn work(text: &str, most: usize) -> usize {
        let sizer = Counting::default();
        assert_eq!(inside(text, most, &sizer).concat(), text);
        sizer.0.get()
    }

    #[test]
    fn the_work_for_a_text_without_blanks_grows_with_its_length() {
        for character in ["x", "ä", "日"] {
            let (short, long) = (work(&character.repeat(20_000), 100), work(&character.repeat(80_000), 100));
            // Sixteen times as much where each piece costs a look at all that is left.
            assert!(long < short * 5, "{character}: {short} bytes sized for 20,000 characters, {long} for 80,000");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_pieces_of_many_windows_are_the_text(
            parts in vec(
                prop_oneof!["[a-z]{1,80}", "[äß日本👨]{1,80}", "e\u{301}{1,20}", "[ \n]", any::<String>()],
                1..60,
            ),
            most in 1_usize..40,
        ) {
            let text = parts.concat();
            let pieces = inside(&text, most, &Characters);
            prop_assert_eq!(pieces.concat(), text.as_str());
            for piece in &pieces {
                prop_assert!(piece.chars().count() <= most, "{} of {most}", piece.chars().count());
                prop_assert!(!piece.is_empty() || text.is_empty());
            }
        }
    }
}
