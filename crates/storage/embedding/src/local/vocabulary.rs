//! The model's vocabulary of word pieces, and the ids of a text's pieces (WordPiece).

use std::collections::HashMap;

use super::words::words;

/// Characters. A longer word becomes the unknown token.
const MAX_WORD: usize = 100;

pub(super) struct Vocabulary {
    pieces: HashMap<Box<str>, u32>,
    unknown: u32,
    begin: u32,
    end: u32,
}

impl Vocabulary {
    /// `text`: one piece per line. A piece's id is its line number, from 0.
    pub(super) fn read(text: &str) -> Result<Self, String> {
        let pieces: HashMap<Box<str>, u32> = text.lines().map(|line| line.trim_end().into()).zip(0..).collect();
        let number = |piece: &str| pieces.get(piece).copied().ok_or_else(|| format!("has no entry {piece}"));
        let (unknown, begin, end) = (number("[UNK]")?, number("[CLS]")?, number("[SEP]")?);
        Ok(Self { pieces, unknown, begin, end })
    }

    /// One more than the largest id.
    pub(super) fn size(&self) -> usize {
        self.pieces.values().max().map_or(0, |last| *last as usize + 1)
    }

    /// Returns at most `most` ids, including the begin and end tokens. A longer text is truncated.
    pub(super) fn numbers(&self, text: &str, most: usize) -> Vec<u32> {
        let mut numbers = vec![self.begin];
        for word in words(beginning(text, most)) {
            if numbers.len() >= most {
                break;
            }
            self.word(&word, &mut numbers);
        }
        numbers.truncate(most - 1);
        numbers.push(self.end);
        numbers
    }

    /// Splits greedily: the longest piece at the start of the word, then of the rest, and so on.
    fn word(&self, word: &str, numbers: &mut Vec<u32>) {
        let before = numbers.len();
        let mut rest = word;
        let mut piece = String::with_capacity(word.len() + 2);
        while !rest.is_empty() && word.chars().count() <= MAX_WORD {
            let ends = rest.char_indices().map(|(at, character)| at + character.len_utf8()).rev();
            let found = ends.into_iter().find_map(|end| {
                piece.clear();
                if rest.len() < word.len() {
                    piece.push_str("##");
                }
                piece.push_str(&rest[..end]);
                self.pieces.get(piece.as_str()).map(|number| (*number, end))
            });
            let Some((number, end)) = found else { break };
            numbers.push(number);
            rest = &rest[end..];
        }
        if !rest.is_empty() {
            numbers.truncate(before);
            numbers.push(self.unknown);
        }
    }
}

/// Cuts off text that cannot affect the result: `most` words of the maximum length.
fn beginning(text: &str, most: usize) -> &str {
    &text[..text.floor_char_boundary(most * MAX_WORD * 4)]
}
