//! Text of strangers, such as MCP servers and other agents: bounded, and without characters that
//! would break a line, the store or a terminal, or that people do not see and models read.

/// One line: each run of white space, control and hidden characters becomes a space. At most `most`
/// characters, and `…` if it was longer.
pub fn line(text: &str, most: usize) -> String {
    let is_space = |c: char| c.is_whitespace() || c.is_control() || is_hidden(c);
    let mut line = String::new();
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        // A character has at most four bytes.
        if line.len() > 4 * most {
            break;
        }
    }
    cut(line, most)
}

/// The text without control characters, except line breaks and tabs, and without hidden ones. At
/// most `most` characters, and `…` if it was longer.
pub fn lines(text: &str, most: usize) -> String {
    let is_kept = |c: &char| matches!(c, '\n' | '\t') || !c.is_control() && !is_hidden(*c);
    cut(text.chars().filter(is_kept).take(most + 1).collect(), most)
}

/// Characters that change the direction of the text, or that are not seen: also the tags and
/// variation selectors that can hide a whole message.
fn is_hidden(c: char) -> bool {
    matches!(
        c,
        '\u{ad}'
            | '\u{61c}'
            | '\u{180e}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}'
            | '\u{feff}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

fn cut(mut text: String, most: usize) -> String {
    if let Some((end, _)) = text.char_indices().nth(most) {
        text.truncate(end);
        text.push('…');
    }
    text
}
