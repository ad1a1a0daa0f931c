//! Texts of third parties: bounded, and without control characters.

/// Shortens a text to this many characters, and removes control characters except line breaks and
/// tabs.
pub fn clean(text: &str, most: usize) -> String {
    let is_shown = |c: &char| !c.is_control() || matches!(c, '\n' | '\t');
    let mut kept: String = text.chars().filter(is_shown).take(most + 1).collect();
    if let Some((end, _)) = kept.char_indices().nth(most) {
        kept.truncate(end);
        kept.push('…');
    }
    kept
}

/// The same as one line, for messages.
pub fn line(text: &str) -> String {
    clean(&text.replace(['\n', '\r', '\t'], " "), 500)
}
