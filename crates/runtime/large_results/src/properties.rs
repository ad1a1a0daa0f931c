//! Properties of every split: nothing is lost or duplicated, every chunk is within bounds, tables
//! and fences are whole if they fit, and the outline points to the right chunks.

#![allow(clippy::format_push_string, clippy::format_collect, clippy::items_after_statements)]

use proptest::collection::vec;
use proptest::prelude::*;
use serde_json::{Map, Value, json};
use text_splitter::Characters;

use super::json::{self, join, leaves};
use super::json_path::written;
use super::json_size::{Escaped, escaped_chars, json_chars};
use super::outline::flat;
use super::parts::{Layout, split};
use super::{text, text_of};

/// Pieces of Markdown, valid and broken.
fn block() -> impl Strategy<Value = String> {
    let words = vec("[a-zäß…日]{1,12}", 1..30).prop_map(|words| words.join(" "));
    prop_oneof![
        3 => words.clone(),
        2 => (1_usize..=6, words.clone()).prop_map(|(level, title)| format!("{} {title}", "#".repeat(level))),
        1 => words.clone().prop_map(|title| format!("{title}\n====")),
        2 => vec(words.clone(), 1..6).prop_map(|items| format!("- {}", items.join("\n- "))),
        2 => vec((words.clone(), words.clone()), 1..6).prop_map(|rows| table(&rows)),
        2 => vec(words.clone(), 1..8).prop_map(|lines| fence(&lines)),
        1 => words.clone().prop_map(|text| format!("> {text}\n> {text}")),
        1 => words.prop_map(|text| format!("<div>\n<p>{text}</p>\n\n</div>")),
        1 => Just("---".to_owned()),
        1 => Just("```".to_owned()),
        1 => Just("    indented\n\n\tcode".to_owned()),
        1 => "[x]{1,300}",
        2 => any::<String>(),
        1 => "[\\-*_`~#>|\\[\\]()!<&\\\\ \n\t:$^]{0,60}",
        1 => "(e\u{301}|👨‍👩‍👧|\r\n|\u{2028}){1,40}",
    ]
}

fn table(rows: &[(String, String)]) -> String {
    rows.iter().fold("| a | b |\n|---|---|".to_owned(), |table, (a, b)| format!("{table}\n| {a} | {b} |"))
}

fn fence(lines: &[String]) -> String {
    format!("```text\n# no heading\n\n{}\n```", lines.join("\n"))
}

