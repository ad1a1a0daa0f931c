//! Long markdown in chunks, cut at headings where they are, else between blocks, else anywhere.

/// Characters of one heading in the outline.
const MAX_HEADING: usize = 80;
/// Headings of one chunk in the outline.
const MAX_HEADINGS: usize = 6;

/// At least one chunk; none is longer than `most` characters. One walk, whatever the text is.
pub(crate) fn split(markdown: &str, most: usize) -> Vec<&str> {
    let most = most.max(1);
    let breaks = breaks(markdown);
    let mut chunks = Vec::new();
    let (mut start, mut start_char, mut next) = (0, 0, 0);
    loop {
        let rest = &markdown[start..];
        let Some((limit, _)) = rest.char_indices().nth(most) else {
            chunks.push(rest);
            return chunks;
        };
        while breaks.get(next).is_some_and(|at| at.char <= start_char) {
            next += 1;
        }
        let within = breaks[next..].iter().take_while(|at| at.char <= start_char + most);
        // A chunk of less than a third is no gain: what stands later counts more then.
        let best = within.max_by_key(|at| ((at.char - start_char) * 3 >= most, at.worth, at.char));
        let (end, end_char) = best.map_or((start + limit, start_char + most), |at| (at.byte, at.char));
        chunks.push(&markdown[start..end]);
        (start, start_char) = (end, end_char);
    }
}

/// The beginning of a line, where a chunk may begin.
struct Break {
    byte: usize,
    char: usize,
    /// A heading of the first level is the best place, the middle of a code block the worst.
    worth: usize,
}

fn breaks(markdown: &str) -> Vec<Break> {
    let mut breaks = Vec::new();
    let (mut byte, mut char) = (0, 0);
    let mut fences = Fences::default();
    let mut follows_blank = true;
    for line in markdown.split_inclusive('\n') {
        let was_inside = fences.is_inside();
        fences.pass(line);
        let worth = match heading_level(line) {
            _ if was_inside => 0,
            Some(level) => 9 - level,
            None if follows_blank => 2,
            None => 1,
        };
        breaks.push(Break { byte, char, worth });
        follows_blank = line.trim().is_empty() && !fences.is_inside();
        byte += line.len();
        char += line.chars().count();
    }
    breaks
}

/// Tells code blocks from what stands between them.
#[derive(Default)]
struct Fences {
    /// Backticks of the block that is open.
    open: Option<usize>,
}

impl Fences {
    fn is_inside(&self) -> bool {
        self.open.is_some()
    }

    fn pass(&mut self, line: &str) {
        let line = line.trim();
        let marks = line.bytes().take_while(|byte| *byte == b'`').count();
        match self.open {
            Some(open) if marks >= open && marks == line.len() => self.open = None,
            None if marks >= 3 => self.open = Some(marks),
            _ => {}
        }
    }
}

fn heading_level(line: &str) -> Option<usize> {
    let level = line.bytes().take_while(|byte| *byte == b'#').count();
    ((1..=6).contains(&level) && line[level..].starts_with(' ')).then_some(level)
}

/// One line for each chunk: its number and the headings in it. What has no room is counted.
pub(crate) fn outline(chunks: &[&str], room: usize) -> String {
    let mut lines = lines(chunks);
    let mut length: usize = lines.iter().map(|line| line.chars().count() + 1).sum();
    let mut left_out = 0;
    while length > room && lines.len() > 1 {
        length -= lines.pop().map_or(0, |line| line.chars().count() + 1);
        left_out += 1;
    }
    if left_out > 0 {
        lines.push(format!("… and {left_out} more"));
    }
    lines.join("\n")
}

fn lines(chunks: &[&str]) -> Vec<String> {
    chunks
        .iter()
        .enumerate()
        .map(|(index, chunk)| {
            let found = headings(chunk);
            let shown = if found.is_empty() {
                format!("(no heading) {}", crate::text::line(chunk, MAX_HEADING))
            } else {
                let more = found.len().saturating_sub(MAX_HEADINGS);
                let more = if more > 0 { format!("; {more} more") } else { String::new() };
                found[..found.len().min(MAX_HEADINGS)].join("; ") + &more
            };
            format!("{}. {shown}", index + 1)
        })
        .collect()
}

fn headings(chunk: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut fences = Fences::default();
    for line in chunk.lines() {
        fences.pass(line);
        if let Some(level) = heading_level(line).filter(|_| !fences.is_inside()) {
            found.push(crate::text::line(&line[level..], MAX_HEADING));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn chunks_begin_at_headings_and_the_outline_names_them() {
        let text =
            format!("# One\n\n{}\n\n# Two\n\n```\n# no heading\n```\n\n{}\n", "a ".repeat(100), "b ".repeat(100));
        let chunks = split(&text, 300);
        assert_eq!(chunks.len(), 2, "{chunks:?}");
        assert!(chunks[1].starts_with("# Two"));
        assert_eq!(outline(&chunks, 100), "1. One\n2. Two");
        assert_eq!(outline(&chunks, 10), "1. One\n… and 1 more");
    }

    #[test]
    fn code_is_kept_whole_where_it_fits_and_blocks_where_there_are_no_headings() {
        let code = format!("```\n{}```\n", "x\n\n# y\n".repeat(20));
        let text = format!("{}\n\n{code}\n{}\n", "a ".repeat(60), "b ".repeat(60));
        let chunks = split(&text, 200);
        assert_eq!(chunks.len(), 3, "{chunks:?}");
        assert_eq!(chunks[1], format!("{code}\n"));
        assert_eq!(split(&"x".repeat(100), 30).len(), 4);
        assert_eq!(split("", 30), [""]);
    }

    proptest! {
        #[test]
        fn nothing_is_lost_and_nothing_is_too_long(text in "(# [a-z]{1,9}\n\n|[a-zä |`\n-]{0,40}\n){0,30}", most in 1_usize..200) {
            let chunks = split(&text, most);
            prop_assert_eq!(chunks.concat(), text.clone());
            prop_assert!(chunks.iter().all(|chunk| chunk.chars().count() <= most));
            outline(&chunks, most);
        }
    }
}
