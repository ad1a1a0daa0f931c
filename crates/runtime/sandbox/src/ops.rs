//! The ops of one call on the parent's side: each is a future that calls the [`HostOps`] and
//! replies with frames.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::FutureExt;
use futures::future::{AbortHandle, Abortable, BoxFuture};
use futures::stream::{Fuse, FuturesUnordered, StreamExt};
use parking_lot::Mutex;
use tokio::sync::{Notify, mpsc};

use crate::protocol::{
    ApiReply, BODY_WINDOW_BYTES, BodyEnd, FetchHead, FetchReply, FetchStart, Frame, Kind, MAX_CHUNK_BYTES,
    MAX_INPUT_BYTES, MAX_OPS_IN_FLIGHT, decode, encode,
};
use crate::upload::{Upload, UploadCapacity};
use crate::{ApiCall, BodyStream, HostOps, OpError};

/// The end of an op and the start of the next can cross on the socket.
const MOST: usize = 2 * MAX_OPS_IN_FLIGHT;

/// Limit on the arguments of all current ops, in bytes. Each is parsed into several times its size.
const MAX_ASKED_BYTES: usize = 2 * MAX_INPUT_BYTES;

/// Chunks of a response's body that are shorter are joined before they are sent, in bytes.
const SMALL_PIECE: usize = 4 * 1024;

/// How the worker broke the protocol.
type Breach = String;

pub struct Ops {
    host: Arc<dyn HostOps>,
    call: u32,
    out: mpsc::Sender<Frame>,
    running: FuturesUnordered<BoxFuture<'static, u32>>,
    known: HashMap<u32, Op>,
    /// Bytes of the arguments of all current ops.
    asked: usize,
    uploads: UploadCapacity,
    /// Whether the call asked for any op.
    pub has_begun: bool,
}

struct Op {
    asked: usize,
    abort: AbortHandle,
    upload: Option<Upload>,
    credit: Arc<Credit>,
}

/// How many more bytes of a response's body the worker accepts.
#[derive(Default)]
struct Credit {
    bytes: Mutex<usize>,
    more: Notify,
}

impl Credit {
    fn full() -> Self {
        Self { bytes: Mutex::new(BODY_WINDOW_BYTES), more: Notify::new() }
    }

    fn add(&self, bytes: usize) {
        let mut left = self.bytes.lock();
        *left = left.saturating_add(bytes).min(BODY_WINDOW_BYTES);
        self.more.notify_one();
    }

    async fn take(&self, wanted: usize) -> usize {
        loop {
            {
                let mut left = self.bytes.lock();
                let taken = wanted.min(*left);
                if taken > 0 {
                    *left -= taken;
                    return taken;
                }
            }
            self.more.notified().await;
        }
    }
}

impl Ops {
    pub fn new(host: Arc<dyn HostOps>, call: u32, out: mpsc::Sender<Frame>, uploads: UploadCapacity) -> Self {
        Self {
            host,
            call,
            out,
            running: FuturesUnordered::new(),
            known: HashMap::new(),
            asked: 0,
            uploads,
            has_begun: false,
        }
    }

    /// Waits until an op ends; never returns if there is none.
    pub async fn progress(&mut self) {
        match self.running.next().await {
            Some(op) => {
                self.forget(op);
            }
            None => std::future::pending().await,
        }
    }

    /// Handles a frame of an op.
    pub fn take(&mut self, frame: &Frame) -> Result<(), Breach> {
        self.has_begun |= matches!(frame.kind, Kind::Api | Kind::Fetch);
        match frame.kind {
            Kind::Api => self.api(frame),
            Kind::Fetch => self.fetch(frame),
            Kind::BodyChunk => self.chunk(frame),
            Kind::BodyEnd => self.body_end(frame),
            Kind::Credit => {
                let bytes = frame.credited().ok_or("a credit that is not a number")?;
                if let Some(op) = self.known.get(&frame.op) {
                    op.credit.add(bytes);
                }
                Ok(())
            }
            Kind::Abort => {
                if let Some(op) = self.forget(frame.op) {
                    op.abort.abort();
                }
                Ok(())
            }
            other => Err(format!("a frame {other:?} from a worker")),
        }
    }

    fn forget(&mut self, op: u32) -> Option<Op> {
        let op = self.known.remove(&op)?;
        self.asked = self.asked.saturating_sub(op.asked);
        Some(op)
    }

    /// Whether the arguments of this op fit beside those of the others.
    fn fits(&self, frame: &Frame) -> Result<(), OpError> {
        if self.asked.saturating_add(frame.payload.len()) <= MAX_ASKED_BYTES {
            return Ok(());
        }
        let message = format!("operations with more than {MAX_ASKED_BYTES} bytes of arguments at the same time");
        Err(OpError::new("ResourceExhausted", message))
    }

    fn api(&mut self, frame: &Frame) -> Result<(), Breach> {
        if frame.payload.len() > MAX_INPUT_BYTES {
            return Err("an API call that is too large".into());
        }
        if let Err(refusal) = self.fits(frame) {
            return self.refuse(Kind::ApiReply, frame.op, ApiReply::Err(refusal));
        }
        let call: ApiCall = decode(&frame.payload).map_err(|_| "an API call that cannot be read")?;
        let (host, out, id, op) = (self.host.clone(), self.out.clone(), self.call, frame.op);
        let work = async move {
            let reply = match host.api(call).await {
                Ok(value) => ApiReply::Ok(value),
                Err(error) => ApiReply::Err(error),
            };
            send(&out, Kind::ApiReply, id, op, &reply).await;
        };
        self.start(op, frame.payload.len(), work, None, Arc::default())
    }

