//! The start of a result, for callers that have no working memory for the rest.

/// At most `most` characters. The last line says how many were omitted.
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
