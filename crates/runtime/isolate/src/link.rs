//! The socket of the running call: ops are sent as frames, and replies are delivered to the waiting
//! op. `inbox.rs` reads the socket.

use std::collections::HashMap;
use std::io;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use rcrt_breadcrumb::{LimitName, LimitReached};
use rcrt_sandbox::OpError;
use rcrt_sandbox::protocol::{
    BODY_WINDOW_BYTES, BodyEnd, Frame, FrameError, Kind, MAX_OPS_IN_FLIGHT, UPLOAD_WINDOW_BYTES, decode, write_frame,
};
use tokio::sync::{Notify, mpsc, oneshot};

use crate::inbox::Turn;

/// One chunk of a response's body, or its error.
pub type BodyPiece = Result<Bytes, OpError>;

/// The number of chunks in a full window, even of one byte each, and the error at the end.
const PIECES: usize = BODY_WINDOW_BYTES + 1;

#[derive(Clone, Default)]
pub struct Link(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// `None` until this process is a worker.
    writer: Mutex<Option<UnixStream>>,
    ops: Mutex<Ops>,
    /// The running call; 0 between calls. Frames of another call are late and dropped.
    call: AtomicU32,
    /// Who reads the replies.
    turn: Turn,
}

#[derive(Default)]
struct Ops {
    last: u32,
    waiting: HashMap<u32, oneshot::Sender<Bytes>>,
    bodies: HashMap<u32, mpsc::Sender<BodyPiece>>,
    credits: HashMap<u32, Arc<Credit>>,
}

/// How many more bytes of a request's body can be sent.
#[derive(Default)]
pub struct Credit {
    bytes: Mutex<usize>,
    more: Notify,
}

impl Credit {
    fn add(&self, bytes: usize) {
        *held(&self.bytes) += bytes;
        self.more.notify_one();
    }

    /// Waits for credit and takes up to `wanted` bytes of it.
    pub async fn take(&self, wanted: usize) -> usize {
        loop {
            {
                let mut left = held(&self.bytes);
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

pub fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Link {
    /// Sends frames on this socket from now on.
    pub fn use_socket(&self, socket: &UnixStream) -> io::Result<()> {
        *held(&self.0.writer) = Some(socket.try_clone()?);
        Ok(())
    }

    pub fn turn(&self) -> &Turn {
        &self.0.turn
    }

    pub fn call(&self) -> u32 {
        self.0.call.load(Ordering::Acquire)
    }

    /// Assigns ops to this call from now on.
    pub fn begin(&self, call: u32) {
        *held(&self.0.ops) = Ops::default();
        self.0.call.store(call, Ordering::Release);
    }

    /// Drops everything that still waits; late replies are ignored.
    pub fn end(&self) {
        self.begin(0);
    }

    /// Sends a frame of the running call.
    pub fn send(&self, kind: Kind, op: u32, payload: impl Into<Bytes>) -> Result<(), FrameError> {
        self.send_frame(&Frame::new(kind, self.call(), op, payload))
    }

    pub fn send_frame(&self, frame: &Frame) -> Result<(), FrameError> {
        let mut writer = held(&self.0.writer);
        let writer = writer.as_mut().ok_or_else(|| io::Error::from(io::ErrorKind::NotConnected))?;
        write_frame(writer, frame)
    }

    /// Starts an op that waits for one reply. Refused if too many are waiting.
    pub fn start_op(&self) -> Result<(u32, oneshot::Receiver<Bytes>), OpError> {
        let mut ops = held(&self.0.ops);
        let reading = ops.bodies.keys().filter(|op| !ops.waiting.contains_key(op)).count();
        if ops.waiting.len() + reading >= MAX_OPS_IN_FLIGHT {
            return Err(OpError::exhausted(
                LimitReached { limit: LimitName::OpsInFlight, allowed: MAX_OPS_IN_FLIGHT as u64 },
                format!("more than {MAX_OPS_IN_FLIGHT} operations at the same time; await some of them first"),
            ));
        }
        ops.last += 1;
        let op = ops.last;
        let (reply, wait) = oneshot::channel();
        ops.waiting.insert(op, reply);
        drop(ops);
        self.0.turn.expect_reply();
        Ok((op, wait))
    }

    /// Opens the response's body of this op: returns its chunks from now on.
    pub fn open_body(&self, op: u32) -> mpsc::Receiver<BodyPiece> {
        let (pieces, receiver) = mpsc::channel(PIECES);
        held(&self.0.ops).bodies.insert(op, pieces);
        receiver
    }

    /// Opens the credit for the request's body of this op.
    pub fn open_credit(&self, op: u32) -> Arc<Credit> {
        let credit = Arc::new(Credit::default());
        credit.add(UPLOAD_WINDOW_BYTES);
        held(&self.0.ops).credits.insert(op, credit.clone());
        credit
    }

    /// Forgets the op and everything of it that still waits.
    pub fn close_op(&self, op: u32) {
        let mut ops = held(&self.0.ops);
        ops.waiting.remove(&op);
        ops.bodies.remove(&op);
        ops.credits.remove(&op);
    }

    /// Delivers a frame of the parent to the waiting op. An error is a breach of the protocol.
    pub fn deliver(&self, frame: Frame) -> Result<(), FrameError> {
        if frame.call != self.call() {
            return Ok(());
        }
        let mut ops = held(&self.0.ops);
        match frame.kind {
            Kind::ApiReply | Kind::FetchReply => {
                if let Some(reply) = ops.waiting.remove(&frame.op) {
                    let _ = reply.send(frame.payload);
                }
            }
            Kind::BodyChunk => {
                if let Some(pieces) = ops.bodies.get(&frame.op) {
                    let _ = pieces.try_send(Ok(frame.payload));
                }
            }
            Kind::BodyEnd => {
                if let Some(pieces) = ops.bodies.remove(&frame.op)
                    && let Ok(BodyEnd { error: Some(error) }) = decode(&frame.payload)
                {
                    let _ = pieces.try_send(Err(error));
                }
            }
            Kind::Credit => {
                if let Some(credit) = ops.credits.get(&frame.op)
                    && let Some(bytes) = frame.credited()
                {
                    credit.add(bytes);
                }
            }
            other => return Err(FrameError::UnknownKind(other as u8)),
        }
        Ok(())
    }
}
