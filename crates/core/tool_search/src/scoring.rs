//! The ranking by words: BM25, with a bonus for neighbours, divided by what a document could have
//! at most. So a score says how much of the question a document answers, and scores of different
//! questions can be compared.

use std::collections::{HashMap, HashSet};

use rcrt_breadcrumb::nearest_names;

use crate::index::{Index, Text};
use crate::words;

/// How fast repetitions of a word count less.
const K1: f64 = 1.5;
/// How much the length of a document counts.
const B: f64 = 0.75;
/// Two words of the question that are neighbours in a document count this many times more.
const PAIR: f64 = 2.0;
/// How much a word counts that is only similar to a word of the question.
const SIMILAR: f64 = 0.8;
/// Shorter words have no similar ones, in characters.
const MIN_SIMILAR: usize = 4;
/// Words of a question that count.
const MAX_WORDS: usize = 32;
const NO_WORD: u8 = u8::MAX;

/// A word of the question.
struct Wanted {
    word: String,
    term: Option<u32>,
    /// Below 1 for a similar word.
    factor: f64,
}

/// How much of the question each document answers, from 0 to 1.
pub(crate) struct Shares {
    /// Of the documents in the index, by slot; 0 for those that answer nothing.
    pub documents: Vec<f64>,
    /// Which documents are visible, by slot.
    pub visible: Vec<bool>,
    /// Of the texts, in their order.
    pub texts: Vec<f64>,
}

/// Ranks the visible documents, and texts that are not in the index. No score depends on a document
/// that is not visible.
pub(crate) fn rank<D>(index: &Index<D>, question: &str, is_visible: impl Fn(&D) -> bool, texts: &[Text]) -> Shares {
    let documents = index.documents();
    let visible: Vec<bool> =
        documents.iter().map(|document| document.as_ref().is_some_and(|one| is_visible(&one.data))).collect();
    let in_texts: HashSet<&str> = texts.iter().flat_map(Text::words).filter_map(|(word, _)| word).collect();
    let is_known = |word: &str| {
        let mut postings = index.find_term(word).map_or(&[][..], |term| index.postings(term)).iter();
        in_texts.contains(word) || postings.any(|posting| visible[posting.slot as usize])
    };
    let words = words::of_question(question, is_known).into_iter().map(|word| {
        if is_known(&word) {
            return (word, 1.0);
        }
        let known = index.vocabulary().chain(in_texts.iter().copied());
        similar(&word, known, is_known).map_or((word, 1.0), |similar| (similar, SIMILAR))
    });
    let WantedWords { words: wanted, pairs } = WantedWords::new(index, words);
    let postings = |word: &Wanted| {
        let postings = word.term.map_or(&[][..], |term| index.postings(term)).iter();
        postings.filter(|posting| visible[posting.slot as usize])
    };

    let mut counts = Counts::new(wanted.len(), pairs.len());
    let mut has = vec![0_u32; documents.len()];
    for (number, word) in wanted.iter().enumerate() {
        for posting in postings(word) {
            has[posting.slot as usize] |= 1 << number;
            counts.words[number] += 1.0;
        }
    }
    let numbers = numbers_of_terms(index.number_of_terms(), &wanted);
    let both: Vec<u32> = pairs.iter().map(|(first, second)| 1 << first | 1 << second).collect();
    let may_have_a_pair = |has: u32| both.iter().any(|both| has & both == *both);
    let mut neighbours: Vec<(usize, PairCount)> = Vec::new();
    let mut found = Vec::new();
    for (slot, _) in has.iter().enumerate().filter(|(_, has)| may_have_a_pair(**has)) {
        let Some(document) = &documents[slot] else { continue };
        let words = document.terms().iter().map(|term| numbers[*term as usize]);
        count_pairs(words, |at| document.weight(at), &pairs, &mut found);
        counts.add_pairs(&found);
        neighbours.extend(found.drain(..).map(|pair| (slot, pair)));
    }
    let by_word: HashMap<&str, u8> =
        wanted.iter().enumerate().map(|(number, word)| (word.word.as_str(), number as u8)).collect();
    let in_texts: Vec<Matches> = texts.iter().map(|text| Matches::of(text, &by_word, &pairs)).collect();
    for matches in &in_texts {
        matches.words.iter().for_each(|(word, _)| counts.words[usize::from(*word)] += 1.0);
        counts.add_pairs(&matches.pairs);
    }
    for (document, _) in documents.iter().zip(&visible).filter(|(_, is_visible)| **is_visible) {
        counts.add_document(document.as_ref().map_or(0.0, |document| document.length));
    }
    for text in texts {
        counts.add_document(text.length());
    }

    let scale = Scale::new(&wanted, &counts);
    let length = |slot: usize| documents[slot].as_ref().map_or(0.0, |document| document.length);
    let mut shares = vec![0.0; documents.len()];
    for (word, information) in wanted.iter().zip(&scale.words) {
        for posting in postings(word) {
            let slot = posting.slot as usize;
            shares[slot] += information * scale.saturated(posting.weight, length(slot));
        }
    }
    for (slot, (pair, weight)) in neighbours {
        shares[slot] += scale.pairs[usize::from(pair)] * scale.saturated(weight, length(slot));
    }
    for share in &mut shares {
        *share = share.min(1.0);
    }
    Shares { documents: shares, visible, texts: in_texts.iter().map(|matches| scale.share(matches)).collect() }
}

