//! The frame: `u32` length of the rest, `u8` kind, `u32` call, `u32` op, payload; integers
//! little-endian.

use std::io::{self, Read, Write};

use bytes::{Buf, BufMut, Bytes, BytesMut};
use tokio_util::codec::{Decoder, Encoder};

/// Bytes after the length and before the payload.
pub const HEADER_BYTES: usize = 9;
/// The largest payload that either side accepts: a full input with its script, or a full output.
pub const MAX_PAYLOAD_BYTES: usize = 16 * 1024 * 1024;

/// The kind of a frame. The sender is noted if only one side sends it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Kind {
    /// Parent: the first frame; the mode of this process (JSON `Begin`).
    Begin = 1,
    /// Worker: ready for a first call (JSON `Hello`).
    Hello = 2,
    /// Parent: run this (JSON `CallStart`).
    Call = 3,
    /// Parent: end the call now.
    Cancel = 4,
    /// Worker: the call is over (JSON `CallDone`).
    Done = 5,
    /// Worker: one console line (JSON `ConsoleLine`).
    Console = 6,
    /// Worker: further console lines are omitted.
    ConsoleFull = 7,
    /// Worker: a method of `context.api` (JSON `ApiCall`).
    Api = 8,
    /// Parent: the reply (JSON `ApiReply`).
    ApiReply = 9,
    /// Worker: an HTTP exchange (JSON `FetchStart`).
    Fetch = 10,
    /// Parent: the head of the response (JSON `FetchReply`).
    FetchReply = 11,
    /// Worker: the op is cancelled.
    Abort = 12,
    /// A chunk of a body: of the request from the worker, of the response from the parent.
    BodyChunk = 13,
    /// The end of a body (JSON `BodyEnd`).
    BodyEnd = 14,
    /// This many more bytes of the body can be sent (`u32`).
    Credit = 15,
    /// Worker: a chunk of the start-up snapshot.
    Snapshot = 16,
    /// Worker: the snapshot is complete, or not available (JSON: null or a reason).
    SnapshotEnd = 17,
    /// Worker: an isolate was created for this call, which begins now; its time counts from here.
    Started = 18,
    /// Worker: the first frame; the process that runs tool code, or whose only child does, as the
    /// parent sees it (`u32`).
    Process = 19,
    /// Worker: a progress report (JSON `ProgressUpdate`).
    Progress = 20,
    /// Worker: the isolate for the next call is ready. If each isolate has its own process, that
    /// process sends this, with its protections and the mark that must come before the parent's
    /// next frame (JSON `Ready`), and then nothing more before a call.
    Ready = 21,
    /// The engine's code cache of a script (its own format). Parent: before the call. Worker:
    /// before any of the script's code runs, empty if there is none.
    CodeCache = 22,
    /// Parent: the isolate of the last call is no longer needed, and no more frames come for it.
    /// Its process exits a moment later, or at once if this is sent again, and the next one is
    /// forked.
    Spent = 23,
}

impl Kind {
    const ALL: [Self; 23] = [
        Self::Begin,
        Self::Hello,
        Self::Call,
        Self::Cancel,
        Self::Done,
        Self::Console,
        Self::ConsoleFull,
        Self::Api,
        Self::ApiReply,
        Self::Fetch,
        Self::FetchReply,
        Self::Abort,
        Self::BodyChunk,
        Self::BodyEnd,
        Self::Credit,
        Self::Snapshot,
        Self::SnapshotEnd,
        Self::Started,
        Self::Process,
        Self::Progress,
        Self::Ready,
        Self::CodeCache,
        Self::Spent,
    ];

