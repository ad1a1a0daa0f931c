//! Decodes a response body's content encoding, with limits on both sides: on what a small body
//! expands to, and on input that never expands.

use std::io;

use async_compression::tokio::bufread::GzipDecoder;
use futures::{StreamExt, TryStreamExt, stream};
use reqwest::header::{self, HeaderMap};
use sandbox::{BodyStream, OpError};
use tokio_util::io::{ReaderStream, StreamReader};

use super::type_error;

/// What the gate asks servers for. No brotli: a server may make each decoder keep 16 MiB, where gzip keeps 32 KiB.
pub(super) const ACCEPTED: &str = "gzip";

/// How an answer's body is encoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Encoding {
    Identity,
    Gzip,
    /// Something that the gate did not ask for and cannot look into.
    Unknown,
}

impl Encoding {
    /// More than one encoding on top of another is unknown too: no honest server does it, and each multiplies.
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

/// The decoded body. An empty one has no encoding, whatever its headers said.
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

/// An error of the body below comes back as it was; another is the decoder's.
fn as_op_error(error: io::Error) -> OpError {
    match error.downcast::<OpError>() {
        Ok(error) => error,
        Err(error) => type_error(format!("the response body cannot be decoded: {error}")),
    }
}
