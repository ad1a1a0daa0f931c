//! Resource limits, and the ceiling on the process's memory: the heap limit does not count array buffers and WASM
//! memories, the kernel does. RLIMIT_AS would count the engine's reservations as well, so RLIMIT_DATA it is.

use std::fs::File;
use std::os::unix::fs::FileExt;

use nix::sys::resource::{Resource, getrlimit, setrlimit};

/// Files, sockets and event queues that the worker itself needs, with a little room.
const OPEN_FILES: u64 = 32;
/// Address space that may be written to beyond what the call is given, in bytes: the engine's own tables, stacks of
/// threads that start late, buffers of the protocol.
const ROOM: u64 = 96 * 1024 * 1024;

pub fn apply() -> Result<(), String> {
    let set = |resource, value| setrlimit(resource, value, value).map_err(|error| format!("{resource:?}: {error}"));
    set(Resource::RLIMIT_CORE, 0)?;
    set(Resource::RLIMIT_FSIZE, 0)?;
    set(Resource::RLIMIT_NOFILE, OPEN_FILES)?;
    set(Resource::RLIMIT_MEMLOCK, 0)?;
    set(Resource::RLIMIT_MSGQUEUE, 0)?;
    Ok(())
}

/// Sets the process's memory limit anew for each call.
pub struct MemoryCeiling {
    /// `/proc/self/statm`, opened before files became unreachable.
    statm: Result<File, String>,
}

impl MemoryCeiling {
    pub fn open() -> Self {
        Self { statm: File::open("/proc/self/statm").map_err(|error| format!("/proc/self/statm: {error}")) }
    }

    pub fn available(&self) -> Result<(), String> {
        self.statm.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// From now on the process may grow by this much, in MiB, and not more.
    pub fn set(&self, megabytes: u64) {
        let Some(now) = self.data_bytes() else { return };
        let limit = now + megabytes * 1024 * 1024 + ROOM;
        if let Ok((_, hard)) = getrlimit(Resource::RLIMIT_DATA) {
            // A limit that the kernel refuses leaves the heap limit and the parent's eye on the process.
            let _ = setrlimit(Resource::RLIMIT_DATA, limit.min(hard), hard);
        }
    }

    /// Writable private memory of the process, in bytes, as RLIMIT_DATA counts it.
    fn data_bytes(&self) -> Option<u64> {
        let mut text = [0; 128];
        let length = self.statm.as_ref().ok()?.read_at(&mut text, 0).ok()?;
        let text = std::str::from_utf8(text.get(..length)?).ok()?;
        let pages: u64 = text.split_ascii_whitespace().nth(5)?.parse().ok()?;
        Some(pages * 4096)
    }
}
