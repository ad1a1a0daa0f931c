//! An inverted index of short documents in memory. Documents are inserted and removed one by one.

use std::collections::HashMap;

use crate::words::{self, Word};

/// How many words of the first fields of a document count, and how many of its second fields.
const MAX_WORDS: usize = 200;
/// Bytes of a field that are read.
const MAX_FIELD: usize = 8 * 1024;
/// How much a word counts in the second fields: arguments say less than the name.
const SECOND: f64 = 0.5;
/// Stands between words that are not neighbours. No term has this number.
const GAP: u32 = 0;

/// The words of a document.
pub(crate) struct Text {
    /// `None` stands between words that are not neighbours.
    words: Vec<Option<String>>,
    /// Where the second fields begin.
    second: usize,
}

impl Text {
    /// `first`: name and description. `second`: what counts half.
    pub fn new<'t>(first: impl IntoIterator<Item = &'t str>, second: impl IntoIterator<Item = &'t str>) -> Self {
        let mut words = Vec::new();
        add(&mut words, first);
        let at = words.len();
        add(&mut words, second);
        Self { words, second: at }
    }

    /// Each word with its weight; `None` between words that are not neighbours.
    pub fn words(&self) -> impl Iterator<Item = (Option<&str>, f64)> {
        let weight = |at| if at < self.second { 1.0 } else { SECOND };
        self.words.iter().enumerate().map(move |(at, word)| (word.as_deref(), weight(at)))
    }

    /// The sum of the weights.
    pub fn length(&self) -> f64 {
        self.words().filter(|(word, _)| word.is_some()).map(|(_, weight)| weight).sum()
    }
}

fn add<'t>(words: &mut Vec<Option<String>>, fields: impl IntoIterator<Item = &'t str>) {
    let end = words.len() + 2 * MAX_WORDS;
    for field in fields {
        let mut wholes = Vec::new();
        for word in words::of_document(&field[..field.floor_char_boundary(MAX_FIELD)]) {
            match word {
                Word::Part(word) => words.push(Some(word)),
                Word::Whole(word) => wholes.extend([None, Some(word)]),
            }
        }
        words.append(&mut wholes);
        words.push(None);
        if words.len() >= end {
            words.truncate(end);
            return;
        }
    }
}

/// A place in the index; given to another document after a removal.
pub(crate) type Slot = u32;

#[derive(Debug, Clone, Copy)]
pub(crate) struct Posting {
    pub slot: Slot,
    /// The sum of the weights of the term's occurrences.
    pub weight: f64,
}

#[derive(Debug, Default)]
struct Term {
    word: Box<str>,
    postings: Vec<Posting>,
}

#[derive(Debug)]
pub(crate) struct Document<D> {
    pub data: D,
    terms: Box<[u32]>,
    second: usize,
    pub length: f64,
}

impl<D> Document<D> {
    /// The terms in order, with [`GAP`] between words that are not neighbours.
    pub fn terms(&self) -> &[u32] {
        &self.terms
    }

    /// How much the term at this place counts.
    pub fn weight(&self, at: usize) -> f64 {
        if at < self.second { 1.0 } else { SECOND }
    }
}

#[derive(Debug)]
pub(crate) struct Index<D> {
    documents: Vec<Option<Document<D>>>,
    free: Vec<Slot>,
    terms: Vec<Term>,
    free_terms: Vec<u32>,
    vocabulary: HashMap<Box<str>, u32>,
}

impl<D> Default for Index<D> {
    fn default() -> Self {
        let (documents, free, free_terms, vocabulary) = Default::default();
        Self { documents, free, terms: vec![Term::default()], free_terms, vocabulary }
    }
}

impl<D> Index<D> {
    pub fn insert(&mut self, text: &Text, data: D) -> Slot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.documents.push(None);
            (self.documents.len() - 1) as Slot
        });
        let mut weights: HashMap<u32, f64> = HashMap::new();
        let mut terms = Vec::with_capacity(text.words.len());
        for (word, weight) in text.words() {
            let Some(word) = word else {
                terms.push(GAP);
                continue;
            };
            let term = self.term(word);
            *weights.entry(term).or_default() += weight;
            terms.push(term);
        }
        for (term, weight) in weights {
            self.terms[term as usize].postings.push(Posting { slot, weight });
        }
        let document = Document { data, terms: terms.into(), second: text.second, length: text.length() };
        self.documents[slot as usize] = Some(document);
        slot
    }

    pub fn remove(&mut self, slot: Slot) -> Option<D> {
        let document = self.documents.get_mut(slot as usize)?.take()?;
        let mut terms: Vec<u32> = document.terms.iter().copied().filter(|term| *term != GAP).collect();
        terms.sort_unstable();
        terms.dedup();
        for number in terms {
            let term = &mut self.terms[number as usize];
            if let Some(at) = term.postings.iter().position(|posting| posting.slot == slot) {
                term.postings.swap_remove(at);
            }
            if term.postings.is_empty() {
                self.vocabulary.remove(&term.word);
                *term = Term::default();
                self.free_terms.push(number);
            }
        }
        self.free.push(slot);
        Some(document.data)
    }

    fn term(&mut self, word: &str) -> u32 {
        if let Some(term) = self.vocabulary.get(word) {
            return *term;
        }
        let new = Term { word: word.into(), postings: Vec::new() };
        let number = match self.free_terms.pop() {
            Some(number) => {
                self.terms[number as usize] = new;
                number
            }
            None => {
                self.terms.push(new);
                (self.terms.len() - 1) as u32
            }
        };
        self.vocabulary.insert(word.into(), number);
        number
    }

    pub fn len(&self) -> usize {
        self.documents.len() - self.free.len()
    }

    /// The documents by slot, `None` at a free one.
    pub fn documents(&self) -> &[Option<Document<D>>] {
        &self.documents
    }

    pub fn document(&self, slot: Slot) -> Option<&Document<D>> {
        self.documents.get(slot as usize)?.as_ref()
    }

    /// Above the numbers of all terms.
    pub fn number_of_terms(&self) -> usize {
        self.terms.len()
    }

    pub fn find_term(&self, word: &str) -> Option<u32> {
        self.vocabulary.get(word).copied()
    }

    pub fn postings(&self, term: u32) -> &[Posting] {
        self.terms.get(term as usize).map_or(&[], |term| &term.postings)
    }

    /// Every word of a document.
    pub fn vocabulary(&self) -> impl Iterator<Item = &str> {
        self.vocabulary.keys().map(AsRef::as_ref)
    }
}
