//! The protocol of parent and worker over the one socket: length-prefixed frames, each with the
//! call and the op that it belongs to. The crate `isolate` has the other side; other crates do not
//! need this module.

use std::time::Duration;

#[cfg(target_os = "linux")]
mod fork_request;
mod frame;
mod messages;
mod start_marker;

#[cfg(target_os = "linux")]
pub use fork_request::ForkRequest;
pub use frame::{Frame, FrameCodec, FrameError, HEADER_BYTES, Kind, MAX_PAYLOAD_BYTES, read_frame, write_frame};
pub use messages::{
    ApiReply, Begin, BodyEnd, CallDone, CallResult, CallStart, Failed, FetchHead, FetchReply, FetchStart, Hello, Mode,
    ProgressUpdate, Protection, ProtectionState, Ready, decode, encode, encode_large,
};
pub use start_marker::StartMarker;

/// Both sides must come from the same build; the number detects a worker program of another
/// version.
pub const PROTOCOL_VERSION: u32 = 9;
/// The file descriptor of a worker's socket.
pub const SOCKET_FD: i32 = 3;
/// The file descriptor of a worker's start-up snapshot, if there is one.
pub const SNAPSHOT_FD: i32 = 4;
/// Limit on the ops of one call that are in flight.
pub const MAX_OPS_IN_FLIGHT: usize = 64;
/// Bytes of a response's body that can be in flight without new credit.
pub const BODY_WINDOW_BYTES: usize = 256 * 1024;
/// The same for a request's body. These bytes are buffered in the runner, which has many calls.
pub const UPLOAD_WINDOW_BYTES: usize = 64 * 1024;
/// Limit on one chunk of a body, in bytes.
pub const MAX_CHUNK_BYTES: usize = 64 * 1024;
/// Limit on a call's input and context together, in bytes of JSON.
pub const MAX_INPUT_BYTES: usize = 8 * 1024 * 1024;
/// Limit on a call's result, in bytes of JSON.
pub const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// Limit on a call's console lines.
pub const MAX_CONSOLE_LINES: usize = 1000;
/// Limit on all console lines of a call together, in bytes.
pub const MAX_CONSOLE_BYTES: usize = 64 * 1024;
/// The smallest script that is worth a code cache, in bytes: a smaller one compiles as fast as a
/// cache is read.
pub const MIN_CACHED_SCRIPT_BYTES: usize = 8 * 1024;
/// Limit on a code cache, in bytes. A larger one is dropped, since the parent stores one for each
/// script.
pub const MAX_CODE_CACHE_BYTES: usize = 1024 * 1024;
/// Limit on one message of `context.progress`, in bytes.
pub const MAX_PROGRESS_BYTES: usize = 2000;
/// The shortest time between two progress reports of a call. If a tool reports more often, only the
/// newest report is sent.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);