    fn from_byte(byte: u8) -> Option<Self> {
        Self::ALL.get(usize::from(byte).checked_sub(1)?).copied()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frame {
    pub kind: Kind,
    /// Which call it belongs to; 0 outside of calls.
    pub call: u32,
    /// Which op of the call; 0 for the call itself.
    pub op: u32,
    pub payload: Bytes,
}

impl Frame {
    pub fn new(kind: Kind, call: u32, op: u32, payload: impl Into<Bytes>) -> Self {
        Self { kind, call, op, payload: payload.into() }
    }

    pub fn credit(call: u32, op: u32, bytes: usize) -> Self {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        Self::new(Kind::Credit, call, op, bytes.to_le_bytes().to_vec())
    }

    pub fn process(pid: u32) -> Self {
        Self::new(Kind::Process, 0, 0, pid.to_le_bytes().to_vec())
    }

    /// The named process; `None` if the payload names none.
    pub fn named_process(&self) -> Option<u32> {
        let pid = u32::from_le_bytes(self.payload.as_ref().try_into().ok()?);
        (pid > 0 && i32::try_from(pid).is_ok()).then_some(pid)
    }

    /// The bytes that a credit grants; `None` if the payload is not a credit.
    pub fn credited(&self) -> Option<usize> {
        Some(u32::from_le_bytes(self.payload.as_ref().try_into().ok()?) as usize)
    }

    /// What comes before the payload.
    pub(crate) fn header(&self) -> Result<[u8; 4 + HEADER_BYTES], FrameError> {
        if self.payload.len() > MAX_PAYLOAD_BYTES {
            return Err(FrameError::TooLong(self.payload.len()));
        }
        let length = u32::try_from(HEADER_BYTES + self.payload.len()).unwrap_or(u32::MAX);
        let mut header = [0; 4 + HEADER_BYTES];
        header[..4].copy_from_slice(&length.to_le_bytes());
        header[4] = self.kind as u8;
        header[5..9].copy_from_slice(&self.call.to_le_bytes());
        header[9..].copy_from_slice(&self.op.to_le_bytes());
        Ok(header)
    }
}

#[derive(Debug, thiserror::Error)]
pub enum FrameError {
    #[error("a frame's payload of {0} bytes; the maximum is {MAX_PAYLOAD_BYTES}")]
    TooLong(usize),
    #[error("a frame of {0} bytes is shorter than its own header")]
    TooShort(usize),
    #[error("unknown frame kind {0}")]
    UnknownKind(u8),
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Checks the length that a frame announces and returns the payload's length.
fn payload_length(announced: [u8; 4]) -> Result<usize, FrameError> {
    let length = u32::from_le_bytes(announced) as usize;
    let payload = length.checked_sub(HEADER_BYTES).ok_or(FrameError::TooShort(length))?;
    if payload > MAX_PAYLOAD_BYTES {
        return Err(FrameError::TooLong(payload));
    }
    Ok(payload)
}

fn parse_header(header: [u8; HEADER_BYTES], payload: Bytes) -> Result<Frame, FrameError> {
    let [kind, c0, c1, c2, c3, o0, o1, o2, o3] = header;
    Ok(Frame {
        kind: Kind::from_byte(kind).ok_or(FrameError::UnknownKind(kind))?,
        call: u32::from_le_bytes([c0, c1, c2, c3]),
        op: u32::from_le_bytes([o0, o1, o2, o3]),
        payload,
    })
}

/// Reads one frame; `None` at the end of the stream between two frames.
pub fn read_frame(from: &mut impl Read) -> Result<Option<Frame>, FrameError> {
    let mut announced = [0; 4];
    let mut have = 0;
    while have < announced.len() {
        match from.read(&mut announced[have..]) {
            Ok(0) if have == 0 => return Ok(None),
            Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            Ok(more) => have += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error.into()),
        }
    }
    let length = payload_length(announced)?;
    let mut header = [0; HEADER_BYTES];
    from.read_exact(&mut header)?;
    let mut payload = vec![0; length];
    from.read_exact(&mut payload)?;
    parse_header(header, payload.into()).map(Some)
}

pub fn write_frame(to: &mut impl Write, frame: &Frame) -> Result<(), FrameError> {
    // A small frame is written at once, so that its reader wakes up once.
    let header = frame.header()?;
    if frame.payload.len() <= 16 * 1024 {
        let mut whole = Vec::with_capacity(header.len() + frame.payload.len());
        whole.extend_from_slice(&header);
        whole.extend_from_slice(&frame.payload);
        to.write_all(&whole)?;
    } else {
        to.write_all(&header)?;
        to.write_all(&frame.payload)?;
    }
    Ok(())
}

/// The same for asynchronous sockets.
#[derive(Debug, Default, Clone, Copy)]
pub struct FrameCodec;

impl Decoder for FrameCodec {
    type Item = Frame;
    type Error = FrameError;

    fn decode(&mut self, from: &mut BytesMut) -> Result<Option<Frame>, FrameError> {
        let Some(announced) = from.first_chunk::<4>() else { return Ok(None) };
        let length = payload_length(*announced)?;
        let whole = 4 + HEADER_BYTES + length;
        if from.len() < whole {
            from.reserve(whole - from.len());
            return Ok(None);
        }
        from.advance(4);
        let mut header = [0; HEADER_BYTES];
        from.copy_to_slice(&mut header);
        let payload = from.split_to(length).freeze();
        parse_header(header, payload).map(Some)
    }
}

impl Encoder<Frame> for FrameCodec {
    type Error = FrameError;

    fn encode(&mut self, frame: Frame, to: &mut BytesMut) -> Result<(), FrameError> {
        let header = frame.header()?;
        to.reserve(header.len() + frame.payload.len());
        to.put_slice(&header);
        to.put_slice(&frame.payload);
        Ok(())
    }
}
