//! The worker: one process, one tenant, one call at a time. It puts up its walls, starts the engine, and runs tool
//! code that reaches the world only by ops, which are frames on the one inherited socket.
//!
//! It knows no tool, no store and no permission: the parent decides what an op may do. There is deliberately no op for
//! files, network, environment or processes.

mod call;
mod engine;
mod extensions;
mod jail;
mod link;
mod loader;
mod ops;
mod outcome;
mod serve;
mod snapshot;

use std::fs::File;
use std::io::Read;
use std::os::fd::{FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use sandbox::protocol::{Begin, FrameError, Kind, Mode, PROTOCOL_VERSION, SNAPSHOT_FD, decode, read_frame};

/// Why a worker process ends with a failure. Told to the parent on standard error.
#[derive(Debug, thiserror::Error)]
enum WorkerError {
    #[error("socket: {0}")]
    Socket(#[from] FrameError),
    #[error("the parent speaks protocol {0}, this worker {PROTOCOL_VERSION}")]
    Protocol(u32),
    #[error("the first frame must be Begin")]
    NoBegin,
    #[error("message: {0}")]
    Message(#[from] serde_json::Error),
    #[error("snapshot: {0}")]
    Snapshot(std::io::Error),
    #[error("engine: {0}")]
    Engine(String),
    #[error("threads: {0}")]
    Threads(std::io::Error),
}

/// The whole life of a worker. Call it before any thread and any asynchronous runtime exists, in a process that was
/// started by exec with its socket on `fd`.
pub fn worker_main(fd: i32) -> ExitCode {
    match run(fd) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            #[allow(clippy::print_stderr)]
            {
                eprintln!("{error}");
            }
            ExitCode::FAILURE
        }
    }
}

fn run(fd: i32) -> Result<(), WorkerError> {
    // SAFETY: the parent hands over this descriptor by exec, and nothing else in this process knows its number.
    #[allow(unsafe_code)]
    let mut socket = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let first = read_frame(&mut socket)?.ok_or(WorkerError::NoBegin)?;
    if first.kind != Kind::Begin {
        return Err(WorkerError::NoBegin);
    }
    let begin: Begin = decode(&first.payload)?;
    if begin.protocol != PROTOCOL_VERSION {
        return Err(WorkerError::Protocol(begin.protocol));
    }
    let first_foreign = if begin.has_snapshot { SNAPSHOT_FD + 1 } else { fd + 1 };
    let (protections, ceiling) = jail::enter(first_foreign);
    let startup = if begin.has_snapshot { Some(read_snapshot()?) } else { None };
    match begin.mode {
        Mode::Snapshot => snapshot::make_and_send(socket),
        Mode::Serve => serve::serve(socket, startup, &begin, protections, ceiling),
    }
}

/// Takes the snapshot from its descriptor and closes that, so that the socket is the only one left.
fn read_snapshot() -> Result<&'static [u8], WorkerError> {
    // SAFETY: the parent announced the descriptor in `Begin`; nothing else in this process knows its number.
    #[allow(unsafe_code)]
    let mut file = File::from(unsafe { OwnedFd::from_raw_fd(SNAPSHOT_FD) });
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(WorkerError::Snapshot)?;
    // The engine reads from it as long as the process lives.
    Ok(Box::leak(bytes.into_boxed_slice()))
}