    fn refuse<T: serde::Serialize + Send + Sync + 'static>(
        &mut self,
        kind: Kind,
        op: u32,
        reply: T,
    ) -> Result<(), Breach> {
        let (out, id) = (self.out.clone(), self.call);
        self.start(op, 0, async move { send(&out, kind, id, op, &reply).await }, None, Arc::default())
    }

    fn fetch(&mut self, frame: &Frame) -> Result<(), Breach> {
        if let Err(refusal) = self.fits(frame) {
            return self.refuse(Kind::FetchReply, frame.op, FetchReply::Err(refusal));
        }
        let start: FetchStart = decode(&frame.payload).map_err(|_| "a request that cannot be read")?;
        let (host, out, id, op) = (self.host.clone(), self.out.clone(), self.call, frame.op);
        let (upload, body) = if start.has_body {
            let Some(permit) = self.uploads.take() else {
                let message =
                    "too many request bodies are being sent on this runner; await the others first, or try again";
                return self.refuse(Kind::FetchReply, op, FetchReply::Err(OpError::new("ResourceExhausted", message)));
            };
            let (upload, body) = Upload::open(out.clone(), id, op, permit);
            (Some(upload), Some(body))
        } else {
            (None, None)
        };
        let credit = Arc::new(Credit::full());
        let window = credit.clone();
        let work = async move {
            match host.fetch(start.request, body).await {
                Err(error) => send(&out, Kind::FetchReply, id, op, &FetchReply::Err(error)).await,
                Ok(response) => {
                    let head = FetchHead {
                        status: response.status,
                        status_text: response.status_text,
                        headers: response.headers,
                        url: response.url,
                        redirected: response.redirected,
                    };
                    send(&out, Kind::FetchReply, id, op, &FetchReply::Ok(head)).await;
                    let error = pass_on(response.body, &out, id, op, &window).await.err();
                    send(&out, Kind::BodyEnd, id, op, &BodyEnd { error }).await;
                }
            }
        };
        self.start(op, frame.payload.len(), work, upload, credit)
    }

    fn start(
        &mut self,
        op: u32,
        asked: usize,
        work: impl Future<Output = ()> + Send + 'static,
        upload: Option<Upload>,
        credit: Arc<Credit>,
    ) -> Result<(), Breach> {
        if self.known.len() >= MOST {
            return Err(format!("more than {MAX_OPS_IN_FLIGHT} operations at the same time"));
        }
        let (abort, registration) = AbortHandle::new_pair();
        if self.known.insert(op, Op { asked, abort, upload, credit }).is_some() {
            return Err(format!("operation {op} twice"));
        }
        self.asked += asked;
        let work = Abortable::new(work, registration);
        self.running.push(Box::pin(async move {
            let _ = work.await;
            op
        }));
        Ok(())
    }

    fn chunk(&mut self, frame: &Frame) -> Result<(), Breach> {
        // The op may have ended while its body was being sent.
        let Some(upload) = self.known.get(&frame.op).and_then(|op| op.upload.as_ref()) else { return Ok(()) };
        upload.add(&frame.payload)
    }

    fn body_end(&mut self, frame: &Frame) -> Result<(), Breach> {
        let end: BodyEnd = decode(&frame.payload).map_err(|_| "a body's end that cannot be read")?;
        if let Some(upload) = self.known.get_mut(&frame.op).and_then(|op| op.upload.take())
            && let Some(error) = end.error
        {
            upload.fail(error);
        }
        Ok(())
    }
}

async fn send<T: serde::Serialize>(out: &mpsc::Sender<Frame>, kind: Kind, call: u32, op: u32, message: &T) {
    let payload = match encode(message) {
        Ok(payload) => payload,
        Err(error) => {
            tracing::error!(%error, ?kind, "cannot encode a reply to a tool");
            return;
        }
    };
    // If frames are no longer received, the call is over.
    let _ = out.send(Frame::new(kind, call, op, payload)).await;
}

/// Sends a response's body to the worker, as fast as the worker accepts it.
async fn pass_on(
    body: BodyStream,
    out: &mpsc::Sender<Frame>,
    call: u32,
    op: u32,
    window: &Credit,
) -> Result<(), OpError> {
    let mut body = body.fuse();
    while let Some(piece) = body.next().await {
        let (mut piece, end) = joined(piece?, &mut body);
        while !piece.is_empty() {
            let length = window.take(piece.len().min(MAX_CHUNK_BYTES)).await;
            let chunk = Frame::new(Kind::BodyChunk, call, op, piece.split_to(length));
            if out.send(chunk).await.is_err() {
                return Ok(());
            }
        }
        if let Some(error) = end {
            return Err(error);
        }
    }
    Ok(())
}

/// Joins a chunk with those that are available after it, up to a frame's length, and returns the
/// error that follows them, if any. A server may send single bytes, and each frame costs the worker
/// time.
fn joined(first: Bytes, body: &mut Fuse<BodyStream>) -> (Bytes, Option<OpError>) {
    if first.len() >= SMALL_PIECE {
        return (first, None);
    }
    let mut joined = BytesMut::from(first.as_ref());
    while joined.len() < MAX_CHUNK_BYTES - SMALL_PIECE {
        match body.next().now_or_never() {
            Some(Some(Ok(piece))) => joined.extend_from_slice(&piece),
            Some(Some(Err(error))) => return (joined.freeze(), Some(error)),
            Some(None) | None => break,
        }
    }
    (joined.freeze(), None)
}
