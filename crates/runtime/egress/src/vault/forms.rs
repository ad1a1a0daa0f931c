//! The encodings in which a value can occur: plain, and in the usual encodings of services.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

use super::encoding;

/// Shorter pieces of an encoded value occur too often by chance. Values of 8 bytes or more have no
/// shorter ones.
const MIN_ENCODED: usize = 8;

/// Every fixed text that reveals the value, the value itself first. Encodings with several
/// spellings (percent-encoding, JSON escapes) are decoded before the search. Their spelling by the
/// gate is included too, because bytes before the value can change how it is decoded.
pub(super) fn of(value: &str) -> Vec<Vec<u8>> {
    let mut forms = written(value);
    // In UTF-16, only the plain value is searched for.
    let mut encoded: Vec<Vec<u8>> = vec![
        value.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        value.encode_utf16().flat_map(u16::to_be_bytes).collect(),
    ];
    let [standard, url_safe] = [STANDARD, URL_SAFE].map(|alphabet| GeneralPurpose::new(&alphabet, NO_PAD));
    for text in &forms {
        for offset in 0..3 {
            encoded.extend(base64_at(&standard, text, offset));
            encoded.extend(base64_at(&url_safe, text, offset));
        }
        encoded.extend(hexadecimal(text));
    }
    // The content of `Authorization: Basic`, encoded once more.
    for inner in (0..3).filter_map(|offset| base64_at(&standard, value.as_bytes(), offset).into_iter().next()) {
        for offset in 0..3 {
            encoded.extend(base64_at(&standard, &inner, offset).into_iter().take(1));
            encoded.extend(base64_at(&url_safe, &inner, offset).into_iter().take(1));
        }
        encoded.extend(hexadecimal(&inner));
    }
    forms.extend(encoded.into_iter().filter(|form: &Vec<u8>| form.len() >= MIN_ENCODED));
    forms.sort_unstable();
    forms.dedup();
    forms
}

/// The value, and how the gate and most services write it in a query, a form and JSON, encoded once
/// and twice. All are equal for a value of letters and digits.
fn written(value: &str) -> Vec<Vec<u8>> {
    let mut texts = vec![
        value.to_owned(),
        // Forms write `+` for a space, whatever else they encode.
        value.replace(' ', "+"),
    ];
    for once in [encoding::in_query(value), encoding::in_form(value)] {
        texts.extend([encoding::in_query(&once), with_small_digits(&once), once]);
    }
    let once = encoding::in_json(value);
    let with_slashes = once.replace('/', "\\/");
    for text in [once, with_slashes] {
        texts.extend([encoding::in_json(&text), encoding::in_form(&text), text]);
    }
    let mut texts: Vec<Vec<u8>> = texts.into_iter().map(String::into_bytes).collect();
    texts.sort_unstable();
    texts.dedup();
    texts
}

/// A percent-encoded text with `%2f` for `%2F`.
fn with_small_digits(encoded: &str) -> String {
    let mut left: u8 = 0;
    let mut text = String::with_capacity(encoded.len());
    for c in encoded.chars() {
        text.push(if left > 0 { c.to_ascii_lowercase() } else { c });
        left = if c == '%' { 2 } else { left.saturating_sub(1) };
    }
    text
}

fn hexadecimal(text: &[u8]) -> [Vec<u8>; 2] {
    [b"0123456789abcdef", b"0123456789ABCDEF"].map(|digits| {
        let digit = |nibble: u8| digits[usize::from(nibble & 15)];
        text.iter().flat_map(|byte| [digit(byte >> 4), digit(*byte)]).collect()
    })
}

/// The value in base64 after `offset` other bytes (modulo 3): the digits that depend only on the
/// value, and also those at the end of the text, in case the value ends it.
fn base64_at(engine: &GeneralPurpose, value: &[u8], offset: usize) -> Vec<Vec<u8>> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(value);
    let all = engine.encode(&padded).into_bytes();
    // Six bits per digit: the first digit that starts at or after the value, and the last that ends
    // within it.
    let (first, whole) = ((offset * 8).div_ceil(6), padded.len() * 8 / 6);
    let Some(core) = all.get(first..whole) else { return Vec::new() };
    let mut found = vec![core.to_vec()];
    if all.len() > whole {
        let mut ended = all[first..].to_vec();
        found.push(ended.clone());
        ended.resize(ended.len() + (4 - all.len() % 4) % 4, b'=');
        found.push(ended);
    }
    found
}

#[cfg(test)]
mod tests {
    use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn base64_of_a_value_at_any_offset_contains_a_form(
            before in proptest::collection::vec(any::<u8>(), 0..7),
            value in "\\PC{8,40}",
            after in proptest::collection::vec(any::<u8>(), 0..7),
        ) {
            let whole = [&before, value.as_bytes(), &after].concat();
            for text in [BASE64_STANDARD.encode(&whole), BASE64_URL_SAFE_NO_PAD.encode(&whole)] {
                let longest = of(&value)
                    .into_iter()
                    .filter(|form| text.as_bytes().windows(form.len()).any(|window| window == form))
                    .max_by_key(Vec::len);
                // All but the two digits that it shares with adjacent bytes.
                let digits = value.len() * 8 / 6;
                prop_assert!(longest.is_some_and(|form| form.len() + 1 >= digits), "{text}");
            }
        }
    }
}
