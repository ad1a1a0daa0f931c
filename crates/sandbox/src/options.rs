//! The options of a sandbox.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use crate::Level;

/// The program that becomes a worker process: it calls `isolate::worker_main`. It gets an empty environment, `/` as
/// its folder and one socket.
#[derive(Debug, Clone)]
pub struct WorkerCommand {
    /// Absolute path.
    pub program: PathBuf,
    pub args: Vec<OsString>,
}

/// Which control groups bound the workers. Without any, rlimits and signals do it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CgroupUse {
    /// Those that this program may make, below the group where it is.
    #[default]
    WhereTheyAre,
    None,
}

#[derive(Debug, Clone)]
pub struct SandboxOptions {
    pub worker: WorkerCommand,
    /// Which protections there must be.
    pub level: Level,
    /// Whether workers get control groups of their own.
    pub cgroups: CgroupUse,
    /// Calls that run side by side, each in a worker process of its own; at least 1. Further calls wait in line.
    pub max_workers: usize,
    /// Workers that stand ready for a tenant who has none yet. They come on top of `max_workers`.
    pub spares: usize,
    /// A worker that had nothing to do for this long is ended.
    pub idle: Duration,
    /// From the request to end a call to the kill of its process.
    pub grace: Duration,
    /// Bytes of request bodies that wait here to be sent, of all calls together. Each call may have one body under way
    /// beside them.
    pub upload_bytes: usize,
}

impl SandboxOptions {
    /// The defaults for this machine.
    pub fn new(worker: WorkerCommand) -> Self {
        let processors = std::thread::available_parallelism().map_or(2, usize::from);
        Self {
            worker,
            level: Level::default(),
            cgroups: CgroupUse::default(),
            // Most tools wait for something else most of the time.
            max_workers: (processors * 4).clamp(8, 64),
            spares: 2,
            idle: Duration::from_mins(1),
            grace: Duration::from_millis(250),
            upload_bytes: 64 * 1024 * 1024,
        }
    }
}
