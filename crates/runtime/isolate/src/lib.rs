//! The worker process of the sandbox: one tenant, one call at a time. It enters its jail, starts
//! the engine, and runs tool code. The code reaches the outside only through ops, which are frames
//! on one inherited socket.
//!
//! It does not depend on tools, stores or permissions: the parent decides what an op does. There is
//! deliberately no op for files, network sockets, environment variables or processes.
//!
//! Begin with `serve.rs` (the loop of a worker), `call.rs` (one call) and `engine.rs`. `sandbox` is
//! the parent's side.

pub mod bare_engine;
mod call;
mod crypto_thread;
mod engine;
mod extensions;
#[cfg(target_os = "linux")]
pub mod generators;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod heap_holes;
mod inbox;
#[cfg_attr(not(target_os = "linux"), allow(dead_code))]
mod isolate_fork;
mod isolates;
mod jail;
mod link;
mod loader;
mod memory;
mod ops;
mod outcome;
mod serve;
mod snapshot;
mod stop;
mod tasks;
mod tool_module;
#[cfg(target_os = "linux")]
mod zygote;

use std::fs::File;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::process::ExitCode;

use rcrt_sandbox::protocol::{
    Begin, FrameError, Kind, Mode, PROTOCOL_VERSION, Protection, SNAPSHOT_FD, decode, read_frame,
};

/// Why a worker process exits with a failure. Reported to the parent on standard error.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    #[error("socket: {0}")]
    Socket(#[from] FrameError),
    #[error("the parent uses protocol version {0}, this worker version {PROTOCOL_VERSION}")]
    Protocol(u32),
    #[error("the first frame must be Begin")]
    NoBegin,
    #[error("message: {0}")]
    Message(#[from] serde_json::Error),
    #[error("snapshot: {0}")]
    Snapshot(std::io::Error),
    #[error("engine: {0}")]
    Engine(String),
    #[error("the parent process has exited")]
    Orphan,
    #[error("the process in the jail: {0}")]
    Keeper(std::io::Error),
    #[error("threads: {0}")]
    Threads(std::io::Error),
    #[error("a process for a worker or an isolate: {0}")]
    Child(std::io::Error),
    #[error("the zygote's random number generator was used: its copies would draw the same numbers")]
    UsedGenerator,
    #[error("this system does not support workers that are forked from a zygote")]
    NoZygote,
}

/// Runs a worker. Call it before any thread and any async runtime exists, in a process that was
/// started by exec with its socket on `fd`.
pub fn worker_main(fd: i32) -> ExitCode {
    match begin(fd) {
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

/// A process in the jail that has not started its work.
pub struct Jailed {
    pub socket: UnixStream,
    pub begin: Begin,
    pub protections: Vec<Protection>,
}

/// In the jail, except for the last restriction on files, so that the process and its children can
/// open their own `/proc` entries.
struct InJail {
    jailed: Jailed,
    startup: Option<&'static [u8]>,
    memory: jail::OwnProcFolder,
}

/// Reads the mode of this process from the parent and enters the jail. Like [`worker_main`], but
/// without the work.
pub fn enter(fd: i32) -> Result<Jailed, WorkerError> {
    let (socket, begin) = receive(fd)?;
    let InJail { mut jailed, memory, .. } = enter_jail(socket, begin)?;
    let _ = jail::close_files(memory, &mut jailed.protections);
    Ok(jailed)
}

fn begin(fd: i32) -> Result<(), WorkerError> {
    let (socket, begin) = receive(fd)?;
    match begin.mode {
        #[cfg(target_os = "linux")]
        Mode::Zygote => {
            let startup = startup(&begin)?;
            zygote::serve(socket, startup, &begin)
        }
        _ => enter_jail(socket, begin)?.work(),
    }
}

fn receive(fd: i32) -> Result<(UnixStream, Begin), WorkerError> {
    // SAFETY: the parent passes this descriptor by exec, and nothing else in this process uses it.
    #[allow(unsafe_code)]
    let mut socket = UnixStream::from(unsafe { OwnedFd::from_raw_fd(fd) });
    let begin = read_begin(&mut socket)?;
    Ok((socket, begin))
}

/// The parent's first frame.
fn read_begin(socket: &mut UnixStream) -> Result<Begin, WorkerError> {
    let first = read_frame(socket)?.ok_or(WorkerError::NoBegin)?;
    if first.kind != Kind::Begin {
        return Err(WorkerError::NoBegin);
    }
    let begin: Begin = decode(&first.payload)?;
    if begin.protocol != PROTOCOL_VERSION {
        return Err(WorkerError::Protocol(begin.protocol));
    }
    Ok(begin)
}

fn startup(begin: &Begin) -> Result<Option<&'static [u8]>, WorkerError> {
    if begin.has_snapshot { map_snapshot().map(Some) } else { Ok(None) }
}

fn enter_jail(mut socket: UnixStream, begin: Begin) -> Result<InJail, WorkerError> {
    let startup = startup(&begin)?;
    let first_foreign = socket.as_raw_fd() + 1;
    let (protections, memory) = jail::enter(&mut socket, first_foreign)?;
    Ok(InJail { jailed: Jailed { socket, begin, protections }, startup, memory })
}

/// Call it when all threads of the process have started, and before any tool code: no further
/// thread can start.
pub fn seal(protections: &mut [Protection]) {
    jail::seal(protections);
}

impl InJail {
    /// Starts the engine and runs in the mode that the parent requested.
    fn work(self) -> Result<(), WorkerError> {
        let Self { mut jailed, startup, memory } = self;
        match jailed.begin.mode {
            Mode::Snapshot => {
                let _ = jail::close_files(memory, &mut jailed.protections);
                snapshot::make_and_send(jailed.socket)
            }
            Mode::Serve => serve::serve(jailed, startup, memory),
            Mode::Zygote => Err(WorkerError::NoZygote),
        }
    }
}

/// The bytes of the snapshot, which every worker shares with its parent. Closes the descriptor, so
/// that only the socket is left.
fn map_snapshot() -> Result<&'static [u8], WorkerError> {
    use nix::libc;
    // SAFETY: the parent announced the descriptor in `Begin`; nothing else in this process uses it.
    #[allow(unsafe_code)]
    let file = File::from(unsafe { OwnedFd::from_raw_fd(SNAPSHOT_FD) });
    let length = usize::try_from(file.metadata().map_err(WorkerError::Snapshot)?.len()).unwrap_or(usize::MAX);
    // SAFETY: a new private mapping that is only read, of a file that the parent sealed against
    // every change; it is never unmapped, because the engine reads from it as long as the process
    // lives.
    #[allow(unsafe_code)]
    let bytes = unsafe {
        let start = libc::mmap(std::ptr::null_mut(), length, libc::PROT_READ, libc::MAP_PRIVATE, file.as_raw_fd(), 0);
        if start == libc::MAP_FAILED {
            return Err(WorkerError::Snapshot(std::io::Error::last_os_error()));
        }
        std::slice::from_raw_parts(start.cast::<u8>(), length)
    };
    Ok(bytes)
}
