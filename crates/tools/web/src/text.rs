//! Text for agents: without characters that would break a line of the result, the store, or a
//! terminal.

/// Normalizes line ends to `\n` and removes other control characters. Postgres stores no NUL.
pub(crate) fn clean(text: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\r' => {
                if characters.peek() != Some(&'\n') {
                    clean.push('\n');
                }
            }
            '\n' | '\t' => clean.push(c),
            c if c.is_control() => {}
            c => clean.push(c),
        }
    }
    clean
}

/// One line: each run of white space and control characters becomes a space; at most `most`
/// characters.
pub(crate) fn line(text: &str, most: usize) -> String {
    let mut line = String::new();
    let mut written = 0;
    for word in text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty()) {
        if written > 0 {
            line.push(' ');
            written += 1;
        }
        for c in word.chars() {
            if written >= most {
                return line.trim_end().to_owned() + "…";
            }
            line.push(c);
            written += 1;
        }
    }
    line
}

/// Returns the first `most` characters, and the number of all.
pub(crate) fn cut(text: &str, most: usize) -> (&str, usize) {
    let total = text.chars().count();
    if total <= most {
        return (text, total);
    }
    let end = text.char_indices().nth(most).map_or(text.len(), |(at, _)| at);
    (&text[..end], total)
}

/// Escapes text for a link's name.
pub(crate) fn link_name(text: &str) -> String {
    let mut name = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '[' | ']' | '\\') {
            name.push('\\');
        }
        name.push(c);
    }
    name
}

/// Escapes a URL for a link's target.
pub(crate) fn link_target(url: &str) -> String {
    let mut target = String::with_capacity(url.len());
    for c in url.chars() {
        match c {
            '(' => target.push_str("%28"),
            ')' => target.push_str("%29"),
            '<' => target.push_str("%3C"),
            '>' => target.push_str("%3E"),
            c if c.is_whitespace() || c.is_control() => target.push_str("%20"),
            c => target.push(c),
        }
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_and_control_characters_are_normalized() {
        assert_eq!(clean("a\r\nb\rc\0d\u{1b}[31m\te\u{85}"), "a\nb\ncd[31m\te");
        assert_eq!(line("  a\n\r\n b\u{0}c  ", 10), "a b c");
        assert_eq!(line("aaaa bbbb", 6), "aaaa b…");
        assert_eq!(line("aaaa bbbb", 5), "aaaa…");
        assert_eq!(cut("äöü", 2), ("äö", 3));
        assert_eq!(cut("äöü", 3), ("äöü", 3));
    }
}
