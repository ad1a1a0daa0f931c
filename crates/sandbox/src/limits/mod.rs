//! Enforces a call's limits on a worker process from outside, whatever runs in it: a memory
//! ceiling, a control group where there is one, and its processor clock.

mod meter;
#[cfg_attr(not(target_os = "linux"), path = "process_unsupported.rs")]
mod process;
mod share;

use std::io;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use breadcrumb::Limits;
use nix::libc;

pub use jail::cgroup::{Cgroups, Findings, Group};
pub use meter::{Meter, MeterCheck};

use crate::level::names;
use crate::protocol::{Protection, ProtectionState};
use jail::cgroup::Controller;
use process::Process;

const MIB: u64 = 1024 * 1024;
/// What a process may grow beyond the memory of its call, in bytes: the engine's own tables, stacks of threads that
/// start late, buffers of the protocol, and what it gathers over many calls.
const ROOM: u64 = 128 * MIB;

/// What the kernel says where processes cannot be held at all.
const CANNOT_HOLD: [i32; 4] = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::ENOENT];
/// Until it was seen otherwise.
static HOLDS: AtomicBool = AtomicBool::new(true);

/// The bounds around one worker process.
pub struct ProcessLimits {
    process: Result<Process, String>,
    group: Group,
    /// What the group used before the first call, in bytes.
    at_rest: u64,
    /// The process that was named: itself the one above, or its parent.
    named: Option<u32>,
}

/// Which bounds of one process stand; the same for every process of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnforcedLimits {
    ceiling: Result<(), String>,
    clock: Result<(), String>,
}

impl std::fmt::Display for EnforcedLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let told = |found: &Result<(), String>| found.clone().err().unwrap_or_else(|| "stands".into());
        write!(
            f,
            "{}: {}; {}: {}",
            names::MEMORY_CEILING,
            told(&self.ceiling),
            names::PROCESSOR_CLOCK,
            told(&self.clock)
        )
    }
}

impl ProcessLimits {
    pub fn new(group: Group) -> Self {
        Self { process: Err("the process is not known yet".into()), group, at_rest: 0, named: None }
    }

    /// `process` runs tool code; `child` is the one that this program started: the process itself or its parent.
    pub fn take_hold(&mut self, process: u32, child: u32) {
        let opened = Process::open(process, child);
        if opened.as_ref().is_err_and(|error| CANNOT_HOLD.contains(&error.raw_os_error().unwrap_or_default())) {
            HOLDS.store(false, Ordering::Relaxed);
        }
        self.process = opened.map_err(|error| error.to_string());
        self.named = Some(process);
    }

    /// Whether this machine lets processes be held, and tells which children one has. The worker that makes the snapshot is
    /// the first.
    pub fn sees_children() -> bool {
        static SEES: LazyLock<bool> = LazyLock::new(|| Path::new("/proc/thread-self/children").exists());
        *SEES && HOLDS.load(Ordering::Relaxed)
    }

    /// From now on the one child of the process that was named runs tool code, and must be another than before.
    pub fn take_child(&mut self) -> io::Result<()> {
        let named = self.named.ok_or_else(|| io::Error::other("no process was named"))?;
        let held = self.process.as_ref().map_err(|reason| io::Error::other(reason.clone()))?;
        self.process = Ok(held.next(named)?);
        Ok(())
    }

    /// Takes what the process has now, ready for its first call, for what it needs itself.
    pub fn measure(&mut self) -> EnforcedLimits {
        self.at_rest = self.group.memory_used().unwrap_or(0);
        match &mut self.process {
            Ok(process) => {
                process.measure();
                EnforcedLimits { ceiling: process.ceiling(), clock: process.has_clock() }
            }
            Err(reason) => EnforcedLimits { ceiling: Err(reason.clone()), clock: Err(reason.clone()) },
        }
    }

    /// Sets what the next call may use. An error means that a bound which stood cannot be kept.
    pub fn admit(&mut self, limits: &Limits) -> io::Result<()> {
        let bytes = limits.memory_mb * MIB;
        if let Ok(process) = &mut self.process {
            process.set_ceiling(bytes + ROOM)?;
        }
        self.group.set_cpu_percent(limits.cpu_percent)?;
        self.group.raise_memory(self.group_bytes(limits))
    }

    /// What the call before used is gone: from here on this one's bounds hold, and its processor time is counted.
    pub fn begin(&self, limits: &Limits) -> Option<Meter<'_>> {
        if let Err(error) = self.group.lower_memory(self.group_bytes(limits)) {
            tracing::warn!(%error, "a control group keeps the memory of an earlier call");
        }
        let is_kept_here = !self.group.keeps_cpu() && limits.cpu_percent < 100;
        let percent = is_kept_here.then_some(limits.cpu_percent);
        let process = self.process.as_ref().ok()?;
        let budget = Duration::from_millis(limits.cpu_ms());
        Some(Meter::start(process, budget, percent, !self.group.bounds_memory()))
    }

    /// Gives the call the processor that it needs to end.
    pub fn let_go(&self) {
        if let Err(error) = self.group.set_cpu_percent(100) {
            tracing::debug!(%error, "a call ends slowly");
        }
    }

    fn group_bytes(&self, limits: &Limits) -> u64 {
        self.at_rest + limits.memory_mb * MIB + ROOM
    }

    /// Processor time that the process used since it started; `None` when that is not known.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.process.as_ref().ok()?.cpu_time()
    }

    /// Whether the process holds on to so much that calls could want for memory.
    pub fn is_swollen(&self) -> bool {
        self.process.as_ref().is_ok_and(|process| process.has_grown_by(ROOM / 2))
    }

    /// Whether the kernel killed the process because it reached its group's memory.
    pub fn was_killed_for_memory(&self) -> bool {
        self.group.was_killed_for_memory()
    }

    pub fn kill(&self) {
        if let Ok(process) = &self.process {
            process.kill();
        }
    }
}

impl Drop for ProcessLimits {
    fn drop(&mut self) {
        // Its parent, where it has one within the jail, may end before it.
        self.kill();
    }
}

/// What the parent puts around each worker, for the report.
pub fn protections(findings: Findings, enforced: &EnforcedLimits) -> Vec<Protection> {
    let state = |found: Result<(), String>| match found {
        Ok(()) => ProtectionState::Applied,
        Err(reason) => ProtectionState::Unavailable(reason),
    };
    let named = |name: &str, found| Protection { name: name.into(), state: state(found) };
    let mut protections = vec![
        named(names::MEMORY_CEILING, enforced.ceiling.clone()),
        named(names::PROCESSOR_CLOCK, enforced.clock.clone()),
    ];
    protections.extend(findings.into_iter().map(|(controller, found)| match controller {
        Controller::Memory => named(names::MEMORY_CGROUP, found),
        Controller::Cpu => {
            let instead = "; a share of the processor is kept by stopping and continuing the process";
            named(names::CPU_CGROUP, found.map_err(|reason| format!("{reason}{instead}")))
        }
        Controller::Processes => named(names::PROCESSES_CGROUP, found),
    }));
    protections
}
