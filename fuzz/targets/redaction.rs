//! The untrusted response of a bound host, possibly with a secret in it: whatever surrounds the
//! value, and however the body is split, the value does not pass in any of the encodings that are
//! documented as detected.
//!
//! Input: the value, a line end, one byte that says how the body is split and one that says what is
//! echoed in it, the body.
#![no_main]

// Included by path, because their crate needs an HTTP stack.
#[path = "../../crates/runtime/egress/src/vault/encoding.rs"]
mod encoding;
#[path = "../../crates/runtime/egress/src/vault/forms.rs"]
mod forms;
#[path = "../../crates/runtime/egress/src/vault/redaction.rs"]
#[allow(dead_code)]
mod redaction;
#[path = "../../crates/runtime/egress/src/vault/search.rs"]
mod search;
#[path = "../../crates/runtime/egress/src/vault/text_encoding.rs"]
mod text_encoding;

use std::sync::Arc;

use base64::Engine;
use base64::prelude::{BASE64_STANDARD, BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD};
use bytes::Bytes;
use futures::executor::block_on;
use futures::{StreamExt, TryStreamExt, stream};
use libfuzzer_sys::{Corpus, fuzz_target};
use redaction::Redaction;

/// The parts of a call's secret that redaction reads.
pub struct HeldSecret {
    pub name: String,
    pub value: String,
}

const LABEL: &[u8] = b"[secret K]";

fuzz_target!(|input: &[u8]| -> Corpus {
    let Some(end) = input.iter().position(|byte| *byte == b'\n') else { return Corpus::Reject };
    let Ok(value) = std::str::from_utf8(&input[..end]) else { return Corpus::Reject };
    let [cut, echo, text @ ..] = &input[end + 1..] else { return Corpus::Reject };
    // A value that is part of the label cannot be distinguished from it.
    if !(8..=64).contains(&value.len()) || value.contains(['[', ']']) || contains(LABEL, value.as_bytes()) {
        return Corpus::Reject;
    }
    let body = echoed(value, *echo, text);
    let secret = HeldSecret { name: "K".into(), value: value.into() };
    let redaction = Arc::new(Redaction::of(std::iter::once(&secret)).expect("one value can be searched for"));
    let whole = redaction.bytes(&body).into_owned();

    // However the body is split.
    let pieces: Vec<_> = body.chunks(usize::from(*cut) + 1).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
    let streamed: Vec<Bytes> =
        block_on(redaction.stream(stream::iter(pieces).boxed()).try_collect()).expect("no errors");
    assert_eq!(streamed.concat(), whole);

    // The result contains the value in no encoding.
    let percent = percent_decoded(&whole);
    for shape in shapes(value) {
        assert!(!contains(&whole, &shape), "{shape:?} in {whole:?}");
        assert!(!contains(&percent, &shape), "{shape:?} in {whole:?}, percent-encoded");
    }
    // Without the value the body stays unchanged, and a second redaction changes nothing.
    assert_eq!(whole == body, redaction.names_in(&body).is_empty());
    assert_eq!(redaction.bytes(&whole), whole);
    if whole == body {
        assert!(shapes(value).iter().all(|shape| !contains(&body, shape)));
    }
    Corpus::Keep
});

fn contains(text: &[u8], part: &[u8]) -> bool {
    part.len() <= text.len() && text.windows(part.len()).any(|window| window == part)
}

/// The text with the value in it, as a host would echo it.
fn echoed(value: &str, echo: u8, text: &[u8]) -> Vec<u8> {
    let (before, after) = text.split_at(text.len() / 2);
    let around = [&before[before.len().saturating_sub(usize::from(echo >> 4) % 3)..], value.as_bytes(), after].concat();
    let own = [encoding::in_query(value), encoding::in_form(value), encoding::in_json(value)];
    let middle = match echo & 7 {
        0 => [&own[usize::from(echo >> 4) % 3].clone().into_bytes()[..], b" "].concat(),
        1 => value.as_bytes().to_vec(),
        2 => value.bytes().flat_map(|byte| format!("%{byte:02X}").into_bytes()).collect(),
        3 => serde_json::to_vec(value).expect("text is JSON"),
        4 => value.encode_utf16().flat_map(|unit| format!("\\u{unit:04x}").into_bytes()).collect(),
        5 => BASE64_STANDARD.encode(around).into_bytes(),
        6 => BASE64_URL_SAFE_NO_PAD.encode(around).into_bytes(),
        _ => value.bytes().flat_map(|byte| format!("{byte:02x}").into_bytes()).collect(),
    };
    [before, &middle, after].concat()
}

/// The value unchanged and as the gate writes it, and the part of its base64 that does not depend
/// on its neighbours.
fn shapes(value: &str) -> Vec<Vec<u8>> {
    let own = [encoding::in_query(value), encoding::in_form(value), encoding::in_json(value)];
    let mut shapes = vec![value.as_bytes().to_vec()];
    shapes.extend(own.into_iter().map(String::into_bytes));
    for offset in 0..3 {
        let shifted = [&[0; 2][..offset], value.as_bytes()].concat();
        let (first, last) = ((offset * 8).div_ceil(6), shifted.len() * 8 / 6);
        for engine in [BASE64_STANDARD_NO_PAD, BASE64_URL_SAFE_NO_PAD] {
            shapes.push(engine.encode(&shifted).as_bytes()[first..last].to_vec());
        }
    }
    shapes
}

fn percent_decoded(text: &[u8]) -> Vec<u8> {
    let (mut decoded, mut rest) = (Vec::new(), text);
    while let Some((byte, after)) = rest.split_first() {
        let digits = after.first_chunk::<2>().filter(|_| *byte == b'%').and_then(|pair| std::str::from_utf8(pair).ok());
        let meant = digits
            .filter(|pair| pair.bytes().all(|c| c.is_ascii_hexdigit()))
            .and_then(|pair| u8::from_str_radix(pair, 16).ok());
        decoded.push(meant.unwrap_or(*byte));
        rest = if meant.is_some() { &after[2..] } else { after };
    }
    decoded
}