fn document() -> impl Strategy<Value = String> {
    (vec(block(), 1..25), prop_oneof!["\n", "\n\n", "\r\n\r\n", " "])
        .prop_map(|(blocks, between)| blocks.join(&between))
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_filter("a number", |number| number.is_finite()).prop_map(Value::from),
        "[a-z ä\"\\\\\n\u{1}]{0,40}".prop_map(Value::from),
        "[a-z ä\"\n]{100,900}".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 120, 12, |inner| {
        prop_oneof![
            vec(inner.clone(), 0..12).prop_map(Value::from),
            vec(("[a-zA-Z ä'\"]{0,12}", inner), 0..12).prop_map(|members| Value::Object(Map::from_iter(members))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn pieces_of_a_text_form_the_text(text in document(), most in 1_usize..600) {
        let pieces = text::split(&text, most, &Characters);
        prop_assert_eq!(pieces.concat(), text.clone());
        for piece in &pieces {
            prop_assert!(piece.chars().count() <= most, "{} of {most}", piece.chars().count());
            prop_assert!(!piece.is_empty() || text.is_empty());
        }
        // A sizer that counts more than characters: JSON escapes.
        let most = most + 6;
        let pieces = text::split(&text, most, &Escaped);
        prop_assert_eq!(pieces.concat(), text.clone());
        prop_assert!(pieces.iter().all(|piece| escaped_chars(piece) <= most));
    }

    #[test]
    fn sections_of_a_page_form_the_page(text in document(), most in 1_usize..600) {
        let pieces = text::sections(&text, most, &Characters);
        prop_assert_eq!(pieces.concat(), text.as_str());
        let most = most.max(text.chars().count().div_ceil(100));
        prop_assert!(pieces.iter().all(|piece| !piece.is_empty() && piece.chars().count() <= most) || text.is_empty());
    }

    #[test]
    fn each_section_with_text_is_a_piece(levels in vec(1_usize..=6, 1..40)) {
        let text: String = levels.iter().map(|level| format!("{} Title\n\nSome text.\n\n", "#".repeat(*level))).collect();
        let pieces = text::sections(&text, 10_000, &Characters);
        let begins = levels.iter().skip(1).filter(|level| **level <= 3).count() + 1;
        prop_assert_eq!(pieces.len(), begins, "{:?}", pieces);
    }

    #[test]
    fn tables_and_fences_are_whole_if_they_fit(
        blocks in vec(
            prop_oneof![
                vec("[a-z]{1,9}", 1..60).prop_map(|words| (false, words.join(" "))),
                (1_usize..=4, "[a-z]{1,20}").prop_map(|(level, title)| (false, format!("{} {title}", "#".repeat(level)))),
                vec(("[a-z]{1,20}", "[a-z]{1,20}"), 1..12).prop_map(|rows| (true, table(&rows))),
                vec("[a-z ]{1,30}", 1..12).prop_map(|lines| (true, fence(&lines))),
            ],
            1..20,
        ),
        most in 60_usize..500,
    ) {
        let text = blocks.iter().map(|(_, block)| block.as_str()).collect::<Vec<_>>().join("\n\n");
        let pieces = text::split(&text, most, &Characters);
        let mut at = 0;
        for (is_whole, block) in &blocks {
            if *is_whole && block.chars().count() <= most {
                let (mut start, mut held) = (0, false);
                for piece in &pieces {
                    held |= start <= at && at + block.len() <= start + piece.len();
                    start += piece.len();
                }
                prop_assert!(held, "torn:\n{block}\n--- pieces of at most {most}\n{}", pieces.join("\n=====\n"));
            }
            at += block.len() + 2;
        }
    }

    #[test]
    fn pieces_use_their_room(
        blocks in vec(
            prop_oneof![
                3 => vec("[a-z]{1,9}", 1..60).prop_map(|words| words.join(" ")),
                1 => (1_usize..=4, "[a-z]{1,20}").prop_map(|(level, title)| format!("{} {title}", "#".repeat(level))),
            ],
            1..40,
        ),
        most in 200_usize..500,
    ) {
        let text = blocks.join("\n\n");
        let pieces = text::split(&text, most, &Characters);
        // No table forces an early end, so all but the last piece use at least a third of the
        // limit, unless a heading stays with the text below it.
        for piece in &pieces[..pieces.len() - 1] {
            prop_assert!(piece.chars().count() + 30 >= most / 3, "{} of {most}: {pieces:#?}", piece.chars().count());
        }
    }

    #[test]
    fn outline_of_a_text_has_the_start_of_each_section(
        sections in vec((1_usize..=6, vec("[a-z]{1,9}", 1..60)), 1..20),
        most in 80_usize..400,
    ) {
        let mut text = String::new();
        for (number, (level, words)) in sections.iter().enumerate() {
            text += &format!("{} Section {number}\n\n{}\n\n```\n# Section 99\n```\n\n", "#".repeat(*level), words.join(" "));
        }
        let split = split(&Value::from(text.clone()), most);
        let outline = flat(&split.outline);
        prop_assert_eq!(outline.len(), sections.len());
        let Layout::Text { starts, characters } = &split.layout else { panic!("a text") };
        prop_assert_eq!(*characters, text.chars().count());
        for (number, section) in outline.iter().enumerate() {
            prop_assert_eq!(&section.title, &format!("Section {number}"));
            let part = text_of(&split.parts[section.chunk - 1].value).into_owned();
            let inside = section.start.unwrap() - starts[section.chunk - 1];
            let heading: String = part.chars().skip(inside).collect();
            let level = sections[number].0;
            let whole = format!("{} Section {number}\n", "#".repeat(level));
            // The limit can be shorter than the heading.
            prop_assert!(heading.starts_with(&whole) || whole.starts_with(&heading), "{heading:?}");
        }
    }

    #[test]
    fn parent_of_a_section_is_the_last_one_of_a_lower_level(levels in vec(1_usize..=6, 1..30)) {
        let text: String = levels.iter().map(|level| format!("{} t\n\n", "#".repeat(*level))).collect();
        let outline = split(&Value::from(text), 1000).outline;
        fn shape(sections: &[super::Section], above: usize, levels: &mut std::slice::Iter<'_, usize>) -> bool {
            sections.iter().all(|section| {
                let level = *levels.next().unwrap();
                level > above && shape(&section.sections, level, levels)
            })
        }
        let mut rest = levels.iter();
        prop_assert!(shape(&outline, 0, &mut rest));
        prop_assert_eq!(rest.len(), 0);
    }

    #[test]
    fn pieces_of_a_document_form_the_document(document in value(), most in 80_usize..1_500) {
        prop_assume!(document.get(0).is_some() || document.as_object().is_some_and(|members| !members.is_empty()));
        let Ok((pieces, marks)) = json::split(&document, most) else {
            // The path to a value leaves no room in a piece, so it is split as text.
            let split = split(&document, most);
            let text: String = split.parts.iter().map(|part| text_of(&part.value).into_owned()).collect();
            prop_assert_eq!(text, document.to_string());
            return Ok(());
        };
        for piece in &pieces {
            prop_assert_eq!(piece.characters, piece.value.to_string().chars().count());
            prop_assert!(piece.characters <= most, "{} of {most}", piece.characters);
        }
        let whole = join(pieces.iter().map(|piece| (piece.begin.clone(), piece.value.clone())));
        // Compared as text, so that the order of members counts too.
        prop_assert_eq!(whole.map(|whole| whole.to_string()), Some(document.to_string()));
        let mut paths = Vec::new();
        for piece in &pieces {
            leaves(Some(&piece.begin), &piece.value, &mut |path, _| paths.push(written(path)));
        }
        paths.dedup();
        let mut expected = Vec::new();
        leaves(None, &document, &mut |path, _| expected.push(written(path)));
        prop_assert_eq!(paths, expected);
        for mark in marks {
            // The value is in the chunk that the outline names, and not in the one before.
            let path = written(&mark.begin.path);
            let is_in = |number: usize| {
                let mut found = false;
                let piece = &pieces[number - 1];
                super::leaves(Some(&piece.begin), &piece.value, &mut |path, _| found |= path.starts_with(&mark.begin.path));
                found
            };
            prop_assert!(is_in(mark.chunk), "{path} is not in {}", mark.chunk);
            let is_begun = mark.begin.characters.is_some() || pieces[mark.chunk - 1].begin.path.starts_with(&mark.begin.path);
            if mark.chunk > 1 && !is_begun {
                prop_assert!(!is_in(mark.chunk - 1), "{path} is in {} already", mark.chunk - 1);
            }
        }
    }

    #[test]
    fn counted_size_equals_written_size(document in value()) {
        prop_assert_eq!(json_chars(&document), document.to_string().chars().count());
    }
}

#[test]
fn elements_stay_whole_and_pieces_are_full() {
    let items: Vec<Value> = (0..100).map(|n| json!({"id": n, "text": "x".repeat(20)})).collect();
    let document = json!({"total": 100, "items": items});
    let (pieces, _) = json::split(&document, 1_000).unwrap();
    for piece in &pieces {
        for item in piece.value["items"].as_array().unwrap() {
            assert!(item["id"].is_u64() && item["text"].as_str().unwrap().len() == 20, "{item}");
        }
    }
    for piece in &pieces[..pieces.len() - 1] {
        assert!(piece.characters > 1_000 - 50, "{}", piece.characters);
    }
}

#[test]
fn long_text_in_a_document_uses_the_remaining_room() {
    let document = json!({"url": "https://example.com", "content": "word ".repeat(1_000), "after": true});
    let (pieces, _) = json::split(&document, 1_000).unwrap();
    assert_eq!(pieces.len(), 6, "{:?}", pieces.iter().map(|piece| piece.characters).collect::<Vec<_>>());
    assert_eq!(pieces[0].value["url"], "https://example.com");
    assert!(pieces[0].characters > 950);
    assert_eq!(pieces[5].value["after"], true);
}

#[test]
fn document_with_oversized_keys_is_split_as_text() {
    let document = json!({"k".repeat(500): ["a".repeat(400), "b".repeat(400)]});
    assert!(json::split(&document, 400).is_err());
    let split = split(&document, 400);
    assert!(matches!(split.layout, Layout::Text { .. }));
    assert!(split.parts.iter().all(|part| part.characters <= 400));
}

/// Texts that could crash a splitter or make it very slow. Each is split with the production
/// limits.
#[test]
fn hostile_texts_are_split_in_reasonable_time() {
    let lengths = 1_500_000;
    let of = |piece: &str| piece.repeat(lengths / piece.len());
    for (name, text) in [
        ("one word", of("x")),
        ("blanks", of(" ")),
        ("line breaks", of("\n")),
        ("emphasis", of("*a*")),
        ("open emphasis", of("*a ")),
        ("open links", of("[")),
        ("links", of("[a](b) ")),
        ("quotes", of("> ")),
        ("nested lists", (0..1_500).map(|depth| format!("{}- x\n", " ".repeat(depth))).collect()),
        ("ticks", of("`a``b```")),
        ("combining marks", format!("e{}", of("\u{301}"))),
        ("table rows", format!("|a|b|\n|-|-|\n{}", of("|x|y|\n"))),
        ("headings", of("# a\n")),
        ("html", of("<a><b></a>")),
        ("comments", of("<!-- ")),
        ("entities", of("&amp;&#")),
        ("footnotes", of("[^1]: a\n")),
        ("definitions", of("[a]: b\n")),
        ("pipes", of("|")),
        ("log", of("2026-01-01T00:00:00Z INFO something happened in some module\n")),
    ] {
        let split = split(&Value::from(text.clone()), 20_000);
        let joined: String = split.parts.iter().map(|part| text_of(&part.value).into_owned()).collect();
        assert!(joined == text, "{name}");
        assert!(split.parts.iter().all(|part| part.characters <= 20_000), "{name}");
    }
}
