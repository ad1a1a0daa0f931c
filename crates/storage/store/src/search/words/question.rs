//! Splits a search text into the words that rank and the conditions that its author wrote with
//! `"…"`, `-word` and `OR`.

/// A search text in parts.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Question {
    pub(super) tokens: Vec<Token>,
    /// A record must match each of them, in the syntax of `websearch_to_tsquery`.
    pub(super) required: Vec<String>,
}

/// A word between spaces, or the words of a phrase.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) text: String,
    /// It looks like a code or a name. Models of meaning confuse those with similar ones.
    pub(super) is_identifier: bool,
}

enum Part<'q> {
    Or,
    Words { text: &'q str, is_phrase: bool, is_excluded: bool },
}

impl Question {
    pub(super) fn read(text: &str) -> Self {
        let mut question = Self::default();
        // The alternatives so far, and whether an `OR` follows the last one.
        let (mut group, mut is_open) = (Vec::new(), false);
        for part in parts(text.trim()) {
            match part {
                Part::Or => is_open = !group.is_empty(),
                Part::Words { text, is_excluded: true, .. } => question.required.push(format!("-{}", quoted(text))),
                Part::Words { text: words, is_phrase, .. } => {
                    question.add(text.trim(), words);
                    if !std::mem::take(&mut is_open) {
                        question.require(&mut group);
                    }
                    group.push((quoted(words), is_phrase));
                }
            }
        }
        question.require(&mut group);
        question
    }

    fn add(&mut self, question: &str, words: &str) {
        for word in words.split_whitespace() {
            let is_first = question.starts_with(word) && self.tokens.is_empty();
            let is_identifier = is_identifier(word, is_first);
            self.tokens.push(Token { text: word.to_owned(), is_identifier });
        }
        if words.contains(char::is_whitespace) {
            self.tokens.push(Token { text: words.to_owned(), is_identifier: false });
        }
    }

    /// A single word is not required: it ranks.
    fn require(&mut self, group: &mut Vec<(String, bool)>) {
        let is_condition = group.len() > 1 || group.iter().any(|(_, is_phrase)| *is_phrase);
        let alternatives: Vec<String> = group.drain(..).map(|(text, _)| text).collect();
        if is_condition {
            self.required.push(alternatives.join(" OR "));
        }
    }
}

/// A digit, an underscore, or a capital letter that does not begin the question.
fn is_identifier(word: &str, is_first: bool) -> bool {
    word.chars()
        .enumerate()
        .any(|(at, char)| char.is_numeric() || char == '_' || (char.is_uppercase() && !(is_first && at == 0)))
}

fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('"', " "))
}

fn parts(mut rest: &str) -> Vec<Part<'_>> {
    let mut parts = Vec::new();
    loop {
        rest = rest.trim_start();
        if rest.is_empty() {
            return parts;
        }
        let negated =
            rest.strip_prefix('-').filter(|after| after.starts_with(|c: char| c.is_alphanumeric() || c == '"'));
        let is_excluded = negated.is_some();
        rest = negated.unwrap_or(rest);
        let phrase = rest.strip_prefix('"').and_then(|after| after.split_once('"'));
        let (text, after) =
            phrase.unwrap_or_else(|| rest.split_at(rest.find(char::is_whitespace).unwrap_or(rest.len())));
        rest = after;
        parts.push(match text {
            "OR" if phrase.is_none() && !is_excluded => Part::Or,
            _ => Part::Words { text, is_phrase: phrase.is_some(), is_excluded },
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn required(text: &str) -> Vec<String> {
        Question::read(text).required
    }

    fn words(text: &str) -> Vec<String> {
        Question::read(text).tokens.into_iter().map(|token| token.text).collect()
    }

    fn identifiers(text: &str) -> Vec<String> {
        let tokens = Question::read(text).tokens.into_iter();
        tokens.filter(|token| token.is_identifier).map(|token| token.text).collect()
    }

    #[test]
    fn plain_words_are_not_required() {
        assert_eq!(words("what does  error E4713 mean"), ["what", "does", "error", "E4713", "mean"]);
        assert!(required("is it safe or not? well-known -- -").is_empty());
        // A quotation mark without its partner is a character.
        assert!(required("a 5\" pipe").is_empty());
    }

    #[test]
    fn phrases_exclusions_and_alternatives_are_conditions() {
        assert_eq!(required("why \"connection reset\" nginx"), ["\"connection reset\""]);
        assert_eq!(words("\"connection reset\" nginx"), ["connection", "reset", "connection reset", "nginx"]);
        assert_eq!(required("refund -fee -\"late fee\""), ["-\"fee\"", "-\"late fee\""]);
        assert_eq!(words("refund -fee"), ["refund"]);
        assert_eq!(
            required("invoice paid OR open OR \"written off\" now"),
            ["\"paid\" OR \"open\" OR \"written off\""]
        );
        // An OR that joins nothing.
        assert!(required("OR paid OR").is_empty());
        assert_eq!(required("OR paid -OR"), ["-\"OR\""]);
    }

    #[test]
    fn codes_and_names_are_identifiers() {
        assert_eq!(identifiers("What does error E4713 mean"), ["E4713"]);
        assert_eq!(identifiers("RETRY_MAX_WAIT retry_wait 42 x"), ["RETRY_MAX_WAIT", "retry_wait", "42"]);
        assert_eq!(identifiers("Does Halvorsen pay"), ["Halvorsen"]);
    }
}
