//! The ranking by words: BM25, with a bonus for neighbours, divided by what a document could have
//! at most. So a score says how much of the question a document answers, and scores of different
//! questions can be compared.

use std::collections::{HashMap, HashSet};

use rcrt_breadcrumb::nearest_names;

use crate::index::{Index, Slot, Text};
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
    /// Of the documents in the index that answer some.
    pub documents: Vec<(Slot, f64)>,
    /// Of the texts, in their order.
    pub texts: Vec<f64>,
    /// Which documents are visible, by slot.
    pub visible: Vec<bool>,
}

/// The words that a document has, and those that are neighbours.
#[derive(Default, Clone)]
struct Matches {
    length: f64,
    /// The sum of the weights by word, only of words that occur.
    words: Vec<(u8, f64)>,
    /// The same by pair.
    pairs: Vec<(u8, f64)>,
}

/// Ranks the visible documents, and texts that are not in the index. No score depends on a document
/// that is not visible.
pub(crate) fn rank<D>(index: &Index<D>, question: &str, is_visible: impl Fn(&D) -> bool, texts: &[Text]) -> Shares {
    let visible: Vec<bool> =
        index.documents().iter().map(|document| document.as_ref().is_some_and(|one| is_visible(&one.data))).collect();
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

    let mut found: HashMap<Slot, Matches> = HashMap::new();
    for (number, word) in wanted.iter().enumerate() {
        for posting in word.term.map_or(&[][..], |term| index.postings(term)) {
            if visible[posting.slot as usize] {
                found.entry(posting.slot).or_default().words.push((number as u8, posting.weight));
            }
        }
    }
    let numbers = numbers_of_terms(index.number_of_terms(), &wanted);
    for (slot, matches) in &mut found {
        let Some(document) = index.document(*slot) else { continue };
        matches.length = document.length;
        if matches.may_have_a_pair(&pairs) {
            let sequence = document.terms().map(|(term, weight)| {
                (numbers.get(term as usize).copied().filter(|number| *number != NO_WORD), weight)
            });
            matches.pairs = count_pairs(sequence, &pairs);
        }
    }
    let by_word: HashMap<&str, u8> =
        wanted.iter().enumerate().map(|(number, word)| (word.word.as_str(), number as u8)).collect();
    let in_texts: Vec<Matches> = texts.iter().map(|text| Matches::of_text(text, &by_word, &pairs)).collect();

    let is_shown = |(slot, _): &(usize, _)| visible[*slot];
    let lengths = index.documents().iter().enumerate().filter(is_shown).filter_map(|(_, one)| one.as_ref());
    let (mut count, mut length) = lengths.fold((0.0, 0.0), |(count, sum), one| (count + 1.0, sum + one.length));
    count += texts.len() as f64;
    length += texts.iter().map(Text::length).sum::<f64>();
    let scale = Scale::new(&wanted, pairs.len(), count, length / f64::max(count, 1.0), found.values().chain(&in_texts));
    let documents = found.iter().map(|(slot, matches)| (*slot, scale.share(matches))).collect();
    Shares { documents, texts: in_texts.iter().map(|matches| scale.share(matches)).collect(), visible }
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

/// The nearest known word. The first letter is rarely wrong. Words with digits are codes, of which a
/// similar one is another.
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

fn count_pairs(sequence: impl Iterator<Item = (Option<u8>, f64)>, pairs: &[(u8, u8)]) -> Vec<(u8, f64)> {
    let mut counts: Vec<(u8, f64)> = Vec::new();
    let mut before = None;
    for (word, weight) in sequence {
        if let Some(pair) = before.zip(word)
            && let Ok(number) = pairs.binary_search(&pair)
        {
            match counts.iter_mut().find(|(one, _)| usize::from(*one) == number) {
                Some((_, sum)) => *sum += weight,
                None => counts.push((number as u8, weight)),
            }
        }
        before = word;
    }
    counts
}

impl Matches {
    fn of_text(text: &Text, by_word: &HashMap<&str, u8>, pairs: &[(u8, u8)]) -> Self {
        let mut matches = Self { length: text.length(), ..Self::default() };
        let numbered: Vec<(Option<u8>, f64)> =
            text.words().map(|(word, weight)| (word.and_then(|word| by_word.get(word).copied()), weight)).collect();
        for (word, weight) in numbered.iter().filter_map(|(word, weight)| Some(((*word)?, *weight))) {
            match matches.words.iter_mut().find(|(one, _)| *one == word) {
                Some((_, sum)) => *sum += weight,
                None => matches.words.push((word, weight)),
            }
        }
        matches.pairs = count_pairs(numbered.into_iter(), pairs);
        matches
    }

    fn may_have_a_pair(&self, pairs: &[(u8, u8)]) -> bool {
        let has = |word: u8| self.words.iter().any(|(one, _)| *one == word);
        self.words.len() > 1 && pairs.iter().any(|(first, second)| has(*first) && has(*second))
    }
}

/// How much each word and each pair says.
struct Scale {
    words: Vec<f64>,
    pairs: Vec<f64>,
    average: f64,
    most: f64,
}

impl Scale {
    fn new<'m>(
        wanted: &[Wanted],
        pairs: usize,
        count: f64,
        average: f64,
        documents: impl Iterator<Item = &'m Matches>,
    ) -> Self {
        let (mut with_word, mut with_pair) = (vec![0.0; wanted.len()], vec![0.0; pairs]);
        for matches in documents {
            matches.words.iter().for_each(|(word, _)| with_word[usize::from(*word)] += 1.0);
            matches.pairs.iter().for_each(|(pair, _)| with_pair[usize::from(*pair)] += 1.0);
        }
        let information = |with: f64| (1.0 + (count - with + 0.5) / (with + 0.5)).ln();
        let words: Vec<f64> = with_word.into_iter().map(information).collect();
        // Most neighbours in a question are none in any document, which says nothing.
        let is_known = |with: f64| if with > 0.0 { PAIR * information(with) } else { 0.0 };
        let pairs: Vec<f64> = with_pair.into_iter().map(is_known).collect();
        let most = (K1 + 1.0) * words.iter().chain(&pairs).sum::<f64>();
        let words = words.iter().zip(wanted).map(|(information, word)| information * word.factor).collect();
        Self { words, pairs, average, most }
    }

    fn share(&self, matches: &Matches) -> f64 {
        let length = if self.average > 0.0 { matches.length / self.average } else { 1.0 };
        let saturated = |weight: f64| weight * (K1 + 1.0) / (weight + K1 * (1.0 - B + B * length));
        let sum = |matches: &[(u8, f64)], information: &[f64]| -> f64 {
            matches.iter().map(|(number, weight)| information[usize::from(*number)] * saturated(*weight)).sum()
        };
        let score = sum(&matches.words, &self.words) + sum(&matches.pairs, &self.pairs);
        if self.most > 0.0 { (score / self.most).min(1.0) } else { 0.0 }
    }
}
