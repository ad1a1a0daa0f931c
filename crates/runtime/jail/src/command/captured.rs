//! The output of a program: its beginning, its end, and the number of bytes omitted in between.

use std::collections::VecDeque;

/// Bytes of one stream, bounded.
#[derive(Debug, Clone, Default)]
pub struct Captured {
    first: Vec<u8>,
    last: VecDeque<u8>,
    /// The size limit of the beginning, and of the end.
    half: usize,
    omitted: u64,
}

impl Captured {
    /// Stores at most this many bytes.
    pub fn at_most(bytes: usize) -> Self {
        Self { half: bytes / 2, ..Self::default() }
    }

    pub fn add(&mut self, bytes: &[u8]) {
        let (first, rest) = bytes.split_at(bytes.len().min(self.half - self.first.len()));
        self.first.extend_from_slice(first);
        // Bytes that newer ones would replace at once are not copied.
        let (skipped, rest) = rest.split_at(rest.len().saturating_sub(self.half));
        let pushed_out =
            if skipped.is_empty() { (self.last.len() + rest.len()).saturating_sub(self.half) } else { self.last.len() };
        self.last.drain(..pushed_out);
        self.last.extend(rest);
        self.omitted += (pushed_out + skipped.len()) as u64;
    }

    /// Counts bytes that somebody else left out, after those that were added so far.
    pub fn omit(&mut self, bytes: u64) {
        self.omitted += bytes;
    }

    /// Bytes that were written and not stored.
    pub fn omitted(&self) -> u64 {
        self.omitted
    }

    pub fn is_empty(&self) -> bool {
        self.first.is_empty() && self.last.is_empty()
    }

    /// The text. Invalid UTF-8 becomes U+FFFD, and a line says how much was omitted.
    pub fn text(&self) -> String {
        let last: Vec<u8> = self.last.iter().copied().collect();
        if self.omitted == 0 {
            return String::from_utf8_lossy(&[self.first.as_slice(), &last].concat()).into_owned();
        }
        let (first, last) = (whole_characters(&self.first), from_a_character(&last));
        let omitted = self.omitted + (self.first.len() - first.len() + self.last.len() - last.len()) as u64;
        let (first, last) = (String::from_utf8_lossy(first), String::from_utf8_lossy(last));
        format!("{first}\n[… {omitted} bytes omitted …]\n{last}")
    }
}

/// Removes an incomplete character at the end.
fn whole_characters(bytes: &[u8]) -> &[u8] {
    let start = bytes.iter().rposition(|byte| byte & 0xC0 != 0x80).unwrap_or(0);
    match std::str::from_utf8(&bytes[start..]) {
        Err(error) if error.error_len().is_none() => &bytes[..start],
        _ => bytes,
    }
}

/// Removes an incomplete character at the start.
fn from_a_character(bytes: &[u8]) -> &[u8] {
    let cut = bytes.iter().take(3).take_while(|byte| **byte & 0xC0 == 0x80).count();
    &bytes[cut..]
}

#[cfg(test)]
mod tests {
    use super::*;

    proptest::proptest! {
        #[test]
        fn every_byte_is_stored_or_counted(bytes: usize, parts: Vec<Vec<u8>>) {
            let bytes = bytes % 64;
            let mut captured = Captured::at_most(bytes);
            for part in &parts {
                captured.add(part);
            }
            let all = parts.concat();
            let (half, kept) = (bytes / 2, captured.first.len() + captured.last.len());
            assert_eq!(kept as u64 + captured.omitted(), all.len() as u64);
            assert!(captured.first.len() <= half && captured.last.len() <= half);
            assert!(all.starts_with(&captured.first));
            assert!(all.ends_with(&captured.last.iter().copied().collect::<Vec<u8>>()));
            // Nothing is omitted while there is room.
            assert!(captured.omitted() == 0 || kept == half * 2);
        }

        #[test]
        fn a_cut_splits_no_character(text in "[a-zäö€😀]{0,80}", bytes in 0_usize..40) {
            let mut captured = Captured::at_most(bytes);
            captured.add(text.as_bytes());
            assert!(!captured.text().contains('\u{FFFD}'), "{}", captured.text());
        }
    }

    #[test]
    fn omitted_bytes_are_reported() {
        let mut captured = Captured::at_most(8);
        captured.add(b"0123456789");
        captured.add(b"abc");
        assert_eq!(captured.text(), "0123\n[… 5 bytes omitted …]\n9abc");
    }
}
