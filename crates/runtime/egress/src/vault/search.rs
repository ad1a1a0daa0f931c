//! Finds known texts in a stream of bytes: of overlapping matches the first, of matches with the
//! same start the longest. The result does not depend on how the bytes were split.
//!
//! How much is held back depends only on the lengths of the texts and on line ends, never on the
//! input. Otherwise an attacker who can send guesses through the search could learn from the delay
//! how many of the first letters are right.

use std::collections::VecDeque;
use std::fmt;

use aho_corasick::Anchored;
use aho_corasick::automaton::{Automaton, StateID};
use aho_corasick::nfa::contiguous::NFA;

use super::text_encoding::{Decoded, TextEncoding};

/// Bytes of a text that the automaton matches; the rest of a longer text is compared. An automaton
/// of whole texts would take seconds to build for a secret of many kilobytes.
const HEAD: usize = 64;

/// The known texts, compiled.
pub(super) struct Texts {
    /// The automaton over the texts' heads.
    machine: NFA,
    start: StateID,
    /// For each state: how many of the last bytes are the start of a head.
    depths: Vec<u32>,
    known: Vec<Vec<u8>>,
    /// How many decoded bytes can still become the start of a text.
    reach: usize,
    /// No text continues past the end of a line.
    are_lines: bool,
}

/// The texts cannot be searched for. Nothing must pass where they could occur.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsearchable(String);

impl fmt::Display for Unsearchable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the values of the secrets cannot be searched for: {}", self.0)
    }
}

impl std::error::Error for Unsearchable {}

impl Texts {
    /// `None` if there are no texts.
    pub fn new(texts: Vec<Vec<u8>>) -> Result<Option<Self>, Unsearchable> {
        let Some(longest) = texts.iter().map(Vec::len).max() else { return Ok(None) };
        if texts.iter().any(Vec::is_empty) {
            return Err(Unsearchable("one of them is empty".into()));
        }
        let unsearchable = |error: &dyn std::fmt::Display| Unsearchable(error.to_string());
        let machine = NFA::new(texts.iter().map(|text| head(text))).map_err(|error| unsearchable(&error))?;
        let start = machine.start_state(Anchored::No).map_err(|error| unsearchable(&error))?;
        let mut depths = Vec::new();
        for text in &texts {
            let mut state = start;
            for (byte, depth) in head(text).iter().zip(1..) {
                state = machine.next_state(Anchored::No, state, *byte);
                let index = state.as_usize();
                if depths.len() <= index {
                    depths.resize(index + 1, 0);
                }
                depths[index] = depth;
            }
        }
        let are_lines = !texts.iter().any(|text| text.contains(&b'\n'));
        Ok(Some(Self { machine, start, depths, known: texts, reach: longest - 1, are_lines }))
    }

    fn next(&self, state: StateID, byte: u8) -> StateID {
        self.machine.next_state(Anchored::No, state, byte)
    }

    fn depth(&self, state: StateID) -> usize {
        self.depths.get(state.as_usize()).map_or(0, |depth| *depth as usize)
    }

    /// The texts whose heads end in this state.
    fn ended(&self, state: StateID) -> impl Iterator<Item = usize> {
        let count = if self.machine.is_match(state) { self.machine.match_len(state) } else { 0 };
        (0..count).map(move |index| self.machine.match_pattern(state, index).as_usize())
    }

    /// How many bytes can be skipped at once: up to the first that ends a head or starts an encoded
    /// character.
    fn idle(&self, encoding: TextEncoding, mut state: StateID, bytes: &[u8]) -> (usize, StateID) {
        for (index, byte) in bytes.iter().enumerate() {
            let next = self.next(state, *byte);
            if encoding.opens(*byte) || self.machine.is_match(next) {
                return (index, state);
            }
            state = next;
        }
        (bytes.len(), state)
    }
}

fn head(text: &[u8]) -> &[u8] {
    &text[..text.len().min(HEAD)]
}

/// What a search emits, in order.
pub(super) enum Segment<'b> {
    /// Bytes that are in no text.
    Other(&'b [u8]),
    /// The text with this index.
    Text(usize),
}

/// One search in one stream of bytes.
pub(super) struct Search {
    encoding: TextEncoding,
    /// An encoded character that is not complete yet.
    opened: Vec<u8>,
    /// Bytes that are held back.
    held: VecDeque<u8>,
    /// The decoded bytes of `held`: each with the number of bytes in `held` that it represents.
    read: VecDeque<(u8, u8)>,
    /// How many bytes of `read` the automaton has processed.
    seen: usize,
    /// Where the last line starts in `read`.
    line: usize,
    state: StateID,
    /// Texts whose heads were found and whose rest matches so far: start, and index of the text.
    begun: Vec<(usize, usize)>,
    /// Where the longest of these texts would end. Up to there every byte takes the same path, so
    /// that the time does not reveal how much of the rest was right.
    careful: usize,
    best: Option<Candidate>,
}

