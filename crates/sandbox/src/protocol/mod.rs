//! The protocol of parent and worker over the one socket: length-prefixed frames, each with the
//! call and the op that it belongs to. The crate `isolate` has the other side; other crates do not
//! need this module.

use std::time::Duration;

#[cfg(target_os = "linux")]
mod fork_request;
mod frame;
mod mark;
mod messages;

#[cfg(target_os = "linux")]
pub use fork_request::ForkRequest;
pub use frame::{Frame, FrameCodec, FrameError, HEADER_BYTES, Kind, MAX_PAYLOAD_BYTES, read_frame, write_frame};
pub use mark::Mark;
pub use messages::{
    ApiReply, Begin, BodyEnd, CallDone, CallResult, CallStart, Failed, FetchHead, FetchReply, FetchStart, Hello, Mode,
    ProgressUpdate, Protection, ProtectionState, Ready, decode, encode,
};

/// Both sides must be of one build; the number catches a worker program of another version.
pub const PROTOCOL_VERSION: u32 = 8;
/// The file descriptor on which a worker finds its socket.
pub const SOCKET_FD: i32 = 3;
/// The file descriptor on which a worker finds the start-up snapshot, when there is one.
pub const SNAPSHOT_FD: i32 = 4;
/// Ops that one call may have in flight.
pub const MAX_OPS_IN_FLIGHT: usize = 64;
/// Bytes of an answer's body that may be under way without the reader's consent.
pub const BODY_WINDOW_BYTES: usize = 256 * 1024;
/// The same of a request's body. They wait in the runner, which has many calls.
pub const UPLOAD_WINDOW_BYTES: usize = 64 * 1024;
/// Bytes of one piece of a body.
pub const MAX_CHUNK_BYTES: usize = 64 * 1024;
/// Bytes of JSON that a call takes in: its input and context together.
pub const MAX_INPUT_BYTES: usize = 8 * 1024 * 1024;
/// Bytes of JSON that a call may answer.
pub const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// Lines that a call may write to its console.
pub const MAX_CONSOLE_LINES: usize = 1000;
/// Bytes of all console lines of a call together.
pub const MAX_CONSOLE_BYTES: usize = 64 * 1024;
/// Bytes of a script that an engine's cache is worth keeping for: less is compiled as quickly as the cache is read.
pub const MIN_CACHED_SCRIPT_BYTES: usize = 8 * 1024;
/// Bytes of what an engine made of a script; more is dropped, since the parent keeps one for each script.
pub const MAX_CODE_CACHE_BYTES: usize = 1024 * 1024;
/// Bytes of one message of `context.progress`.
pub const MAX_PROGRESS_BYTES: usize = 2000;
/// The least time between two words of a call about its progress. What a tool says more often is left out, the newest
/// word last.
pub const PROGRESS_INTERVAL: Duration = Duration::from_millis(50);
