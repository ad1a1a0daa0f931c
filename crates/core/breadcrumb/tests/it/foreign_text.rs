use proptest::prelude::*;
use rcrt_breadcrumb::foreign_text::{line, lines};

/// "hi" in invisible characters.
const TAGGED: &str = "\u{e0068}\u{e0069}";

#[test]
fn a_line_has_no_breaks_and_no_hidden_characters() {
    for (text, expected) in [
        ("", ""),
        (" two\r\n\twords ", "two words"),
        ("a\u{0}\u{1b}[2Jb", "a [2Jb"),
        ("pay\u{202e}load\u{2066}", "pay load"),
        ("zero\u{200b}width\u{feff}", "zero width"),
        ("a\u{2028}b\u{85}c", "a b c"),
        ("Über 10 €", "Über 10 €"),
    ] {
        assert_eq!(line(text, 100), expected, "{text:?}");
    }
    assert_eq!(line(&format!("seen{TAGGED}"), 100), "seen");
}

#[test]
fn lines_keep_breaks_and_tabs_only() {
    assert_eq!(lines("one\r\n\ttwo\u{7}\u{202e}\u{ad}", 100), "one\n\ttwo");
    assert_eq!(lines(&format!("see{TAGGED}n"), 100), "seen");
}

#[test]
fn both_are_cut_by_characters() {
    assert_eq!(line("äöü äöü", 4), "äöü …");
    assert_eq!(lines("ä\nö\nü", 3), "ä\nö…");
    assert_eq!((line("äöü", 3), lines("äöü", 3)), ("äöü".to_owned(), "äöü".to_owned()));
    let long = "word ".repeat(1_000_000);
    assert_eq!(line(&long, 500).chars().count(), 501);
    assert_eq!(lines(&long, 500).chars().count(), 501);
}

proptest! {
    #[test]
    fn a_clean_text_stays_as_it_is(text in any::<String>(), most in 0_usize..50) {
        let (one, several) = (line(&text, most), lines(&text, most));
        prop_assert_eq!(line(&one, most + 1), &*one);
        prop_assert_eq!(lines(&several, most + 1), &*several);
        prop_assert!(one.chars().count() <= most + 1 && several.chars().count() <= most + 1);
        prop_assert!(!one.contains(|c: char| c.is_control()));
    }
}