/// The question as words, each once, and which of them are neighbours.
struct WantedWords {
    words: Vec<Wanted>,
    pairs: Vec<(u8, u8)>,
}

impl WantedWords {
    /// `words`: in the order of the question, each with its factor.
    fn new<D>(index: &Index<D>, words: impl Iterator<Item = (String, f64)>) -> Self {
        let mut wanted: Vec<Wanted> = Vec::new();
        let mut sequence: Vec<u8> = Vec::new();
        for (word, factor) in words.take(2 * MAX_WORDS) {
            match wanted.iter().position(|one| one.word == word) {
                Some(number) => sequence.push(number as u8),
                None if wanted.len() < MAX_WORDS => {
                    sequence.push(wanted.len() as u8);
                    wanted.push(Wanted { term: index.find_term(&word), word, factor });
                }
                None => break,
            }
        }
        let mut pairs: Vec<(u8, u8)> = sequence.windows(2).map(|pair| (pair[0], pair[1])).collect();
        pairs.sort_unstable();
        pairs.dedup();
        pairs.retain(|(first, second)| first != second);
        Self { words: wanted, pairs }
    }
}

/// The nearest known word. The first letter is rarely wrong. Words with digits are codes, and a
/// similar code is another one.
fn similar<'w>(word: &str, known: impl Iterator<Item = &'w str>, is_known: impl Fn(&str) -> bool) -> Option<String> {
    let first = word.chars().next()?;
    if word.chars().count() < MIN_SIMILAR || !word.chars().all(char::is_alphabetic) {
        return None;
    }
    let may_be = |known: &&str| known.starts_with(first) && known.len() >= MIN_SIMILAR && is_known(known);
    nearest_names(word, known.filter(may_be)).into_iter().next()
}

/// The word of each term.
fn numbers_of_terms(terms: usize, wanted: &[Wanted]) -> Vec<u8> {
    let mut numbers = vec![NO_WORD; terms];
    for (number, word) in wanted.iter().enumerate() {
        if let Some(place) = word.term.and_then(|term| numbers.get_mut(term as usize)) {
            *place = number as u8;
        }
    }
    numbers
}

/// A pair of the question, and the sum of the weights where its words are neighbours.
type PairCount = (u8, f64);

