//! Bodies in both directions, streamed and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use sandbox::{BodyStream, OpError};

use super::type_error;

/// A request's body: small ones whole, so that a redirect can send them again; large ones as they come.
pub(super) enum RequestBody {
    Whole(Bytes),
    Streamed(BodyStream),
}

impl RequestBody {
    /// Reads up to `replayable` bytes ahead; what is longer stays a stream.
    pub async fn read(mut stream: BodyStream, replayable: usize) -> Result<Self, OpError> {
        let mut start = BytesMut::new();
        while let Some(piece) = stream.next().await {
            start.extend_from_slice(&piece?);
            if start.len() > replayable {
                let rest = stream::once(async move { Ok(start.freeze()) }).chain(stream);
                return Ok(Self::Streamed(rest.boxed()));
            }
        }
        Ok(Self::Whole(start.freeze()))
    }
}

/// Set when a request's body went past its limit: the client's error then has another reason than the network.
#[derive(Clone, Default)]
pub(super) struct TooLarge(Arc<AtomicBool>);

impl TooLarge {
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

pub(super) fn too_large(what: &str, limit: u64) -> OpError {
    OpError::new("ResourceExhausted", format!("the {what} is larger than {limit} bytes"))
}

/// A request's body as the client sends it, ended with an error past the limit.
pub(super) fn outgoing(body: BodyStream, limit: u64, exceeded: TooLarge) -> reqwest::Body {
    let counted = counted(body, limit, "request body").inspect_err(move |error| {
        if error.name == "ResourceExhausted" {
            exceeded.0.store(true, Ordering::Release);
        }
    });
    reqwest::Body::wrap_stream(counted)
}

/// An answer's body: decoded by the client, counted after decoding.
pub(super) fn incoming(response: reqwest::Response, limit: u64) -> BodyStream {
    let pieces = response.bytes_stream().map_err(|error| type_error(super::exchange::sentence(&error)));
    counted(pieces.boxed(), limit, "response body")
}

fn counted(body: BodyStream, limit: u64, what: &'static str) -> BodyStream {
    stream::try_unfold((body, 0_u64), move |(mut body, seen)| async move {
        let Some(piece) = body.try_next().await? else {
            return Ok(None);
        };
        let seen = seen.saturating_add(piece.len() as u64);
        if seen > limit {
            return Err(too_large(what, limit));
        }
        Ok(Some((piece, (body, seen))))
    })
    .boxed()
}
