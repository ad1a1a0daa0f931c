//! The options of a sandbox.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::{Level, memory_pressure};

/// The program that becomes a worker process: it calls `isolate::worker_main`. It gets an empty
/// environment, `/` as its working directory, and one socket.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// Absolute path.
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

/// Which control groups limit the workers. Without any, rlimits and signals do it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CgroupUse {
    /// Those that this program can create, in its own group.
    #[default]
    WhereTheyAre,
    None,
}

#[derive(Debug, Clone)]
pub struct SandboxOptions {
    pub worker: WorkerCommand,
    /// Which protections are required.
    pub level: Level,
    /// Whether each call has a process of its own, whatever `isolation` its tool has.
    pub process_per_call: bool,
    /// Whether workers get their own control groups.
    pub cgroups: CgroupUse,
    /// The number of calls that run at the same time, each in its own worker process; at least 1.
    /// Further calls wait in a queue.
    pub max_workers: usize,
    /// Warm workers for a tenant that has none yet. They are in addition to `max_workers`.
    pub spares: usize,
    /// A worker that was idle for this long is stopped.
    pub idle: Duration,
    /// Whether memory is scarce. While it is, idle workers are stopped, longest idle first.
    pub is_memory_scarce: fn() -> bool,
    /// The time between the request to end a call and the kill of its process.
    pub grace: Duration,
    /// Limit on buffered request bodies of all calls together, in bytes. Each call can send one
    /// body in addition.
    pub upload_bytes: usize,
}

impl SandboxOptions {
    /// The defaults for this machine.
    pub fn new(worker: WorkerCommand) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            worker,
            level: Level::default(),
            process_per_call: false,
            cgroups: CgroupUse::default(),
            // Most tools are I/O-bound.
            max_workers: (processors * 4).clamp(8, 64),
            spares: 2,
            idle: Duration::from_mins(1),
            is_memory_scarce: memory_pressure::is_memory_scarce,
            grace: Duration::from_millis(250),
            upload_bytes: 64 * 1024 * 1024,
        }
    }
}
