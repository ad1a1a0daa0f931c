//! The text of a result, whole or cut.

use std::borrow::Cow;

use serde_json::Value;

/// The text that is measured: a string itself, any other result as compact JSON.
pub fn text_of(result: &Value) -> Cow<'_, str> {
    match result {
        Value::String(text) => text.as_str().into(),
        other => other.to_string().into(),
    }
}

/// The text with every run of white space replaced by one space.
pub fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// At most this many characters. `…` at the end marks a cut.
pub fn at_most(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some(_) => text.chars().take(characters.saturating_sub(1)).chain(['…']).collect(),
    }
}

/// At most `most` characters, for callers that have no working memory for the rest. The last line
/// says how many were omitted.
pub fn truncate(text: &str, most: usize) -> String {
    let whole = text.chars().count();
    if whole <= most {
        return text.to_owned();
    }
    let notice = |omitted: usize| format!("\n[result truncated — {omitted} chars omitted]");
    // Reserves room for the longest possible notice.
    let kept = most.saturating_sub(notice(whole).chars().count());
    let mut shown: String = text.chars().take(kept).collect();
    shown.push_str(&notice(whole - kept));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn omitted_characters_are_counted() {
        let text = "ü".repeat(5000);
        let short = truncate(&text, 1000);
        assert_eq!(short.chars().count(), 1000);
        let kept = short.chars().filter(|c| *c == 'ü').count();
        assert!(short.ends_with(&format!("\n[result truncated — {} chars omitted]", 5000 - kept)), "{short}");
        assert_eq!(truncate("abc", 3), "abc");
    }
}
