//! Decodes a response body's content encoding, with limits on both sides: on what a small body
//! expands to, and on input that never expands.

use std::io;

use async_compression::tokio::bufread::GzipDecoder;
use futures::{StreamExt, TryStreamExt, stream};
use rcrt_breadcrumb::{BodyStream, OpError};
use reqwest::header::{self, HeaderMap};
use tokio_util::io::{ReaderStream, StreamReader};

use super::type_error;

/// The encodings that the gate accepts. No brotli: a server can make a decoder hold 16 MiB; gzip
/// holds 32 KiB.
pub(super) const ACCEPTED: &str = "gzip";

/// How a response's body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    /// An encoding that the gate did not ask for and cannot decode.
    Unknown,
}

impl Encoding {
    /// Stacked encodings count as unknown too: no honest server sends them, and each multiplies the
    /// size.
    pub fn of(headers: &HeaderMap) -> Self {
        let mut named = headers.get_all(header::CONTENT_ENCODING).iter();
        let (Some(value), None) = (named.next(), named.next()) else {
            return if headers.contains_key(header::CONTENT_ENCODING) { Self::Unknown } else { Self::Identity };
        };
        match value.as_bytes().trim_ascii().to_ascii_lowercase().as_slice() {
            b"gzip" | b"x-gzip" => Self::Gzip,
            b"identity" | b"" => Self::Identity,
            _ => Self::Unknown,
        }
    }

    pub fn is_decoded(self) -> bool {
        self == Self::Gzip
    }
}

/// The decoded body. An empty one needs no decoding, whatever its headers say.
pub(super) async fn decoded(mut body: BodyStream, encoding: Encoding) -> Result<BodyStream, OpError> {
    if !encoding.is_decoded() {
        return Ok(body);
    }
    let Some(first) = body.try_next().await? else {
        return Ok(stream::empty().boxed());
    };
    let whole = stream::once(async move { Ok(first) }).chain(body);
    let reader = StreamReader::new(whole.map_err(io::Error::other));
    let mut decoder = GzipDecoder::new(reader);
    decoder.multiple_members(true);
    Ok(ReaderStream::with_capacity(decoder, 16 * 1024).map_err(as_op_error).boxed())
}

/// Returns an error of the inner body unchanged; other errors are the decoder's.
fn as_op_error(error: io::Error) -> OpError {
    match error.downcast::<OpError>() {
        Ok(error) => error,
        Err(error) => type_error(format!("the response body cannot be decoded: {error}")),
    }
}
