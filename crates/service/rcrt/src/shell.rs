//! Commands for people to copy into a shell.

/// Quotes a word for a POSIX shell if needed.
pub fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@%".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn words_are_quoted_if_a_shell_needs_it() {
        assert_eq!(quoted("./target/debug/rcrt"), "./target/debug/rcrt");
        assert_eq!(quoted("my data"), "'my data'");
        assert_eq!(quoted("it's"), "'it'\\''s'");
        assert_eq!(quoted(""), "''");
    }
}
