//! The zygote: it starts the engine, creates isolates, and is forked for each worker, which
//! enters its jail like a process that was started by exec. The zygote is outside of every jail,
//! reads only from the runner, and never sees a tool's code or other data of a tenant.
//!
//! A worker starts with the zygote's memory, so the memory layout and the seed of the engine's hash
//! tables are the same in all workers of one zygote. What must differ is created in the child that
//! runs a call: random numbers, and everything of the call.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use deno_crypto::rand::{RngCore, thread_rng};
use nix::libc;
use nix::unistd::{Pid, dup2, dup2_stderr};
use rcrt_jail::protections::process;
use rcrt_sandbox::protocol::{Begin, ForkRequest, Frame, SOCKET_FD, write_frame};

use crate::engine;
use crate::isolates::Isolates;
use crate::link::Link;
use crate::memory::Meter;
use crate::serve::{self, Serving};
use crate::stop::Stop;
use crate::{WorkerError, crypto_thread, generators, isolate_fork, read_begin};

/// How many bytes the thread's generator buffers at once.
const RANDOM_BYTES_AT_ONCE: usize = 256;
/// Its process name.
const NAME: &std::ffi::CStr = c"sandbox-zygote";

/// Serves fork requests until the socket closes. In its copies, serves calls.
pub fn serve(runner: UnixStream, startup: Option<&'static [u8]>, begin: &Begin) -> Result<(), WorkerError> {
    serve::end_when_it_panics();
    // Signals from a terminal must not reach workers.
    let _ = nix::unistd::setsid();
    // Optional: the socket also closes when the parent dies.
    let _ = process::die_with_parent();
    force_utc();
    engine::start(true);
    let (link, stop) = (Link::default(), Stop::default());
    let meter = Meter::default();
    let served = crypto_thread::runtime(&meter).map_err(WorkerError::Threads)?.block_on(async {
        let mut isolates = Isolates::in_zygote(startup, begin.memory_mb, &link, &stop).await?;
        let Some(mut socket) = fork_for_each_worker(runner.into())? else { return Ok(()) };
        let begin = read_begin(&mut socket)?;
        let (mut protections, memory) = crate::jail::enter(&mut socket, SOCKET_FD + 1)?;
        let turn = isolate_fork::fork_for_each_isolate(&socket, &mut protections)?;
        forget_random_numbers();
        let own = crate::jail::close_files(memory, &mut protections);
        isolates.rehearse().await?;
        let memory_mb = begin.memory_mb;
        let turn = Some(turn);
        Serving { socket, link, stop, meter, startup, memory_mb, protections, own, turn }.serve(isolates).await
    });
    serve::exit(&served, isolate_fork::PARENT_IS_GONE)
}

/// The zygote's generator was unused, but the worker has run since then. If it drew numbers, its
/// generator has some buffered that all its children would return. They are discarded: with the
/// next number the generator detects the fork and takes a new seed.
fn forget_random_numbers() {
    thread_rng().fill_bytes(&mut [0; RANDOM_BYTES_AT_ONCE]);
}

/// Outside of the jail the engine would read the machine's time zone, which tools must not see.
fn force_utc() {
    // SAFETY: this process has one thread.
    #[allow(unsafe_code)]
    unsafe {
        std::env::set_var("TZ", "UTC");
    }
}

/// Returns in each worker with its socket, and in the zygote itself with `None` when the runner
/// closed the socket. Works only in a process with one thread.
fn fork_for_each_worker(runner: OwnedFd) -> Result<Option<UnixStream>, WorkerError> {
    let own_name = nix::sys::prctl::get_name().map_err(|error| WorkerError::Child(error.into()))?;
    let _ = nix::sys::prctl::set_name(NAME);
    let_children_have_all_memory().map_err(WorkerError::Child)?;
    #[cfg(target_env = "gnu")]
    crate::heap_holes::fill();
    // Workers of several tenants are forked from here on: the random numbers of one must reveal
    // nothing about another's.
    if !generators::are_unused().map_err(WorkerError::Child)? {
        return Err(WorkerError::UsedGenerator);
    }
    let mut runner = UnixStream::from(runner);
    while let Some(ForkRequest { socket, stderr }) = ForkRequest::receive(&runner).map_err(WorkerError::Child)? {
        let Some(worker) = fork_beside().map_err(WorkerError::Child)? else {
            let become_worker = || {
                nix::sys::prctl::set_name(&own_name)?;
                dup2_stderr(&stderr)?;
                let mut target = OwnedFd::from(runner);
                dup2(&socket, &mut target)?;
                Ok(UnixStream::from(target))
            };
            return become_worker().map(Some).map_err(|error: nix::Error| WorkerError::Child(error.into()));
        };
        write_frame(&mut runner, &Frame::process(worker.as_raw().unsigned_abs()))?;
    }
    Ok(None)
}

/// Forks a process that is a child of this one's parent, so that the parent can wait for it and its
/// death kills it. `None` in the new process.
fn fork_beside() -> io::Result<Option<Pid>> {
    generators::copy(libc::CLONE_PARENT | libc::SIGCHLD)
}

/// The engine excludes its memory from forks, since most forked children run another program at
/// once. This includes it again.
fn let_children_have_all_memory() -> io::Result<()> {
    for line in std::fs::read_to_string("/proc/self/maps")?.lines() {
        let range = line.split_once(' ').and_then(|(range, _)| range.split_once('-'));
        let Some((Ok(start), Ok(end))) =
            range.map(|(start, end)| (usize::from_str_radix(start, 16), usize::from_str_radix(end, 16)))
        else {
            continue;
        };
        // SAFETY: does not change memory of this process. The kernel refuses it for its own
        // mappings.
        #[allow(unsafe_code)]
        let _ = unsafe { libc::madvise(start as *mut libc::c_void, end.saturating_sub(start), libc::MADV_DOFORK) };
    }
    Ok(())
}
