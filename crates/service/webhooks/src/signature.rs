//! Signatures, by which a receiver verifies that a delivery is authentic, complete and new.
//!
//! `webhook-signature` follows Standard Webhooks (<https://www.standardwebhooks.com>). It covers id
//! and time, so a receiver that refuses old times and known ids is safe from replays.
//! `X-RCRT-Signature` is that of the original RCRT. It covers only the body.

use aws_lc_rs::hmac;
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use rcrt_breadcrumb::hex;
use uuid::Uuid;

/// The prefix of secrets of Standard Webhooks.
const PREFIX: &str = "whsec_";
/// The bytes of such a secret's key.
const KEY_BYTES: std::ops::RangeInclusive<usize> = 24..=64;

/// The values of the two headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Signed {
    /// `webhook-signature`: `v1,<base64 of HMAC-SHA256 over id.timestamp.body>`.
    pub standard: String,
    /// `x-rcrt-signature`: `sha256=<hexadecimal HMAC-SHA256 over the body>`, under the secret's
    /// text.
    pub rcrt: String,
}

/// `timestamp`: the time of this attempt, in seconds since 1970.
pub fn sign(secret: &str, id: Uuid, timestamp: i64, body: &str) -> Signed {
    let standard = hmac::Key::new(hmac::HMAC_SHA256, &standard_key(secret));
    let rcrt = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let of_all = hmac::sign(&standard, format!("{id}.{timestamp}.{body}").as_bytes());
    let of_body = hmac::sign(&rcrt, body.as_bytes());
    Signed { standard: format!("v1,{}", STANDARD.encode(of_all)), rcrt: format!("sha256={}", hex(of_body.as_ref())) }
}

/// The decoded bytes after `whsec_`, otherwise the bytes of the text.
fn standard_key(secret: &str) -> Vec<u8> {
    let decoded = secret
        .strip_prefix(PREFIX)
        .and_then(|text| STANDARD.decode(text).or_else(|_| STANDARD_NO_PAD.decode(text)).ok())
        .filter(|key| KEY_BYTES.contains(&key.len()));
    decoded.unwrap_or_else(|| secret.as_bytes().to_vec())
}
