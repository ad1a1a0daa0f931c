//! Splits text: at headings, then between blocks (blank lines), then between lines, sentences and
//! words, then anywhere. Tables and fences stay whole if they fit. The concatenated pieces are the
//! text.

use std::panic::{AssertUnwindSafe, catch_unwind};

use text_splitter::{ChunkConfig, ChunkSizer, MarkdownSplitter};

use super::blocks::{Block, Kind, blocks};

/// A piece must reach this fraction of its limit before it is ended at a better position: 20,000 of
/// the usual 64,000 characters.
const LEAST_PART: usize = 3;

/// The pieces. None is larger than `most`, as measured by the sizer.
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

/// The maximum number of sections that get a piece each. More records would be too many to
/// read.
const MOST_SECTIONS: usize = 500;

/// One piece for each section under a heading of levels 1 to 3, and one for the text before the
/// first. Headings without text belong to the next section. A section larger than `most` is split
/// like any text. A text with very many sections is split like in [`split`], into about
/// [`MOST_SECTIONS`] pieces at most.
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

/// The first piece of such a split, or as much of the text as fits if there is no better end.
pub(crate) fn first<'t>(text: &'t str, most: usize, sizer: &impl ChunkSizer) -> &'t str {
    // Only what could be in the piece is considered: a character has at most four bytes.
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
    /// The start and the current end of the piece, in bytes.
    start: usize,
    end: usize,
    /// As measured by the sizer.
    size: usize,
    /// Where it could end.
    ends: Vec<PieceEnd>,
}

#[derive(Clone, Copy)]
struct PieceEnd {
    at: usize,
    /// The size of the piece with this end.
    size: usize,
    /// Lower is better: the level of the heading that follows.
    rank: usize,
}

/// The rank of an end without a heading after it.
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
                    // The block must be cut anyway, so it fills the rest of this piece.
                    return self.cut(block);
                }
                self.end_piece(PieceEnd { at: block.start, size: self.size, rank });
            } else {
                return self.cut(block);
            }
        }
        if self.size > 0 {
            self.ends.push(PieceEnd { at: block.start, size: self.size, rank });
        }
        self.size += size;
        self.end = block.end;
    }

    /// Ends the piece at the best position, or at `here` if there is none. The text after it starts
    /// the next piece.
    fn end_piece(&mut self, here: PieceEnd) {
        let least = self.most / LEAST_PART;
        let mut best = here;
        for end in &self.ends {
            // Of two equally good ends the later one. A heading stays with the text below it,
            // however small the piece gets.
            let is_lonely_heading = end.rank < NO_HEADING && self.ends.last().is_some_and(|last| last.at == end.at);
            if (end.size >= least || is_lonely_heading) && end.rank < best.rank {
                best = *end;
            }
        }
        let better = |end: &&PieceEnd| end.size >= least && end.rank == best.rank;
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

    /// Cuts a block that fits into no piece, or that should fill this one.
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
        // The last piece is continued.
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

/// The splitter scans all remaining text for words and sentences, for each piece: 5 MiB without a
/// space took minutes. So it gets this many times `most` bytes at a time, which make four pieces or
/// more.
const WINDOW: usize = 16;

/// Splits the inside of a block: between nested blocks, lines, sentences, words.
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
        // The last piece was cut by the end of the window, and is split again with the text after
        // it.
        found.truncate(found.len().saturating_sub(1).max(1));
        let read: usize = found.iter().map(|piece| piece.len()).sum();
        rest = &rest[read..];
        pieces.append(&mut found);
    }
}

/// Joins adjacent pieces that fit into one, so that only the last piece can be too small.
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
        // The small piece and its neighbour are split again, so that both are large enough.
        let (start, middle, end) = match index {
            0 => (0, 1, 2),
            _ => (index - 1, index, index + 1),
        };
        bounds[middle] = bounds[start] + middle_of(&text[bounds[start]..bounds[end]], most, sizer);
    }
    bounds.windows(2).map(|bound| &text[bound[0]..bound[1]]).collect()
}

/// The best position to halve a text that is larger than one piece and smaller than one and a
/// third.
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

/// Texts are untrusted: a panic in a library must not lose the result.
fn guarded<'t>(text: &str, split: impl FnOnce() -> Vec<&'t str>) -> Vec<&'t str> {
    catch_unwind(AssertUnwindSafe(split)).unwrap_or_else(|_| {
        tracing::error!(bytes = text.len(), "a text cannot be split along its structure");
        Vec::new()
    })
}

/// The pieces, if they form the text and are within bounds; otherwise pieces by length alone.
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

    /// Counts the bytes that it measures.
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
    fn text_without_spaces_takes_linear_work() {
        for character in ["x", "ä", "日"] {
            let (short, long) = (work(&character.repeat(20_000), 100), work(&character.repeat(80_000), 100));
            // It would be sixteen times as much if each piece scanned all of the remaining text.
            assert!(long < short * 5, "{character}: {short} bytes sized for 20,000 characters, {long} for 80,000");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn pieces_of_many_windows_form_the_text(
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
