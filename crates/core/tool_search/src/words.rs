//! Splits texts into words: at everything that is not a letter or digit, and inside names such as
//! `createIssue`. Words are compared by their stems.

use std::borrow::Cow;

/// Longer words are cut, in characters.
const MAX_WORD: usize = 40;

/// Words that say nothing about a tool.
const STOP_WORDS: &[&str] = &[
    "a", "about", "all", "am", "an", "and", "any", "are", "as", "at", "be", "been", "by", "can", "could", "did", "do",
    "does", "for", "from", "get", "give", "had", "has", "have", "he", "her", "here", "him", "his", "how", "i", "if",
    "in", "into", "is", "it", "its", "let", "may", "me", "might", "must", "my", "need", "no", "not", "of", "on", "or",
    "our", "out", "please", "s", "shall", "she", "should", "so", "some", "t", "than", "that", "the", "their", "them",
    "then", "there", "these", "they", "this", "those", "to", "up", "us", "want", "was", "we", "were", "what", "when",
    "where", "which", "who", "whom", "whose", "why", "will", "with", "would", "you", "your",
];

/// One word of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// A word, or a part of a compound, in the order of the text.
    Part(String),
    /// A compound as a whole, such as `github` of `GitHub`, after its parts.
    Whole(String),
}

/// The words of a document, without stop words.
pub(crate) fn of_document(text: &str) -> Vec<Word> {
    let mut words = Vec::new();
    for run in runs(text) {
        let parts = parts(&run);
        let is_compound = parts.len() > 1;
        words.extend(parts.into_iter().filter_map(stem).map(Word::Part));
        if is_compound {
            words.extend(stem(&run).map(Word::Whole));
        }
    }
    words
}

/// The words of a question. A compound counts as a whole if some document has it so, else by its
/// parts.
pub(crate) fn of_question(text: &str, is_known: impl Fn(&str) -> bool) -> Vec<String> {
    let mut words = Vec::new();
    for run in runs(text) {
        let parts = parts(&run);
        match stem(&run).filter(|whole| parts.len() > 1 && is_known(whole)) {
            Some(whole) => words.push(whole),
            None => words.extend(parts.into_iter().filter_map(stem)),
        }
    }
    words
}

fn is_mark(c: char) -> bool {
    matches!(c, '\u{300}'..='\u{36f}')
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}')
}

/// Scripts without spaces: each character is a word.
fn is_ideograph(c: char) -> bool {
    matches!(c, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}' | '\u{f900}'..='\u{faff}'
        | '\u{20000}'..='\u{3ffff}')
}

/// The runs of letters and digits, without the `'s` of a genitive.
fn runs(text: &str) -> impl Iterator<Item = Cow<'_, str>> {
    let pieces = text.split(|c: char| !(c.is_alphanumeric() || is_mark(c) || is_apostrophe(c)));
    pieces.filter_map(|piece| {
        let piece = piece.trim_matches(is_apostrophe);
        let piece = piece.strip_suffix("'s").or_else(|| piece.strip_suffix("\u{2019}s")).unwrap_or(piece);
        let word = if piece.contains(is_apostrophe) {
            Cow::Owned(piece.replace(is_apostrophe, ""))
        } else {
            Cow::Borrowed(piece)
        };
        (!word.is_empty()).then_some(word)
    })
}

/// The parts of a name in camel case, and each character of a script without spaces.
fn parts(run: &str) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    let mut characters = run.char_indices().peekable();
    let mut before: Option<char> = None;
    while let Some((at, c)) = characters.next() {
        let after = characters.peek().map(|(_, next)| *next);
        let begins = before.is_some_and(|before| {
            is_ideograph(before)
                || is_ideograph(c)
                || (c.is_uppercase()
                    && (before.is_lowercase() || (before.is_uppercase() && after.is_some_and(char::is_lowercase))))
        });
        if begins {
            parts.push(&run[start..at]);
            start = at;
        }
        before = Some(c);
    }
    parts.push(&run[start..]);
    parts
}

/// The stem in lower case; `None` for a stop word.
fn stem(word: impl AsRef<str>) -> Option<String> {
    let mut folded = String::new();
    for c in word.as_ref().chars().flat_map(char::to_lowercase).filter(|c| !is_mark(*c)).take(MAX_WORD) {
        match c {
            'à'..='å' => folded.push('a'),
            'ç' => folded.push('c'),
            'è'..='ë' => folded.push('e'),
            'ì'..='ï' => folded.push('i'),
            'ñ' => folded.push('n'),
            'ò'..='ö' | 'ø' => folded.push('o'),
            'ù'..='ü' => folded.push('u'),
            'ý' | 'ÿ' => folded.push('y'),
            'ß' => folded.push_str("ss"),
            _ => folded.push(c),
        }
    }
    if STOP_WORDS.binary_search(&folded.as_str()).is_ok() || folded.is_empty() {
        return None;
    }
    if folded.len() > 3 && folded.bytes().all(|b| b.is_ascii_lowercase()) {
        without_ending(&mut folded);
    }
    Some(folded)
}

/// Removes the endings of English plurals and verb forms, so that `creates`, `creating` and
/// `created` are one word. On the labelled questions of the tests this finds 2 % more.
fn without_ending(word: &mut String) {
    let ends_in = |word: &str, endings: &[&str]| endings.iter().any(|ending| word.ends_with(ending));
    if word.len() > 4 && word.ends_with("ies") {
        word.truncate(word.len() - 3);
        word.push('y');
    } else if ends_in(word, &["sses", "xes", "ches", "shes", "zes"]) {
        word.truncate(word.len() - 2);
    } else if word.ends_with('s') && !ends_in(word, &["ss", "us", "is"]) {
        word.pop();
    }
    let is_syllable = |stem: &str| stem.len() >= 3 && stem.contains(['a', 'e', 'i', 'o', 'u', 'y']);
    let stem = word.strip_suffix("ing").or_else(|| word.strip_suffix("ed")).filter(|stem| is_syllable(stem));
    if let Some(length) = stem.map(str::len) {
        word.truncate(length);
        let mut letters = word.chars().rev();
        let (last, before) = (letters.next(), letters.next());
        if length > 3 && last == before && !matches!(last, Some('l' | 's' | 'z')) {
            word.pop();
        }
    }
    if word.len() > 3 && word.ends_with('e') {
        word.pop();
    }
}
