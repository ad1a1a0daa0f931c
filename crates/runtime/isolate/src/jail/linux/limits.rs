//! Resource limits of the process and its threads. The parent sets the memory ceiling, from
//! outside.

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};

/// Descriptors that the worker itself needs, and some more.
const OPEN_FILES: u64 = 32;
/// Pending signals; the kernel stores a record of each.
const SIGNALS: u64 = 64;
/// Threads of the engine and of the worker, some more, and the keeper.
const THREADS: u64 = 64;

/// The first thread's stack, in bytes. The memory ceiling does not count it.
const STACK: u64 = 8 * 1024 * 1024;

/// The limit on processes counts the threads of the user on the whole machine, so it is set only if
/// the worker has its own user namespace.
pub fn apply(is_alone: bool) -> Result<(), String> {
    let set = |resource, value| setrlimit(resource, value, value).map_err(|error| format!("{resource:?}: {error}"));
    set(Resource::RLIMIT_CORE, 0)?;
    set(Resource::RLIMIT_FSIZE, 0)?;
    writing_fails().map_err(|error| format!("SIGXFSZ: {error}"))?;
    set(Resource::RLIMIT_NOFILE, OPEN_FILES)?;
    set(Resource::RLIMIT_MEMLOCK, 0)?;
    set(Resource::RLIMIT_MSGQUEUE, 0)?;
    set(Resource::RLIMIT_SIGPENDING, SIGNALS)?;
    let (_, most) = getrlimit(Resource::RLIMIT_STACK).map_err(|error| format!("RLIMIT_STACK: {error}"))?;
    set(Resource::RLIMIT_STACK, STACK.min(most))?;
    if is_alone {
        set(Resource::RLIMIT_NPROC, THREADS)?;
    }
    Ok(())
}

/// Makes writing to a file an error instead of a fatal signal, if a file can be opened at all.
fn writing_fails() -> nix::Result<()> {
    let ignored = SigAction::new(SigHandler::SigIgn, SaFlags::empty(), SigSet::empty());
    // SAFETY: an ignored signal runs no code of this process.
    #[allow(unsafe_code)]
    unsafe { sigaction(Signal::SIGXFSZ, &ignored) }.map(drop)
}
