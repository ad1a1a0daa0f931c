//! Finds words in texts and returns excerpts.

use std::collections::HashSet;

use rcrt_large_results::one_line;

/// The maximum length of an excerpt, in characters.
const WINDOW: usize = 240;
/// How many characters of a long line are shown before the first term.
const BEFORE: usize = 60;
const MAX_TERMS: usize = 20;

/// The terms of a query: words, and phrases in double quotes. Case is ignored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Terms(Vec<String>);

/// A match of one or more terms.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TermMatch {
    /// Characters from the start of the text.
    pub at: usize,
    /// How many of the terms match here.
    pub terms: usize,
    /// The excerpt, on one line.
    pub text: String,
}

impl Terms {
    /// `None` if the query has no terms.
    pub fn read(query: &str) -> Option<Self> {
        let mut terms = Vec::new();
        for (index, part) in query.split('"').enumerate() {
            if index % 2 == 1 {
                terms.push(lower(part.trim()));
            } else {
                terms.extend(part.split_whitespace().map(lower));
            }
        }
        terms.retain(|term| !term.is_empty());
        let mut seen = HashSet::new();
        terms.retain(|term| seen.insert(term.clone()));
        terms.truncate(MAX_TERMS);
        (!terms.is_empty()).then_some(Self(terms))
    }

    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// How many of the terms occur in the text, ignoring case.
    pub fn count_in(&self, text: &str) -> usize {
        let text = lower(text);
        self.0.iter().filter(|term| text.contains(term.as_str())).count()
    }

    /// The matches in text order. A match covers a line, or a piece of a long line.
    pub fn matches(&self, text: &str) -> Vec<TermMatch> {
        let mut found = Vec::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let length = line.chars().count();
            if length <= WINDOW {
                let terms = self.count_in(line);
                if terms > 0 {
                    found.push(TermMatch { at, terms, text: one_line(line) });
                }
            } else {
                self.matches_in_long_line(line, at, &mut found);
            }
            at += length;
        }
        found
    }

    fn matches_in_long_line(&self, line: &str, at: usize, found: &mut Vec<TermMatch>) {
        let hits = self.hits(line);
        let bounds: Vec<usize> = line.char_indices().map(|(byte, _)| byte).chain([line.len()]).collect();
        let mut covered = 0;
        for (index, (start, end, _)) in hits.iter().enumerate() {
            if *end <= covered {
                continue;
            }
            let from = start.saturating_sub(BEFORE).max(covered.min(*start));
            let until = (from + WINDOW).max(*end).min(bounds.len() - 1);
            let here =
                hits[index..].iter().take_while(|(start, _, _)| *start < until).filter(|(_, end, _)| *end <= until);
            let terms: HashSet<usize> = here.map(|(_, _, term)| *term).collect();
            found.push(TermMatch {
                at: at + from,
                terms: terms.len(),
                text: one_line(&line[bounds[from]..bounds[until]]),
            });
            covered = until;
        }
    }

    /// The occurrences of each term in the line, in order: start, end (exclusive), index of the
    /// term.
    fn hits(&self, line: &str) -> Vec<(usize, usize, usize)> {
        let mut lowered = String::with_capacity(line.len());
        // For each byte of the lowercase line, the character of the original line.
        let mut origin = Vec::with_capacity(line.len() + 1);
        for (index, character) in line.chars().enumerate() {
            lowered.extend(character.to_lowercase());
            origin.resize(lowered.len(), index);
        }
        let mut hits = Vec::new();
        for (number, term) in self.0.iter().enumerate() {
            for (byte, _) in lowered.match_indices(term.as_str()) {
                hits.push((origin[byte], origin[byte + term.len() - 1] + 1, number));
            }
        }
        hits.sort_unstable();
        hits
    }
}

/// Lowercases character by character, so that a text and a term in it get the same spelling.
fn lower(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_phrases_match_ignoring_case() {
        let terms = Terms::read("Error \"disk is FULL\" error").unwrap();
        assert_eq!(terms.len(), 2);
        let matches = terms.matches("all well\nERROR: the Disk is full\nanother error\n");
        let shown: Vec<_> = matches.iter().map(|found| (found.at, found.terms, found.text.as_str())).collect();
        assert_eq!(shown, [(9, 2, "ERROR: the Disk is full"), (33, 1, "another error")]);
        assert_eq!(Terms::read("  \"\" "), None);
    }

    #[test]
    fn word_is_found_anywhere_in_a_long_line() {
        for at in 0..700 {
            let line: String = format!("{}neeDle{}", "İ".repeat(at), "b".repeat(700 - at));
            let matches = Terms::read("needle").unwrap().matches(&line);
            assert_eq!(matches.len(), 1, "{at}");
            assert!(matches[0].at <= at && matches[0].text.contains("neeDle"), "{at}");
            let shown: String = line.chars().skip(matches[0].at).take(WINDOW).collect();
            assert_eq!(shown, matches[0].text);
        }
    }

    #[test]
    fn each_word_of_a_long_line_is_shown_once() {
        let line = format!("needle{}needle{}needle needle", "x".repeat(400), "y".repeat(180));
        let matches = Terms::read("needle").unwrap().matches(&line);
        let shown: usize = matches.iter().map(|found| found.text.matches("needle").count()).sum();
        assert_eq!(shown, 4, "{matches:?}");
    }
}
