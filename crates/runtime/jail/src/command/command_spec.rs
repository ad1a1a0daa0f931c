//! A command to run, and its limits.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::FilesystemView;

/// One program in a jail. Paths are inside the jail, unless stated otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandSpec {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// The whole environment of the program.
    pub environment: BTreeMap<String, String>,
    /// The working directory.
    pub folder: PathBuf,
    pub view: FilesystemView,
    /// It uses this machine's network. Otherwise it has a private network with only a loopback
    /// interface.
    pub network: bool,
    pub bounds: CommandLimits,
}

/// What the program reads as its standard input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Input {
    Nothing,
    /// What the caller writes.
    Pipe,
}

/// Limits for the program and all its descendants together, unless stated otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Wall time.
    pub time: Duration,
    /// Processor time.
    pub processor_time: Duration,
    /// CPU limit, in percent of one processor.
    pub cpu_percent: u64,
    /// Memory in bytes. With a control group this includes files in `/tmp` and `/dev/shm`.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u32,
    /// The largest file that can be written, in bytes.
    pub file: u64,
    /// The size of `/tmp` and of `/dev/shm`, in bytes each.
    pub temporary: u64,
    /// How much of standard output and of standard error is stored, in bytes each: the first half
    /// and the last half.
    pub output: usize,
    /// A program that writes more than this is killed, in bytes on both streams together.
    pub flood: u64,
}

impl Default for CommandLimits {
    fn default() -> Self {
        const MIB: u64 = 1024 * 1024;
        Self {
            time: Duration::from_secs(30),
            processor_time: Duration::from_secs(30),
            cpu_percent: 100,
            memory: 512 * MIB,
            processes: 128,
            file: 1024 * MIB,
            temporary: 64 * MIB,
            output: 1024 * 1024,
            flood: 64 * MIB,
        }
    }
}
