//! What programs wrote, made short enough for callers without a session: those take so many characters of a result at
//! once, and have no working memory that would keep the rest.

use breadcrumb::ToolRequest;
use jail::command::Captured;

use crate::exit_status;

/// Characters of a result that a caller takes where it says nothing else.
const TAKEN_AT_ONCE: usize = 64_000;
/// Characters that fit into a response's record in the worst spelling as JSON, six bytes for each.
const MOST: usize = breadcrumb::MAX_RECORD_BYTES / 7;

/// How many characters of a result the caller takes; `None` for a session, which keeps a large result whole.
pub fn taken_at_once(request: &ToolRequest) -> Option<usize> {
    if request.session.is_some() {
        return None;
    }
    let asked = request.max_result_chars.map(|asked| usize::try_from(asked).unwrap_or(usize::MAX));
    Some(asked.unwrap_or(TAKEN_AT_ONCE).min(MOST))
}

/// One stream as a text of at most so many characters.
pub fn text(stream: &Captured, most: usize) -> String {
    shortened(exit_status::text(stream), stream.omitted(), most, |_| 1)
}

/// Two streams that take at most so many characters together as JSON strings, quotes left aside: each whole where it
/// needs no more than half or the other leaves enough.
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

/// Characters of one character in a JSON string.
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

/// The beginning and the end of a text, with a line between them that counts what is left out; so many bytes were left
/// out before already.
fn shortened(text: String, omitted: u64, most: usize, of: fn(char) -> usize) -> String {
    if size(&text, of) <= most {
        return text;
    }
    // The longest line that there can be here leaves room for the true one.
    let half = most.saturating_sub(size(&line(text.len(), u64::MAX), of)) / 2;
    let mut start = reach(text.char_indices(), half, of).map_or(text.len(), |(at, _)| at);
    let mut end = reach(text.char_indices().rev(), half, of).map_or(0, |(at, c)| at + c.len_utf8());
    let mut before = (0, 0);
    // What is left out now may hold the line that told of bytes left out before, or a part of it.
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

/// The first character that has no room any more.
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

/// Where the line stands by which a bounded stream tells what it left out, how long it is in bytes, and what it tells.
fn line_before(text: &str, omitted: u64) -> Option<(usize, usize, u64)> {
    // A character that was cut in two is left out as well, at each side.
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
        fn both_have_room_together(
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
        fn what_is_left_out_is_counted(text in "[ab\nü😀]{400,2000}", most in 200_usize..390) {
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
    fn what_was_left_out_before_is_counted_too() {
        let stream = captured(&"x".repeat(10_000), 4000);
        let short = text(&stream, 1000);
        let kept = short.chars().filter(|character| *character == 'x').count();
        assert!(short.contains(&format!("\n[… {} characters and 6000 bytes omitted …]\n", 4000 - kept)), "{short}");
        assert!(kept > 800 && short.chars().count() <= 1000, "{kept}");
    }
}
