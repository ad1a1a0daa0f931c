//! The JSON payloads.

use breadcrumb::{ErrorCode, LimitReached};
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use super::{Frame, Kind, Mark, PROTOCOL_VERSION};
use crate::{FetchRequest, OpError, Task};

/// What a worker process is started for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Run calls until the socket closes.
    Serve,
    /// Make the start-up snapshot, send it and end.
    Snapshot,
    /// Make one isolate, and a worker from it for each order, until the socket closes. The order is no frame, since a
    /// socket comes with it; the answer is the frame `Process`, with the process that was made.
    Zygote,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Begin {
    pub protocol: u32,
    pub mode: Mode,
    /// The snapshot stands on [`SNAPSHOT_FD`](super::SNAPSHOT_FD).
    pub has_snapshot: bool,
    /// Heap for which the first isolate is made, in MiB.
    pub memory_mb: u64,
}

impl Begin {
    /// The first frame to a process, from its starter.
    pub fn frame(mode: Mode, has_snapshot: bool, memory_mb: u64) -> serde_json::Result<Frame> {
        let begin = Self { protocol: PROTOCOL_VERSION, mode, has_snapshot, memory_mb };
        Ok(Frame::new(Kind::Begin, 0, 0, encode(&begin)?))
    }
}

#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Hello {
    pub protocol: u32,
    pub engine_version: String,
    /// Fresh isolates that this process is good for; then another takes its place.
    pub isolates: u32,
    /// Each fresh isolate has a process of its own, the one child of the process that was named.
    #[serde(default)]
    pub has_child: bool,
    /// Limits that this engine does not keep by itself: the process keeps them, and a call that reaches one may cost
    /// the process.
    #[serde(default)]
    pub left_to_process: Vec<String>,
    pub protections: Vec<Protection>,
}

/// What the process of a later isolate says when it is there, before it reads anything.
#[derive(Debug, Serialize, Deserialize)]
pub struct Ready {
    /// It reads nothing before this.
    pub mark: Mark,
    pub protections: Vec<Protection>,
}

/// One wall around the worker, and whether this kernel let it stand.
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

/// Everything a call needs. `Input` is borrowed JSON on the parent's side, raw JSON text on the worker's.
#[derive(Debug, Serialize, Deserialize)]
pub struct CallStart {
    pub task: Task,
    pub file_name: String,
    /// Left out when the worker kept the tool's isolate from the call before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub javascript: Option<String>,
    pub input: Box<RawValue>,
    /// `{request, secrets}`.
    pub context: Box<RawValue>,
    pub memory_mb: u64,
    /// Keep the isolate for the next call of the same script.
    pub keep: bool,
    /// Clocks finer than a millisecond.
    pub hrtime: bool,
    /// The worker said that an isolate is ready, and the call's time counts from the sending of this: nothing needs to
    /// be said when the call begins.
    #[serde(default)]
    pub is_counted: bool,
    /// Before the script's code runs, tell what the engine made of its text.
    #[serde(default)]
    pub wants_cache: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct CallDone {
    /// The isolate was kept and waits for a call of the same script.
    pub kept: bool,
    /// Work of the call goes on beside the isolate and cannot be ended: the process is good for no further call.
    #[serde(default)]
    pub spent: bool,
    /// The engine did not take the code cache that came with the call.
    #[serde(default)]
    pub is_cache_refused: bool,
    pub result: CallResult,
}

impl CallDone {
    /// The call is over and nothing of it is kept.
    pub fn fresh(result: CallResult) -> Self {
        Self { kept: false, spent: false, is_cache_refused: false, result }
    }
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CallResult {
    /// JSON text.
    Ok(Box<RawValue>),
    Failed(Failed),
    /// Ended on the parent's word.
    Terminated,
    OutOfMemory,
    /// The result has so many bytes of JSON, more than [`MAX_OUTPUT_BYTES`](super::MAX_OUTPUT_BYTES).
    TooMuchOutput(u64),
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Failed {
    pub code: ErrorCode,
    pub message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub details: Option<Value>,
    /// The bound on the call that was reached, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reached: Option<LimitReached>,
    /// What failed was the parent's side, for the moment: the same call may succeed later.
    #[serde(default)]
    pub is_retryable: bool,
}

/// What a tool tells of how far it is.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ProgressUpdate {
    /// From 0 to 1; `None` where the tool cannot say.
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

pub fn decode<T: DeserializeOwned>(payload: &[u8]) -> Result<T, serde_json::Error> {
    serde_json::from_slice(payload)
}
