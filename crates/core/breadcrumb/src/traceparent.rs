//! A caller's trace context, in the format of the W3C's `traceparent` header. It is not verified.
//! It decides only where spans are attached.

use std::fmt;
use std::num::{NonZeroU64, NonZeroU128};
use std::str::FromStr;

/// `00-<trace id, 32 hex digits>-<span id, 16 hex digits>-<flags, 2 hex digits>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Traceparent {
    pub trace_id: NonZeroU128,
    pub span_id: NonZeroU64,
    /// Whether the caller records its part of the trace.
    pub sampled: bool,
}

/// The text is not a valid traceparent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "not a valid traceparent; write 00-<32 hex digits>-<16 hex digits>-<2 hex digits>, lower case, ids not all zero"
)]
pub struct NoTraceparent;

impl FromStr for Traceparent {
    type Err = NoTraceparent;

    fn from_str(text: &str) -> Result<Self, NoTraceparent> {
        let mut parts = text.splitn(5, '-');
        let version = digits(parts.next(), 2)?;
        let trace_id = digits(parts.next(), 32)?;
        let span_id = digits(parts.next(), 16)?;
        let flags = digits(parts.next(), 2)?;
        // Later versions may add fields after a further dash. Version 0 has none, and 255 is
        // invalid.
        if version == 0xff || (version == 0 && parts.next().is_some()) {
            return Err(NoTraceparent);
        }
        Ok(Self {
            trace_id: NonZeroU128::new(trace_id).ok_or(NoTraceparent)?,
            span_id: u64::try_from(span_id).ok().and_then(NonZeroU64::new).ok_or(NoTraceparent)?,
            sampled: flags & 1 == 1,
        })
    }
}

fn digits(part: Option<&str>, count: usize) -> Result<u128, NoTraceparent> {
    let part = part.filter(|part| part.len() == count).ok_or(NoTraceparent)?;
    if !part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')) {
        return Err(NoTraceparent);
    }
    u128::from_str_radix(part, 16).map_err(|_| NoTraceparent)
}

impl fmt::Display for Traceparent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "00-{:032x}-{:016x}-{:02x}", self.trace_id, self.span_id, u8::from(self.sampled))
    }
}
