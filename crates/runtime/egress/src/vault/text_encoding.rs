//! Decodes encodings that have several spellings for one character, so that a value is found in
//! each spelling.

/// How bytes are decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextEncoding {
    /// Unchanged.
    Plain,
    /// With `%41` for `A`, also where it is not required.
    Percent,
    /// With JSON's `\u0041` for `A`, `\n` and the like.
    Json,
}

/// The result of decoding one character.
pub(super) enum Decoded {
    /// The text so far is incomplete; the next byte is needed.
    More,
    /// The first byte of the text stands for itself.
    Itself,
    /// The whole text encodes this byte or character.
    Means(char),
    Byte(u8),
}

impl TextEncoding {
    /// Whether an encoded character starts with this byte. All other bytes stand for themselves.
    pub fn opens(self, byte: u8) -> bool {
        match self {
            Self::Plain => false,
            Self::Percent => byte == b'%',
            Self::Json => byte == b'\\',
        }
    }

    /// Decodes a text that starts with an opening byte. It grows by one byte after each
    /// [`Decoded::More`].
    pub fn read(self, text: &[u8]) -> Decoded {
        match self {
            Self::Plain => Decoded::Itself,
            Self::Percent => percent(text),
            Self::Json => json(text),
        }
    }
}

fn percent(text: &[u8]) -> Decoded {
    match text {
        [_] => Decoded::More,
        [_, high] if high.is_ascii_hexdigit() => Decoded::More,
        [_, digits @ ..] => hex(digits).and_then(|byte| u8::try_from(byte).ok()).map_or(Decoded::Itself, Decoded::Byte),
        [] => Decoded::Itself,
    }
}

fn json(text: &[u8]) -> Decoded {
    match text {
        [_, b'u', unit @ ..] if unit.len() <= 4 => match code_unit(unit) {
            Unit::Begun | Unit::Whole(0xd800..0xdc00) => Decoded::More,
            Unit::Whole(unit) => char::from_u32(unit).map_or(Decoded::Itself, Decoded::Means),
            Unit::None => Decoded::Itself,
        },
        // The low surrogate of a pair follows.
        [_] | [_, b'u', _, _, _, _, b'\\'] | [_, b'u', _, _, _, _, b'\\', b'u'] => Decoded::More,
        [_, b'u', a, b, c, d, b'\\', b'u', low @ ..] => match (code_unit(&[*a, *b, *c, *d]), code_unit(low)) {
            (_, Unit::Begun) => Decoded::More,
            (Unit::Whole(high), Unit::Whole(low @ 0xdc00..0xe000)) => {
                let code = 0x1_0000 + ((high & 0x3ff) << 10) + (low & 0x3ff);
                char::from_u32(code).map_or(Decoded::Itself, Decoded::Means)
            }
            _ => Decoded::Itself,
        },
        [_, short] => match short {
            b'n' => Decoded::Means('\n'),
            b'r' => Decoded::Means('\r'),
            b't' => Decoded::Means('\t'),
            b'b' => Decoded::Means('\u{8}'),
            b'f' => Decoded::Means('\u{c}'),
            b'"' | b'\\' | b'/' | b'\'' => Decoded::Means(char::from(*short)),
            _ => Decoded::Itself,
        },
        _ => Decoded::Itself,
    }
}

enum Unit {
    Begun,
    Whole(u32),
    None,
}

fn code_unit(digits: &[u8]) -> Unit {
    if !digits.iter().all(u8::is_ascii_hexdigit) {
        return Unit::None;
    }
    match digits.len() {
        0..4 => Unit::Begun,
        4 => hex(digits).map_or(Unit::None, Unit::Whole),
        _ => Unit::None,
    }
}

fn hex(digits: &[u8]) -> Option<u32> {
    digits.iter().try_fold(0, |number, digit| Some(number * 16 + char::from(*digit).to_digit(16)?))
}
