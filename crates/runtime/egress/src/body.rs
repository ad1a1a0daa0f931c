//! Bodies in both directions, streamed and counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures::{StreamExt, TryStreamExt, stream};
use rcrt_breadcrumb::{BodyStream, OpError};
use tokio::time::Instant;

use super::decoding::{Encoding, decoded};
use super::{EgressOptions, type_error};

/// A request's body: buffered if it is small, so that a redirect can send it again; otherwise
/// streamed.
pub(super) enum RequestBody {
    Whole(Bytes),
    Streamed(BodyStream),
}

impl RequestBody {
    /// Buffers up to `replayable` bytes. A longer body stays a stream.
    pub async fn read(
        mut stream: BodyStream,
        replayable: usize,
        held: &mut BufferedBytes<'_>,
    ) -> Result<Self, OpError> {
        let mut start = BytesMut::new();
        while let Some(piece) = stream.next().await {
            let piece = piece?;
            held.take(piece.len())?;
            start.extend_from_slice(&piece);
            if start.len() > replayable {
                let rest = stream::once(async move { Ok(start.freeze()) }).chain(stream);
                return Ok(Self::Streamed(rest.boxed()));
            }
        }
        Ok(Self::Whole(start.freeze()))
    }

    /// Buffers the whole body, or refuses one that is larger than the limit.
    pub async fn read_whole(mut stream: BodyStream, limit: u64, held: &mut BufferedBytes<'_>) -> Result<Self, OpError> {
        let mut whole = BytesMut::new();
        while let Some(piece) = stream.next().await {
            let piece = piece?;
            held.take(piece.len())?;
            whole.extend_from_slice(&piece);
            if whole.len() as u64 > limit {
                return Err(too_large("request body", limit));
            }
        }
        Ok(Self::Whole(whole.freeze()))
    }
}

/// The bytes that one fetch has buffered, counted against the limits of its call and of all calls.
/// Released on drop.
pub(super) struct BufferedBytes<'c> {
    by_call: &'c AtomicUsize,
    by_all: &'c AtomicUsize,
    options: &'c EgressOptions,
    by_this: usize,
}

impl<'c> BufferedBytes<'c> {
    pub fn new(by_call: &'c AtomicUsize, by_all: &'c AtomicUsize, options: &'c EgressOptions) -> Self {
        Self { by_call, by_all, options, by_this: 0 }
    }

    fn take(&mut self, bytes: usize) -> Result<(), OpError> {
        self.by_this += bytes;
        let by_call = self.by_call.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let by_all = self.by_all.fetch_add(bytes, Ordering::AcqRel) + bytes;
        let most = self.options.max_held_bytes;
        if by_call > most {
            let message = format!("the request bodies that are being sent at the same time are larger than {most}");
            return Err(OpError::new("ResourceExhausted", format!("{message} bytes; await some of them first")));
        }
        let most = self.options.max_held_by_all_bytes;
        if by_all > most && by_call > self.options.max_replay_bytes {
            let message = format!("the request bodies of all calls on this runner are larger than {most} bytes");
            return Err(OpError::new("ResourceExhausted", format!("{message}; try again later")));
        }
        Ok(())
    }
}

impl Drop for BufferedBytes<'_> {
    fn drop(&mut self) {
        self.by_call.fetch_sub(self.by_this, Ordering::AcqRel);
        self.by_all.fetch_sub(self.by_this, Ordering::AcqRel);
    }
}

/// Set when a request's body exceeded its limit: the client's error then was not caused by the
/// network.
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

/// A request's body as the client sends it. It fails past the limit.
pub(super) fn outgoing(body: BodyStream, limit: u64, exceeded: TooLarge, out: Arc<AtomicU64>) -> reqwest::Body {
    let body = tallied(body, out);
    let counted = counted(body, limit, "request body").inspect_err(move |error| {
        if error.name == "ResourceExhausted" {
            exceeded.0.store(true, Ordering::Release);
        }
    });
    reqwest::Body::wrap_stream(counted)
}

/// A response's body: counted as received, decoded, counted again. It fails if nothing arrives for
/// too long.
pub(super) async fn incoming(
    response: reqwest::Response,
    encoding: Encoding,
    options: &EgressOptions,
    ends: Instant,
    inward: Arc<AtomicU64>,
) -> Result<BodyStream, OpError> {
    let limit = options.max_response_bytes;
    let pieces = response.bytes_stream().map_err(|error| type_error(super::fetch::sentence(&error)));
    let encoded = counted(tallied(pieces.boxed(), inward), limit, "response body");
    let idle = options.idle_timeout;
    let Ok(decoded) = tokio::time::timeout(idle, decoded(encoded, encoding)).await else {
        return Err(silent(idle));
    };
    Ok(counted(timed(decoded?, idle, ends), limit, "response body"))
}

/// The same body; the tally counts its bytes.
fn tallied(body: BodyStream, tally: Arc<AtomicU64>) -> BodyStream {
    body.inspect_ok(move |piece| {
        tally.fetch_add(piece.len() as u64, Ordering::Relaxed);
    })
    .boxed()
}

fn silent(idle: Duration) -> OpError {
    type_error(format!("no data of the response body arrived for {} s", idle.as_secs()))
}

/// Fails when a chunk takes longer than `idle` or the whole fetch takes too long. Time without
/// a reader counts only for the whole fetch.
fn timed(body: BodyStream, idle: Duration, ends: Instant) -> BodyStream {
    stream::try_unfold(body, move |mut body| async move {
        match tokio::time::timeout_at(ends.min(Instant::now() + idle), body.try_next()).await {
            Ok(piece) => Ok(piece?.map(|piece| (piece, body))),
            Err(_) if Instant::now() >= ends => Err(type_error("the fetch took longer than its time limit")),
            Err(_) => Err(silent(idle)),
        }
    })
    .boxed()
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
