//! Bodies in both directions, in chunks, with at most one window in flight.

use std::borrow::Cow;
use std::rc::Rc;
use std::sync::Arc;

use bytes::Bytes;
use deno_core::{AsyncRefCell, AsyncResult, BufView, CancelHandle, CancelTryFuture, RcRef, Resource};
use deno_error::JsErrorBox;
use rcrt_sandbox::OpError;
use rcrt_sandbox::protocol::{BodyEnd, Frame, Kind, MAX_CHUNK_BYTES, encode};
use tokio::sync::mpsc;

use crate::link::{BodyPiece, Credit, Link};

/// The body of a response, as the web platform's streams read it.
pub struct AnswerBody {
    pub link: Link,
    pub call: u32,
    pub op: u32,
    pub pieces: AsyncRefCell<Incoming>,
    pub cancel: CancelHandle,
}

pub struct Incoming {
    pub receiver: mpsc::Receiver<BodyPiece>,
    /// The unread rest of a chunk.
    pub rest: Bytes,
}

impl AnswerBody {
    async fn next(self: Rc<Self>, limit: usize) -> Result<BufView, JsErrorBox> {
        let mut incoming = RcRef::map(&self, |body| &body.pieces).borrow_mut().await;
        if incoming.rest.is_empty() {
            match incoming.receiver.recv().await {
                None => return Ok(BufView::empty()),
                Some(Err(error)) => return Err(JsErrorBox::new(error.name, error.message)),
                Some(Ok(piece)) => {
                    // Grants as much new credit as was read.
                    let _ = self.link.send_frame(&Frame::credit(self.call, self.op, piece.len()));
                    incoming.rest = piece;
                }
            }
        }
        let length = limit.min(incoming.rest.len());
        Ok(BufView::from(incoming.rest.split_to(length)))
    }
}

impl Resource for AnswerBody {
    fn name(&self) -> Cow<'_, str> {
        "fetchBody".into()
    }

    fn read(self: Rc<Self>, limit: usize) -> AsyncResult<BufView> {
        let cancel = RcRef::map(&self, |body| &body.cancel);
        Box::pin(self.next(limit).try_or_cancel(cancel))
    }

    fn close(self: Rc<Self>) {
        self.cancel.cancel();
    }

    fn cancel_read_ops(self: Rc<Self>) {
        self.cancel.cancel();
    }
}

impl Drop for AnswerBody {
    fn drop(&mut self) {
        // The body is not read any more: tell the parent to stop, and drop late chunks.
        self.link.close_op(self.op);
        let _ = self.link.send_frame(&Frame::new(Kind::Abort, self.call, self.op, Bytes::new()));
    }
}

/// Sends a request's body.
pub struct RequestBody {
    pub link: Link,
    pub call: u32,
    pub op: u32,
    pub credit: Arc<Credit>,
}

impl RequestBody {
    pub async fn send_bytes(self, mut bytes: Bytes) {
        while !bytes.is_empty() {
            if !self.send(&mut bytes).await {
                return;
            }
        }
        self.end(None);
    }

    pub async fn send_stream(self, source: Rc<dyn Resource>) {
        loop {
            match source.clone().read(MAX_CHUNK_BYTES).await {
                Ok(piece) if piece.is_empty() => {
                    self.end(None);
                    break;
                }
                Ok(piece) => {
                    let mut bytes = Bytes::copy_from_slice(&piece);
                    while !bytes.is_empty() {
                        if !self.send(&mut bytes).await {
                            return;
                        }
                    }
                }
                Err(error) => {
                    self.end(Some(OpError::new("TypeError", format!("the request's body failed: {error}"))));
                    break;
                }
            }
        }
        source.close();
    }

    /// Sends as much from the start as the parent accepts; false if the socket is closed.
    async fn send(&self, bytes: &mut Bytes) -> bool {
        let length = self.credit.take(bytes.len().min(MAX_CHUNK_BYTES)).await;
        let piece = bytes.split_to(length);
        self.link.send_frame(&Frame::new(Kind::BodyChunk, self.call, self.op, piece)).is_ok()
    }

    fn end(&self, error: Option<OpError>) {
        if let Ok(end) = encode(&BodyEnd { error }) {
            let _ = self.link.send_frame(&Frame::new(Kind::BodyEnd, self.call, self.op, end));
        }
    }
}
