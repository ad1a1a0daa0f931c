//! Converts byte offsets to lines and columns.

/// The start of each line of a text.
pub(crate) struct Lines<'s> {
    source: &'s str,
    starts: Vec<usize>,
}

impl<'s> Lines<'s> {
    pub(crate) fn new(source: &'s str) -> Self {
        let mut starts = vec![0];
        let bytes = source.as_bytes();
        for (index, character) in source.char_indices() {
            let next = index + character.len_utf8();
            match character {
                '\r' if bytes.get(next) == Some(&b'\n') => {}
                '\n' | '\r' | '\u{2028}' | '\u{2029}' => starts.push(next),
                _ => {}
            }
        }
        Self { source, starts }
    }

    /// Line and column of a byte offset, both from 1; the column in UTF-16 units.
    pub(crate) fn of(&self, offset: usize) -> (u32, u32) {
        let line = self.starts.partition_point(|start| *start <= offset).max(1);
        let start = self.starts.get(line - 1).copied().unwrap_or(0);
        let before = self.source.get(start..offset).unwrap_or("");
        let column = before.chars().map(char::len_utf16).sum::<usize>() + 1;
        (u32::try_from(line).unwrap_or(u32::MAX), u32::try_from(column).unwrap_or(u32::MAX))
    }
}