/// A text that was found, unless a longer one starts at the same position.
struct Candidate {
    start: usize,
    end: usize,
    text: usize,
}

impl Search {
    pub fn new(texts: &Texts, encoding: TextEncoding) -> Self {
        Self {
            encoding,
            opened: Vec::new(),
            held: VecDeque::new(),
            read: VecDeque::new(),
            seen: 0,
            line: 0,
            state: texts.start,
            begun: Vec::new(),
            careful: 0,
            best: None,
        }
    }

    pub fn push(&mut self, texts: &Texts, mut piece: &[u8], out: &mut impl FnMut(Segment<'_>)) {
        while let Some((byte, rest)) = piece.split_first() {
            if self.opened.is_empty() && self.careful <= self.seen && self.best.is_none() {
                let (idle, state) = texts.idle(self.encoding, self.state, piece);
                if idle > 0 {
                    self.absorb(texts, &piece[..idle], out);
                    self.state = state;
                    piece = &piece[idle..];
                    continue;
                }
            }
            self.take(*byte);
            self.advance(texts, out);
            piece = rest;
        }
        self.trim(texts, out);
    }

    /// Adds bytes that the automaton has processed and that end no text.
    fn absorb(&mut self, texts: &Texts, bytes: &[u8], out: &mut impl FnMut(Segment<'_>)) {
        let line =
            if texts.are_lines { bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1) } else { 0 };
        let certain = line.max(bytes.len().saturating_sub(texts.reach));
        if certain > 0 {
            self.release(self.read.len(), out);
            out(Segment::Other(&bytes[..certain]));
        }
        for byte in &bytes[certain..] {
            self.give(*byte, 1);
        }
        self.seen = self.read.len();
    }

    /// Emits what cannot be part of a text any more.
    fn trim(&mut self, texts: &Texts, out: &mut impl FnMut(Segment<'_>)) {
        let line = if texts.are_lines { self.line } else { 0 };
        let certain = line.max(self.seen.saturating_sub(texts.reach));
        self.release(self.best.as_ref().map_or(certain, |best| certain.min(best.start)), out);
    }

    /// Call when there are no more bytes.
    pub fn finish(&mut self, texts: &Texts, out: &mut impl FnMut(Segment<'_>)) {
        while let Some((first, rest)) = self.opened.split_first() {
            let (first, rest) = (*first, rest.to_vec());
            self.opened.clear();
            self.give(first, 1);
            for byte in rest {
                self.take(byte);
            }
        }
        self.advance(texts, out);
        while let Some(best) = self.best.take() {
            self.settle(texts, &best, out);
            self.advance(texts, out);
        }
        self.release(self.read.len(), out);
    }

    /// Decodes one byte.
    fn take(&mut self, byte: u8) {
        let mut waiting = VecDeque::from([byte]);
        while let Some(byte) = waiting.pop_front() {
            if self.opened.is_empty() && !self.encoding.opens(byte) {
                self.give(byte, 1);
                continue;
            }
            self.opened.push(byte);
            let length = u8::try_from(self.opened.len()).unwrap_or(u8::MAX);
            match self.encoding.read(&self.opened) {
                Decoded::More => {}
                Decoded::Byte(meant) => {
                    self.held.extend(self.opened.drain(..));
                    self.note(meant, length);
                }
                Decoded::Means(meant) => {
                    self.held.extend(self.opened.drain(..));
                    let mut utf8 = [0; 4];
                    for (index, byte) in meant.encode_utf8(&mut utf8).bytes().enumerate() {
                        self.note(byte, if index == 0 { length } else { 0 });
                    }
                }
                Decoded::Itself => {
                    let mut opened = std::mem::take(&mut self.opened).into_iter();
                    if let Some(first) = opened.next() {
                        self.give(first, 1);
                    }
                    opened.rev().for_each(|byte| waiting.push_front(byte));
                }
            }
        }
    }

    fn give(&mut self, byte: u8, length: u8) {
        self.held.push_back(byte);
        self.note(byte, length);
    }

    fn note(&mut self, byte: u8, length: u8) {
        self.read.push_back((byte, length));
        if byte == b'\n' {
            self.line = self.read.len();
        }
    }

    fn advance(&mut self, texts: &Texts, out: &mut impl FnMut(Segment<'_>)) {
        while let Some((byte, _)) = self.read.get(self.seen) {
            let byte = *byte;
            self.state = texts.next(self.state, byte);
            let at = self.seen;
            self.seen += 1;
            let mut whole = Vec::new();
            self.begun.retain(|(start, text)| {
                let known = &texts.known[*text];
                let goes_on = known.get(at - start) == Some(&byte);
                if goes_on && at + 1 - start == known.len() {
                    whole.push((*start, *text));
                    return false;
                }
                goes_on
            });
            for text in texts.ended(self.state) {
                let known = &texts.known[text];
                let start = self.seen - head(known).len();
                if known.len() > HEAD {
                    self.begun.push((start, text));
                    self.careful = self.careful.max(start + known.len());
                } else {
                    whole.push((start, text));
                }
            }
            // They all end here, so the one that starts first is the longest.
            if let Some((start, text)) = whole.into_iter().min()
                && self.best.as_ref().is_none_or(|best| start <= best.start)
            {
                self.best = Some(Candidate { start, end: self.seen, text });
            }
            // Where the earliest text starts that can still be completed.
            let heads = self.seen - texts.depth(self.state);
            let alive = self.begun.iter().map(|(start, _)| *start).fold(heads, usize::min);
            if let Some(best) = self.best.take_if(|best| alive > best.start) {
                self.settle(texts, &best, out);
            }
        }
    }

    /// Emits what is before the text, and the text. The rest is processed again.
    fn settle(&mut self, texts: &Texts, best: &Candidate, out: &mut impl FnMut(Segment<'_>)) {
        self.release(best.start, out);
        let bytes = self.forget(best.end - best.start);
        self.held.drain(..bytes);
        out(Segment::Text(best.text));
        self.seen = 0;
        self.state = texts.start;
        self.begun.clear();
    }

    /// Emits the first decoded bytes in their original spelling.
    fn release(&mut self, count: usize, out: &mut impl FnMut(Segment<'_>)) {
        if count == 0 {
            return;
        }
        let bytes = self.forget(count);
        let (front, back) = self.held.as_slices();
        let split = bytes.min(front.len());
        out(Segment::Other(&front[..split]));
        out(Segment::Other(&back[..bytes - split]));
        self.held.drain(..bytes);
    }

    /// Drops the first decoded bytes. Returns how many bytes of `held` they represented.
    fn forget(&mut self, count: usize) -> usize {
        self.seen = self.seen.saturating_sub(count);
        self.line = self.line.saturating_sub(count);
        self.careful = self.careful.saturating_sub(count);
        for (start, _) in &mut self.begun {
            *start = start.saturating_sub(count);
        }
        if let Some(best) = &mut self.best {
            best.start = best.start.saturating_sub(count);
            best.end = best.end.saturating_sub(count);
        }
        self.read.drain(..count).map(|(_, length)| usize::from(length)).sum()
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use proptest::prelude::*;

    use super::*;

    fn texts(texts: &[&str]) -> Texts {
        let texts: Vec<Vec<u8>> = texts.iter().map(|text| text.as_bytes().to_vec()).collect();
        Texts::new(texts).unwrap().unwrap()
    }

    fn replaced(texts: &Texts, encoding: TextEncoding, pieces: &[&[u8]]) -> Vec<u8> {
        let mut search = Search::new(texts, encoding);
        let mut out = Vec::new();
        let mut put = |found: Segment<'_>| match found {
            Segment::Other(bytes) => out.extend_from_slice(bytes),
            Segment::Text(text) => out.extend_from_slice(format!("<{text}>").as_bytes()),
        };
        for piece in pieces {
            search.push(texts, piece, &mut put);
        }
        search.finish(texts, &mut put);
        out
    }

    fn one(texts: &Texts, encoding: TextEncoding, text: &str) -> String {
        String::from_utf8_lossy(&replaced(texts, encoding, &[text.as_bytes()])).into_owned()
    }

    /// The same result, found by trying every text at every position.
    fn slowly(texts: &[&str], haystack: &[u8]) -> Vec<u8> {
        let (mut at, mut out) = (0, Vec::new());
        while at < haystack.len() {
            let here = |text: &&str| haystack[at..].starts_with(text.as_bytes());
            match texts.iter().enumerate().filter(|(_, text)| here(text)).max_by_key(|(_, text)| text.len()) {
                Some((index, text)) => {
                    out.extend_from_slice(format!("<{index}>").as_bytes());
                    at += text.len();
                }
                None => {
                    out.push(haystack[at]);
                    at += 1;
                }
            }
        }
        out
    }

    #[test]
    fn leftmost_longest_match_is_replaced() {
        let known = texts(&["abc", "abcde", "bcd", "ef"]);
        assert_eq!(one(&known, TextEncoding::Plain, "abcde"), "<1>");
        assert_eq!(one(&known, TextEncoding::Plain, "abcdxabcd"), "<0>dx<0>d");
        assert_eq!(one(&known, TextEncoding::Plain, "abcdef abcdeef"), "<1>f <1><3>");
        assert_eq!(one(&known, TextEncoding::Plain, "xbcdef"), "x<2><3>");
    }

    #[test]
    fn encoded_texts_are_found_in_every_spelling() {
        let known = texts(&["a/b\u{1f600}\u{e9}"]);
        for text in ["a%2fb%F0%9f%98%80%c3%a9", "%61%2F%62%F0%9F%98%80%C3%A9"] {
            assert_eq!(one(&known, TextEncoding::Percent, &format!("%%{text}%2")), "%%<0>%2");
        }
        for text in ["a\\/b\\ud83d\\ude00\\u00e9", "\\u0061/\\u0062\u{1f600}\u{e9}"] {
            assert_eq!(one(&known, TextEncoding::Json, &format!("\"\\ud83d{text}\\")), "\"\\ud83d<0>\\");
        }
        assert_eq!(one(&known, TextEncoding::Json, "\\\\u0061 \\ud83d\\u00zz \\q"), "\\\\u0061 \\ud83d\\u00zz \\q");
    }

    #[test]
    fn long_texts_are_found_whole_or_not_at_all() {
        let long = |end: &str| format!("{}{end}", "0123456789".repeat(20));
        let (one_end, two_ends) = (long("x"), long("xy"));
        let known = texts(&[&one_end, &two_ends, "9x"]);
        let cases = [
            (one_end.clone(), "<0>".to_owned()),
            (format!("{two_ends}{one_end}!"), "<1><0>!".to_owned()),
            (format!("01234{one_end}"), "01234<0>".to_owned()),
            (format!("{}{two_ends}", "0123456789".repeat(9)), format!("{}<1>", "0123456789".repeat(9))),
            (long(""), long("")),
            (format!("{}_9x", long("")), format!("{}_<2>", long(""))),
        ];
        for (text, expected) in cases {
            assert_eq!(one(&known, TextEncoding::Plain, &text), expected);
            let pieces: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(replaced(&known, TextEncoding::Plain, &pieces), expected.as_bytes());
        }
    }

    proptest! {
        #[test]
        fn result_does_not_depend_on_the_chunks(
            text in "[ab%\\\\u0-9]{0,60}",
            cuts in proptest::collection::vec(0_usize..60, 0..6),
        ) {
            let known = ["ab", "aba", "abab", "bb1", "a%b", "6161"];
            let compiled = texts(&known);
            let bytes = text.as_bytes();
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= bytes.len()).collect();
            cuts.extend([0, bytes.len()]);
            cuts.sort_unstable();
            let pieces: Vec<&[u8]> = cuts.windows(2).map(|cut| &bytes[cut[0]..cut[1]]).collect();
            for encoding in [TextEncoding::Plain, TextEncoding::Percent, TextEncoding::Json] {
                prop_assert_eq!(replaced(&compiled, encoding, &pieces), replaced(&compiled, encoding, &[bytes]));
            }
            prop_assert_eq!(replaced(&compiled, TextEncoding::Plain, &[bytes]), slowly(&known, bytes));
        }

        /// The amount that is emitted after each chunk does not reveal how close a guess was.
        #[test]
        fn held_back_bytes_do_not_depend_on_the_guess(
            shape in proptest::collection::vec((1_usize..9, any::<bool>()), 1..8),
            guess in 1_usize..12,
        ) {
            let compiled = texts(&["secretvalue!", "other"]);
            for encoding in [TextEncoding::Plain, TextEncoding::Percent, TextEncoding::Json] {
                let given = |word: &str| {
                    let mut search = Search::new(&compiled, encoding);
                    let mut sizes = Vec::new();
                    for (repeat, ends_line) in &shape {
                        let mut piece = format!("{}{}", "x".repeat(*repeat), &word[..guess]);
                        piece.push_str(if *ends_line { "\n" } else { "" });
                        let mut size = 0;
                        search.push(&compiled, piece.as_bytes(), &mut |found| {
                            if let Segment::Other(bytes) = found { size += bytes.len() }
                        });
                        sizes.push(size);
                    }
                    sizes
                };
                prop_assert_eq!(given("secretvalue!"), given("zzzzzzzzzzzz"));
            }
        }

        #[test]
        fn bytes_without_a_match_are_unchanged(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let compiled = texts(&["no such text"]);
            for encoding in [TextEncoding::Plain, TextEncoding::Percent, TextEncoding::Json] {
                prop_assert_eq!(&replaced(&compiled, encoding, &[&bytes]), &bytes);
            }
        }
    }
}
