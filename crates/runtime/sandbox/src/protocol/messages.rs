//! The JSON payloads.

use bytes::Bytes;
use rcrt_breadcrumb::{ErrorCode, Isolation, LimitReached};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Frame, Kind, PROTOCOL_VERSION, StartMarker};
use crate::{FetchRequest, OpError, Seed, Task};

/// Bytes of a message around its large texts, about.
const ROOM_AROUND: usize = 512;

/// The purpose of a worker process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Run calls until the socket closes.
    Serve,
    /// Make the start-up snapshot, send it and exit.
    Snapshot,
    /// Create one isolate, and fork a worker for each request until the socket closes. The request
    /// is not a frame, since descriptors come with it. The reply is the frame `Process` with the
    /// new process.
    Zygote,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Begin {
    pub protocol: u32,
    pub mode: Mode,
    /// The snapshot is on [`SNAPSHOT_FD`](super::SNAPSHOT_FD).
    pub has_snapshot: bool,
    /// Heap limit of the first isolate, in MiB.
    pub memory_mb: u64,
}

impl Begin {
    /// The first frame to a process, from the one that started it.
    pub fn frame(mode: Mode, has_snapshot: bool, memory_mb: u64) -> serde_json::Result<Frame> {
        let begin = Self { protocol: PROTOCOL_VERSION, mode, has_snapshot, memory_mb };
        Ok(Frame::new(Kind::Begin, 0, 0, encode(&begin)?))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub engine_version: String,
    /// How many fresh isolates this process can create before it is replaced.
    pub isolates: u32,
    /// Each fresh isolate has its own process, the only child of the process that was named.
    #[serde(default)]
    pub has_child: bool,
    /// Limits that this engine does not enforce itself: the process does, and a call that reaches
    /// one may cost the process.
    #[serde(default)]
    pub left_to_process: Vec<String>,
    pub protections: Vec<Protection>,
}

/// What the process of a later isolate sends when it is ready, before it reads anything.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// It discards everything before this.
    pub mark: StartMarker,
    pub protections: Vec<Protection>,
}

/// A protection of the worker, and whether it is in force.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Protection {
    pub name: String,
    pub state: ProtectionState,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ProtectionState {
    Applied,
    /// Why not.
    Unavailable(String),
}

/// Everything a call needs. The input is borrowed JSON on the parent's side, raw JSON text on the
/// worker's.
#[derive(Debug, Serialize, Deserialize)]
pub struct CallStart {
    pub task: Task,
    pub file_name: String,
    /// Omitted if the worker kept the script's isolate from the call before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub javascript: Option<String>,
    pub input: Box<RawValue>,
    /// `{request, secrets}`.
    pub context: Box<RawValue>,
    pub memory_mb: u64,
    /// What the next call of the same script can find of this one. Unless each call has its own
    /// process, the worker keeps its isolate for that call.
    pub isolation: Isolation,
    /// Clocks finer than a millisecond.
    pub hrtime: bool,
    /// The worker reported that an isolate is ready, and the call's time counts from the sending of
    /// this. The worker does not send `Started`.
    #[serde(default)]
    pub is_counted: bool,
    /// Send the engine's code cache before the script's code runs.
    #[serde(default)]
    pub wants_cache: bool,
    /// Replaces the clock and the random generators, before the script's code runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<Seed>,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct CallDone {
    /// The isolate was kept and waits for a call of the same script.
    pub kept: bool,
    /// Background work of the call continues and cannot be stopped: the process cannot run another
    /// call.
    #[serde(default)]
    pub spent: bool,
    /// The engine did not take the code cache that came with the call.
    #[serde(default)]
    pub is_cache_refused: bool,
    /// The call failed, or may have failed, because it changes what calls of one process share. Or
    /// code that nothing waited for did.
    #[serde(default)]
    pub is_refused_change: bool,
    /// Console lines beyond the limits, which were not sent.
    #[serde(default)]
    pub omitted_lines: u64,
    pub result: CallResult,
}

impl CallDone {
    /// The call is over and its isolate is not kept.
    pub fn fresh(result: CallResult) -> Self {
        Self { kept: false, spent: false, is_cache_refused: false, is_refused_change: false, omitted_lines: 0, result }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallResult {
    /// JSON text.
    Ok(Box<RawValue>),
    Failed(Failed),
    /// Ended on the parent's request.
    Terminated,
    OutOfMemory,
    /// The size of the result in bytes of JSON, more than
    /// [`MAX_OUTPUT_BYTES`](super::MAX_OUTPUT_BYTES).
    TooMuchOutput(u64),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    pub code: ErrorCode,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The limit of the call that was reached, if that is the reason.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<LimitReached>,
    /// The parent's side failed temporarily: the same call may succeed later.
    #[serde(default)]
    pub is_retryable: bool,
}

/// A tool's progress report.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressUpdate {
    /// From 0 to 1; `None` if unknown.
    pub fraction: Option<f64>,
    /// At most [`MAX_PROGRESS_BYTES`](super::MAX_PROGRESS_BYTES).
    pub message: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct FetchStart {
    pub request: FetchRequest,
    /// The request's body follows in chunks.
    pub has_body: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct FetchHead {
    pub status: u16,
    pub status_text: String,
    pub headers: Vec<(String, String)>,
    pub url: String,
    pub redirected: bool,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum FetchReply {
    Ok(FetchHead),
    Err(OpError),
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ApiReply {
    Ok(Value),
    Err(OpError),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct BodyEnd {
    pub error: Option<OpError>,
}

pub fn encode<T: Serialize>(message: &T) -> Result<Bytes, serde_json::Error> {
    serde_json::to_vec(message).map(Bytes::from)
}

/// [`encode`] for a message that contains texts of this many bytes, which are then copied once.
pub fn encode_large<T: Serialize>(message: &T, bytes: usize) -> Result<Bytes, serde_json::Error> {
    let mut text = Vec::with_capacity(bytes + ROOM_AROUND);
    serde_json::to_writer(&mut text, message)?;
    Ok(text.into())
}

pub fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(payload)
}
