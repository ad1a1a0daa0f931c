//! The encodings in which a value can occur: as it is, and in the usual encodings of services.

use base64::Engine;
use base64::alphabet::{STANDARD, URL_SAFE};
use base64::engine::general_purpose::{GeneralPurpose, NO_PAD};

use super::encoding;

/// A shorter piece of an encoded value occurs too often by chance. Values of 8 bytes have no
/// shorter ones.
const MIN_ENCODED: usize = 8;

/// Every fixed text that gives the value away, the value itself first. What depends on each writer's taste
/// (percent-encoding, JSON's escapes) is undone before these are looked for; as the gate itself writes it, it is looked
/// for as it stands too, since what stands before it may read on into it.
pub(super) fn of(value: &str) -> Vec<Vec<u8>> {
    let mut forms = written(value);
    // Of UTF-16 the value alone is looked for.
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
    // What `Authorization: Basic` holds, encoded once more.
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

/// The value, and what the gate and most services make of it in a query, a form and a JSON text, once and twice. For
/// a value of letters and digits these are all the same.
fn written(value: &str) -> Vec<Vec<u8>> {
    let mut texts = vec![
        value.to_owned(),
        // A form has `+` for a space, whatever else it encodes.
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

/// The value in base64 after `offset` other bytes (modulo 3): the digits that depend on the value
/// alone, and with those that end the text, if the value ends it.
fn base64_at(engine: &GeneralPurpose, value: &[u8], offset: usize) -> Vec<Vec<u8>> {
    let mut padded = vec![0; offset];
    padded.extend_from_slice(value);
    let all = engine.encode(&padded).into_bytes();
    // Six bits a digit: the first digit that starts at or after the value, the last that ends within it.
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
        fn a_value_anywhere_in_base64_shows_one_of_its_forms(
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
                // All but the two digits that it shares with its neighbours.
                let digits = value.len() * 8 / 6;
                prop_assert!(longest.is_some_and(|form| form.len() + 1 >= digits), "{text}");
            }
        }
    }
}
