//! Decodes characters one by one, so that a file of any size can be read.

use std::io::{self, BufRead, Read};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// `mark` is the length of the byte order mark at the start, 0 or 3.
    Utf8 { mark: usize },
    /// With a byte order mark.
    Utf16 { big_endian: bool },
    /// A guess: not UTF-8, but looks like text.
    Windows1252,
}

impl Encoding {
    pub fn name(self) -> &'static str {
        match self {
            Self::Utf8 { .. } => "utf-8",
            Self::Utf16 { big_endian: false } => "utf-16le",
            Self::Utf16 { big_endian: true } => "utf-16be",
            Self::Windows1252 => "windows-1252 (guessed)",
        }
    }

    fn mark(self) -> usize {
        match self {
            Self::Utf8 { mark } => mark,
            Self::Utf16 { .. } => 2,
            Self::Windows1252 => 0,
        }
    }
}

/// Control characters that are rare in text files.
pub fn is_odd_control(c: char) -> bool {
    c < ' ' && !matches!(c, '\t' | '\n' | '\r' | '\u{c}')
}

pub struct Decoder<R> {
    inner: R,
    encoding: Encoding,
    is_begun: bool,
    peeked: Option<char>,
    /// A surrogate that is not part of a pair.
    pending_unit: Option<u16>,
    /// How many characters could not be decoded and were replaced by U+FFFD.
    pub replaced: u64,
}

impl<R: BufRead> Decoder<R> {
    pub fn new(inner: R, encoding: Encoding) -> Self {
        Self { inner, encoding, is_begun: false, peeked: None, pending_unit: None, replaced: 0 }
    }

    pub fn peek(&mut self) -> io::Result<Option<char>> {
        if self.peeked.is_none() {
            self.peeked = self.decode()?;
        }
        Ok(self.peeked)
    }

    pub fn next(&mut self) -> io::Result<Option<char>> {
        match self.peeked.take() {
            Some(c) => Ok(Some(c)),
            None => self.decode(),
        }
    }

    /// Skips to the end of this line; `false` if the file ends without a line break.
    pub fn skip_line(&mut self) -> io::Result<bool> {
        self.begin()?;
        if self.peeked.take() == Some('\n') {
            return Ok(true);
        }
        if matches!(self.encoding, Encoding::Utf16 { .. }) {
            loop {
                match self.next()? {
                    None => return Ok(false),
                    Some('\n') => return Ok(true),
                    Some(_) => {}
                }
            }
        }
        loop {
            let buffer = self.inner.fill_buf()?;
            if buffer.is_empty() {
                return Ok(false);
            }
            let (used, found) = match buffer.iter().position(|byte| *byte == b'\n') {
                Some(at) => (at + 1, true),
                None => (buffer.len(), false),
            };
            self.inner.consume(used);
            if found {
                return Ok(true);
            }
        }
    }

    fn begin(&mut self) -> io::Result<()> {
        if !self.is_begun {
            self.is_begun = true;
            io::copy(&mut self.inner.by_ref().take(self.encoding.mark() as u64), &mut io::sink())?;
        }
        Ok(())
    }

    fn decode(&mut self) -> io::Result<Option<char>> {
        self.begin()?;
        match self.encoding {
            Encoding::Utf8 { .. } => self.utf8(),
            Encoding::Utf16 { big_endian } => self.utf16(big_endian),
            Encoding::Windows1252 => Ok(self.byte()?.map(windows_1252)),
        }
    }

    fn byte(&mut self) -> io::Result<Option<u8>> {
        let first = self.inner.fill_buf()?.first().copied();
        if first.is_some() {
            self.inner.consume(1);
        }
        Ok(first)
    }

    fn replace(&mut self) -> char {
        self.replaced += 1;
        char::REPLACEMENT_CHARACTER
    }

    fn utf8(&mut self) -> io::Result<Option<char>> {
        let Some(first) = self.byte()? else { return Ok(None) };
        if first.is_ascii() {
            return Ok(Some(char::from(first)));
        }
        let length = match first {
            0xC2..=0xDF => 2,
            0xE0..=0xEF => 3,
            0xF0..=0xF4 => 4,
            _ => return Ok(Some(self.replace())),
        };
        let mut bytes = [first, 0, 0, 0];
        for at in 1..length {
            // A byte that does not continue the character starts the next one, so it is not
            // consumed.
            match self.inner.fill_buf()?.first().copied() {
                Some(byte) if (0x80..0xC0).contains(&byte) => {
                    self.inner.consume(1);
                    if let Some(target) = bytes.get_mut(at) {
                        *target = byte;
                    }
                }
                _ => return Ok(Some(self.replace())),
            }
        }
        let read = bytes.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).and_then(|s| s.chars().next());
        Ok(Some(read.unwrap_or_else(|| self.replace())))
    }

    fn utf16(&mut self, big_endian: bool) -> io::Result<Option<char>> {
        let Some(unit) = self.unit(big_endian)? else { return Ok(None) };
        if let Some(Ok(c)) = char::decode_utf16([unit]).next() {
            return Ok(Some(c));
        }
        if !(0xD800..0xDC00).contains(&unit) {
            return Ok(Some(self.replace()));
        }
        let Some(second) = self.unit(big_endian)? else { return Ok(Some(self.replace())) };
        match char::decode_utf16([unit, second]).next() {
            Some(Ok(c)) => Ok(Some(c)),
            _ => {
                self.pending_unit = Some(second);
                Ok(Some(self.replace()))
            }
        }
    }

    fn unit(&mut self, big_endian: bool) -> io::Result<Option<u16>> {
        if let Some(unit) = self.pending_unit.take() {
            return Ok(Some(unit));
        }
        let (Some(first), Some(second)) = (self.byte()?, self.byte()?) else { return Ok(None) };
        Ok(Some(if big_endian { u16::from_be_bytes([first, second]) } else { u16::from_le_bytes([first, second]) }))
    }
}

fn windows_1252(byte: u8) -> char {
    const HIGH: [char; 32] = [
        '€', '\u{81}', '‚', 'ƒ', '„', '…', '†', '‡', 'ˆ', '‰', 'Š', '‹', 'Œ', '\u{8d}', 'Ž', '\u{8f}', '\u{90}', '‘',
        '’', '“', '”', '•', '–', '—', '˜', '™', 'š', '›', 'œ', '\u{9d}', 'ž', 'Ÿ',
    ];
    match byte {
        0x80..=0x9F => HIGH.get(usize::from(byte - 0x80)).copied().unwrap_or(char::REPLACEMENT_CHARACTER),
        other => char::from(other),
    }
}
