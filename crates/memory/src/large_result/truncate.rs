//! The beginning of a result, for callers that have no working memory to keep the rest.

/// At most `most` characters, the last line of which says how many are left out.
pub fn truncate(text: &str, most: usize) -> String {
    let whole = text.chars().count();
    if whole <= most {
        return text.to_owned();
    }
    let notice = |omitted: usize| format!("\n[result truncated — {omitted} chars omitted]");
    // The longest notice that there can be here leaves room for the true one.
    let kept = most.saturating_sub(notice(whole).chars().count());
    let mut shown: String = text.chars().take(kept).collect();
    shown.push_str(&notice(whole - kept));
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_counted() {
        let text = "ü".repeat(5000);
        let short = truncate(&text, 1000);
        assert_eq!(short.chars().count(), 1000);
        let kept = short.chars().filter(|c| *c == 'ü').count();
        assert!(short.ends_with(&format!("\n[result truncated — {} chars omitted]", 5000 - kept)), "{short}");
        assert_eq!(truncate("abc", 3), "abc");
    }
}
