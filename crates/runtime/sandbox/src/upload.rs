//! A request's body between the worker and the network. Chunks are joined as they arrive, so a body
//! takes as much memory as it has bytes, however small its chunks are.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use futures::StreamExt;
use parking_lot::Mutex;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};

use crate::protocol::{Frame, MAX_CHUNK_BYTES, UPLOAD_WINDOW_BYTES};
use crate::{BodyStream, OpError};

/// Memory for the request bodies of one call. Calls share it, but each call has its own for one
/// body, so that no call can keep the others from sending.
pub struct UploadCapacity {
    own: Arc<Semaphore>,
    shared: Arc<Semaphore>,
}

/// The memory of one body. Dropping it releases the memory.
pub type UploadPermit = OwnedSemaphorePermit;

impl UploadCapacity {
    /// The memory that calls share, in bytes.
    pub fn shared(bytes: usize) -> Arc<Semaphore> {
        Arc::new(Semaphore::new(bytes / UPLOAD_WINDOW_BYTES))
    }

    pub fn of_call(shared: &Arc<Semaphore>) -> Self {
        Self { own: Arc::new(Semaphore::new(1)), shared: shared.clone() }
    }

    /// Memory for another body; `None` if none is left.
    pub fn take(&self) -> Option<UploadPermit> {
        let take = |room: &Arc<Semaphore>| room.clone().try_acquire_owned().ok();
        take(&self.own).or_else(|| take(&self.shared))
    }
}

/// The worker's end. The body ends when this is dropped.
pub struct Upload(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    more: Notify,
    /// Held while either end can hold bytes.
    _permit: UploadPermit,
}

#[derive(Default)]
struct State {
    waiting: BytesMut,
    error: Option<OpError>,
    is_over: bool,
}

impl Upload {
    /// Creates the two ends. The worker gets credit for the bytes that were sent on.
    pub fn open(out: mpsc::Sender<Frame>, call: u32, op: u32, permit: UploadPermit) -> (Self, BodyStream) {
        let shared = Arc::new(Shared { state: Mutex::default(), more: Notify::new(), _permit: permit });
        let body = futures::stream::unfold((shared.clone(), out), move |(shared, out)| async move {
            let piece = next(&shared).await?;
            if let Ok(bytes) = &piece {
                // If frames are no longer received, the call is over.
                let _ = out.send(Frame::credit(call, op, bytes.len())).await;
            }
            Some((piece, (shared, out)))
        });
        (Self(shared), body.boxed())
    }

    /// Adds a chunk. The error is a breach of the protocol.
    pub fn add(&self, piece: &[u8]) -> Result<(), String> {
        let bytes = piece.len();
        if bytes == 0 || bytes > MAX_CHUNK_BYTES {
            return Err(format!("a body chunk of {bytes} bytes"));
        }
        // The reader dropped the body: discard the rest.
        if Arc::strong_count(&self.0) == 1 {
            return Ok(());
        }
        let mut state = self.0.state.lock();
        if state.waiting.len() + bytes > UPLOAD_WINDOW_BYTES {
            return Err("more of a body than was granted".into());
        }
        state.waiting.extend_from_slice(piece);
        drop(state);
        self.0.more.notify_one();
        Ok(())
    }

    /// Ends the body with an error after the bytes that have arrived.
    pub fn fail(self, error: OpError) {
        self.0.state.lock().error = Some(error);
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.state.lock().is_over = true;
        self.0.more.notify_one();
    }
}

/// All bytes that have arrived, in one chunk.
async fn next(shared: &Shared) -> Option<Result<Bytes, OpError>> {
    loop {
        {
            let mut state = shared.state.lock();
            if !state.waiting.is_empty() {
                return Some(Ok(state.waiting.split().freeze()));
            }
            if state.is_over {
                return state.error.take().map(Err);
            }
        }
        shared.more.notified().await;
    }
}
