//! The control groups of one worker process, one in each hierarchy. They are removed when this is
//! dropped.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::Leaving;
use super::files::Files;
use super::find::Controller;
use super::hierarchy::{Hierarchy, MEMORY_AT_FIRST};

pub struct Group {
    parts: Vec<HierarchyGroup>,
    leaving: Arc<Leaving>,
    /// The last values that were written, in bytes and in percent of a processor. A call with the
    /// same limits writes nothing.
    memory: AtomicU64,
    cpu_percent: AtomicU64,
}

struct HierarchyGroup {
    files: Files,
    has_memory: bool,
    has_cpu: bool,
    has_processes: bool,
}

impl Group {
    pub(super) fn make(hierarchies: &[Hierarchy], process: u32, leaving: Arc<Leaving>) -> io::Result<Self> {
        static MADE: AtomicU64 = AtomicU64::new(1);
        let name = format!("w{}", MADE.fetch_add(1, Ordering::Relaxed));
        // If a part fails, dropping this removes the parts before it.
        let mut group = Self {
            parts: Vec::new(),
            leaving,
            memory: AtomicU64::new(MEMORY_AT_FIRST),
            cpu_percent: AtomicU64::new(100),
        };
        for hierarchy in hierarchies {
            let part = HierarchyGroup {
                files: hierarchy.group(&name)?,
                has_memory: hierarchy.has(Controller::Memory),
                has_cpu: hierarchy.has(Controller::Cpu),
                has_processes: hierarchy.has(Controller::Processes),
            };
            group.parts.push(part);
        }
        for part in &group.parts {
            part.files.admit(process)?;
        }
        Ok(group)
    }

    fn with_memory(&self) -> Option<&Files> {
        self.parts.iter().find(|part| part.has_memory).map(|part| &part.files)
    }

    fn with_cpu(&self) -> Option<&Files> {
        self.parts.iter().find(|part| part.has_cpu).map(|part| &part.files)
    }

    /// Whether this group limits CPU time.
    pub fn keeps_cpu(&self) -> bool {
        self.with_cpu().is_some()
    }

    /// Whether this group limits the process's memory.
    pub fn bounds_memory(&self) -> bool {
        self.with_memory().is_some()
    }

    /// Memory that the process uses, in bytes. `None` if no group counts it.
    pub fn memory_used(&self) -> Option<u64> {
        self.with_memory()?.memory_used().ok()
    }

    /// Raises the memory limit to this many bytes, if it is lower.
    pub fn raise_memory(&self, bytes: u64) -> io::Result<()> {
        match self.with_memory() {
            Some(files) if bytes > self.memory.load(Ordering::Relaxed) => {
                files.set_memory(bytes)?;
                self.memory.store(bytes, Ordering::Relaxed);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Lowers the memory limit to this many bytes, unless the process uses more: the kernel would
    /// kill it for memory that the call before left behind.
    pub fn lower_memory(&self, bytes: u64) -> io::Result<()> {
        match self.with_memory() {
            Some(files) if bytes < self.memory.load(Ordering::Relaxed) && files.memory_used()? < bytes => {
                files.set_memory(bytes)?;
                self.memory.store(bytes, Ordering::Relaxed);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sets the CPU limit in percent of one processor.
    pub fn set_cpu_percent(&self, percent: u64) -> io::Result<()> {
        match self.with_cpu() {
            Some(files) if percent != self.cpu_percent.load(Ordering::Relaxed) => {
                files.set_cpu_percent(percent)?;
                self.cpu_percent.store(percent, Ordering::Relaxed);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sets the limit on processes and threads in the group.
    pub fn set_processes(&self, most: u32) -> io::Result<()> {
        match self.parts.iter().find(|part| part.has_processes) {
            Some(part) => part.files.set_processes(most),
            None => Ok(()),
        }
    }

    /// Whether the kernel killed the process because it reached this group's memory limit.
    pub fn was_killed_for_memory(&self) -> bool {
        self.with_memory().is_some_and(Files::was_killed_for_memory)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for part in &self.parts {
            self.leaving.add(part.files.folder.clone());
        }
    }
}
