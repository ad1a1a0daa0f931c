//! Truncates program output for callers without a session. They accept a limited number of
//! characters at once, and have no working memory for the rest.

use rcrt_breadcrumb::ToolRequest;
use rcrt_jail::command::Captured;

use crate::exit_status;

/// The default number of characters of a result that a caller accepts.
const TAKEN_AT_ONCE: usize = 64_000;
/// Characters that fit into a response record in the worst case, six bytes each as JSON.
const MOST: usize = rcrt_breadcrumb::MAX_RECORD_BYTES / 7;

/// The characters of a result that the caller accepts; `None` for a session, which stores a large
/// result whole.
pub fn taken_at_once(request: &ToolRequest) -> Option<usize> {
    if request.session.is_some() {
        return None;
    }
    let asked = request.max_result_chars.map(|asked| usize::try_from(asked).unwrap_or(usize::MAX));
    Some(asked.unwrap_or(TAKEN_AT_ONCE).min(MOST))
}

/// One stream as a text of at most `most` characters.
pub fn text(stream: &Captured, most: usize) -> String {
    shortened(exit_status::text(stream), stream.omitted(), most, |_| 1)
}

/// Two streams with at most `most` characters together as JSON strings, without the quotes. Each is
/// whole if it needs at most half, or if the other leaves enough.
pub fn texts(streams: [&Captured; 2], most: usize) -> [String; 2] {
    let texts = streams.map(exit_status::text);
    let [first, second] = [&texts[0], &texts[1]].map(|text| size(text, in_json));
    let half = most / 2;
    let rooms = [most.saturating_sub(second).max(half), most.saturating_sub(first).max(half)];
    let [first, second] = texts;
    [
        shortened(first, streams[0].omitted(), rooms[0], in_json),
        shortened(second, streams[1].omitted(), rooms[1], in_json),
    ]
}

/// The characters of one character in a JSON string.
fn in_json(character: char) -> usize {
    match character {
        '"' | '\\' | '\u{8}' | '\u{c}' | '\n' | '\r' | '\t' => 2,
        '\0'..'\u{20}' => 6,
        _ => 1,
    }
}

fn size(text: &str, of: fn(char) -> usize) -> usize {
    text.chars().map(of).sum()
}

/// Keeps the beginning and the end of a text, with a line between them that counts what is omitted.
/// `omitted` bytes were already omitted before.
fn shortened(text: String, omitted: u64, most: usize, of: fn(char) -> usize) -> String {
    if size(&text, of) <= most {
        return text;
    }
    // Reserves room for the longest possible line.
    let half = most.saturating_sub(size(&line(text.len(), u64::MAX), of)) / 2;
    let mut start = reach(text.char_indices(), half, of).map_or(text.len(), |(at, _)| at);
    let mut end = reach(text.char_indices().rev(), half, of).map_or(0, |(at, c)| at + c.len_utf8());
    let mut before = (0, 0);
    // The part that is omitted now may contain all or part of the earlier line about omitted bytes.
    if let Some((at, length, bytes)) = line_before(&text, omitted)
        && at < end
        && at + length > start
    {
        (start, end) = (start.min(at), end.max(at + length));
        before = (text[at..at + length].chars().count(), bytes);
    }
    let characters = text[start..end].chars().count() - before.0;
    format!("{}{}{}", &text[..start], line(characters, before.1), &text[end..])
}

/// The first character that does not fit.
fn reach(
    mut characters: impl Iterator<Item = (usize, char)>,
    room: usize,
    of: fn(char) -> usize,
) -> Option<(usize, char)> {
    let mut used = 0;
    characters.find(|(_, character)| {
        used += of(*character);
        used > room
    })
}

fn line(characters: usize, bytes: u64) -> String {
    match bytes {
        0 => format!("\n[… {characters} characters omitted …]\n"),
        bytes => format!("\n[… {characters} characters and {bytes} bytes omitted …]\n"),
    }
}

/// Finds the line with which a bounded stream reports omitted bytes: its position, its length in
/// bytes, and its count.
fn line_before(text: &str, omitted: u64) -> Option<(usize, usize, u64)> {
    // A character that was cut in two is omitted too, at each side.
    let mut counts = if omitted == 0 { 0..0 } else { omitted..omitted + 8 };
    counts.find_map(|bytes| {
        let line = format!("\n[… {bytes} bytes omitted …]\n");
        text.find(&line).map(|at| (at, line.len(), bytes))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn captured(text: &str, kept: usize) -> Captured {
        let mut captured = Captured::at_most(kept);
        captured.add(text.as_bytes());
        captured
    }

    proptest! {
        #[test]
        fn truncated_streams_fit_together(
            first in "[a\\\\\"\n\u{1}ü😀]{0,2000}", second in "[a\\\\\"\n\u{1}ü😀]{0,2000}",
            most in 300_usize..3000, kept in 100_usize..6000,
        ) {
            let streams = [captured(&first, kept), captured(&second, kept)];
            let texts = texts([&streams[0], &streams[1]], most);
            let sizes = [&texts[0], &texts[1]].map(|text| Value::from(text.as_str()).to_string().chars().count() - 2);
            prop_assert!(sizes[0] + sizes[1] <= most, "{sizes:?} {most}");
            for (text, stream) in texts.iter().zip(&streams) {
                let whole = exit_status::text(stream);
                let needs = Value::from(whole.as_str()).to_string().chars().count() - 2;
                prop_assert!(needs > most / 2 || *text == whole);
            }
        }

        #[test]
        fn omitted_characters_are_counted(text in "[ab\nü😀]{400,2000}", most in 200_usize..390) {
            let short = super::text(&captured(&text, 100_000), most);
            prop_assert!(short.chars().count() <= most);
            let (first, rest) = short.split_once("\n[… ").unwrap();
            let (count, last) = rest.split_once(" characters omitted …]\n").unwrap();
            prop_assert!(text.starts_with(first) && text.ends_with(last));
            let kept = first.chars().count() + last.chars().count();
            prop_assert_eq!(count.parse::<usize>().unwrap() + kept, text.chars().count());
        }
    }

    #[test]
    fn earlier_omissions_are_counted_too() {
        let stream = captured(&"x".repeat(10_000), 4000);
        let short = text(&stream, 1000);
        let kept = short.chars().filter(|character| *character == 'x').count();
        assert!(short.contains(&format!("\n[… {} characters and 6000 bytes omitted …]\n", 4000 - kept)), "{short}");
        assert!(kept > 800 && short.chars().count() <= 1000, "{kept}");
    }
}
