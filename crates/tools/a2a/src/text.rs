//! Text of strangers: bounded, and without characters that would break a line, the store or a
//! terminal.

/// One line: each run of white space and control characters becomes a space; at most `most`
/// characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    let is_space = |c: char| c.is_whitespace() || c.is_control() || is_hidden(c);
    let words: Vec<&str> = text.split(is_space).filter(|word| !word.is_empty()).collect();
    cut(words.join(" "), most)
}

/// Several lines, without other control characters; at most `most` characters.
pub(crate) fn lines(text: &str, most: usize) -> String {
    let clean = text.replace("\r\n", "\n");
    cut(clean.chars().filter(|c| matches!(c, '\n' | '\t') || !c.is_control() && !is_hidden(*c)).collect(), most)
}

/// Characters that change the direction of text or are not seen.
fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

fn cut(text: String, most: usize) -> String {
    match text.char_indices().nth(most) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text,
    }
}