/// Adds the pairs of a document to `found`. `words`: their numbers, [`NO_WORD`] for the others.
fn count_pairs(
    words: impl Iterator<Item = u8>,
    weight: impl Fn(usize) -> f64,
    pairs: &[(u8, u8)],
    found: &mut Vec<PairCount>,
) {
    let mut before = NO_WORD;
    for (at, word) in words.enumerate() {
        if word != NO_WORD
            && before != NO_WORD
            && let Ok(number) = pairs.binary_search(&(before, word))
        {
            match found.iter_mut().find(|(one, _)| usize::from(*one) == number) {
                Some((_, sum)) => *sum += weight(at),
                None => found.push((number as u8, weight(at))),
            }
        }
        before = word;
    }
}

/// What a text has of the question.
struct Matches {
    length: f64,
    /// The words that occur, with the sum of their weights.
    words: Vec<(u8, f64)>,
    pairs: Vec<PairCount>,
}

impl Matches {
    fn of(text: &Text, by_word: &HashMap<&str, u8>, pairs: &[(u8, u8)]) -> Self {
        let mut matches = Self { length: text.length(), words: Vec::new(), pairs: Vec::new() };
        let (numbers, weights): (Vec<u8>, Vec<f64>) = text
            .words()
            .map(|(word, weight)| (word.and_then(|word| by_word.get(word).copied()).unwrap_or(NO_WORD), weight))
            .unzip();
        for (word, weight) in numbers.iter().zip(&weights).filter(|(word, _)| **word != NO_WORD) {
            match matches.words.iter_mut().find(|(one, _)| one == word) {
                Some((_, sum)) => *sum += weight,
                None => matches.words.push((*word, *weight)),
            }
        }
        count_pairs(numbers.into_iter(), |at| weights[at], pairs, &mut matches.pairs);
        matches
    }
}

/// How many documents there are, and how many have each word and each pair.
struct Counts {
    documents: f64,
    length: f64,
    words: Vec<f64>,
    pairs: Vec<f64>,
}

impl Counts {
    fn new(words: usize, pairs: usize) -> Self {
        Self { documents: 0.0, length: 0.0, words: vec![0.0; words], pairs: vec![0.0; pairs] }
    }

    fn add_document(&mut self, length: f64) {
        self.documents += 1.0;
        self.length += length;
    }

    fn add_pairs(&mut self, found: &[PairCount]) {
        for (pair, _) in found {
            self.pairs[usize::from(*pair)] += 1.0;
        }
    }
}

/// How much each word and each pair adds to a share.
struct Scale {
    words: Vec<f64>,
    pairs: Vec<f64>,
    average: f64,
}

impl Scale {
    fn new(wanted: &[Wanted], counts: &Counts) -> Self {
        let information = |with: f64| (1.0 + (counts.documents - with + 0.5) / (with + 0.5)).ln();
        let words: Vec<f64> = counts.words.iter().map(|with| information(*with)).collect();
        // Most neighbours of a question are neighbours in no document: such a pair says nothing.
        let of_pair = |with: &f64| if *with > 0.0 { PAIR * information(*with) } else { 0.0 };
        let pairs: Vec<f64> = counts.pairs.iter().map(of_pair).collect();
        let most = words.iter().chain(&pairs).sum::<f64>().max(f64::MIN_POSITIVE);
        Self {
            words: words.iter().zip(wanted).map(|(information, word)| information * word.factor / most).collect(),
            pairs: pairs.iter().map(|information| information / most).collect(),
            average: (counts.length / counts.documents.max(1.0)).max(f64::MIN_POSITIVE),
        }
    }

    /// From 0 to 1: repetitions count less and less, and occurrences in a long document too.
    fn saturated(&self, weight: f64, length: f64) -> f64 {
        weight / (weight + K1 * (1.0 - B + B * length / self.average))
    }

    fn share(&self, matches: &Matches) -> f64 {
        let length = matches.length;
        let sum = |matches: &[(u8, f64)], information: &[f64]| -> f64 {
            let share =
                |(number, weight): &(u8, f64)| information[usize::from(*number)] * self.saturated(*weight, length);
            matches.iter().map(share).sum()
        };
        (sum(&matches.words, &self.words) + sum(&matches.pairs, &self.pairs)).min(1.0)
    }
}
