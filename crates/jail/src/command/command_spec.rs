//! What is to be run, and how much of everything it may use.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use super::FilesystemView;

/// One program in a jail. Paths are those within, unless they say otherwise.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct CommandSpec {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// The whole environment of the program.
    pub environment: BTreeMap<String, String>,
    /// Where it starts.
    pub folder: PathBuf,
    pub view: FilesystemView,
    /// It is in this machine's network. Otherwise it has a network of its own, with nothing in it but itself.
    pub network: bool,
    pub bounds: CommandLimits,
}

/// What the program and all that it starts may use together, where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandLimits {
    /// Wall time.
    pub time: Duration,
    /// Processor time.
    pub processor_time: Duration,
    /// The share of one processor, in percent.
    pub cpu_percent: u64,
    /// Memory in bytes, files in `/tmp` and `/dev/shm` included where there is a control group.
    pub memory: u64,
    /// Processes and threads.
    pub processes: u32,
    /// The largest file that can be written, in bytes.
    pub file: u64,
    /// Of `/tmp` and `/dev/shm`, in bytes each.
    pub temporary: u64,
    /// How much of standard output and of standard error is kept, in bytes each: the first half and the last.
    pub output: usize,
    /// A program that writes more than this, in bytes on both together, is ended.
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
