//! Enforces a call's limits on a worker process from outside, whatever runs in it: a memory
//! ceiling, a control group if there is one, and its CPU clock.

mod meter;
#[cfg_attr(not(target_os = "linux"), path = "process_unsupported.rs")]
mod process;
mod share;

use std::io;
use std::path::Path;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::libc;
use rcrt_breadcrumb::Limits;

pub use meter::{Meter, MeterCheck};
pub use rcrt_jail::cgroup::{Cgroups, Findings, Group};

use crate::level::names;
use crate::protocol::{Protection, ProtectionState};
use process::Process;
use rcrt_jail::cgroup::Controller;

const MIB: u64 = 1024 * 1024;
/// How much a process can grow beyond the memory of its call, in bytes: the engine's own tables,
/// stacks of threads that start late, buffers of the protocol, and what accumulates over many
/// calls.
const ROOM: u64 = 128 * MIB;

/// The kernel's errors if process descriptors are not available at all.
const CANNOT_HOLD: [i32; 4] = [libc::ENOSYS, libc::EPERM, libc::EACCES, libc::ENOENT];
/// Whether process descriptors work; true until an attempt fails.
static HOLDS: AtomicBool = AtomicBool::new(true);

/// The limits of one worker process.
pub struct ProcessLimits {
    process: Result<Process, String>,
    group: Group,
    /// Memory of the group before the first call, in bytes.
    baseline: u64,
    /// The process that the worker named: the process above, or its parent.
    named: Option<u32>,
}

/// Which limits of one process are enforced; the same for every process of a machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnforcedLimits {
    ceiling: Result<(), String>,
    clock: Result<(), String>,
}

impl std::fmt::Display for EnforcedLimits {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let state = |found: &Result<(), String>| found.clone().err().unwrap_or_else(|| "in force".into());
        write!(
            f,
            "{}: {}; {}: {}",
            names::MEMORY_CEILING,
            state(&self.ceiling),
            names::PROCESSOR_CLOCK,
            state(&self.clock)
        )
    }
}

impl ProcessLimits {
    pub fn new(group: Group) -> Self {
        Self { process: Err("the process is not open yet".into()), group, baseline: 0, named: None }
    }

    /// Opens the process. `process` runs tool code; `child` is the one that this program started:
    /// the process itself or its parent.
    pub fn attach(&mut self, process: u32, child: u32) {
        let opened = Process::open(process, child);
        if opened.as_ref().is_err_and(|error| CANNOT_HOLD.contains(&error.raw_os_error().unwrap_or_default())) {
            HOLDS.store(false, Ordering::Relaxed);
        }
        self.process = opened.map_err(|error| error.to_string());
        self.named = Some(process);
    }

    /// Whether this machine supports process descriptors and lists the children of a process. The
    /// worker that makes the snapshot is the first attempt.
    pub fn sees_children() -> bool {
        static SEES: LazyLock<bool> = LazyLock::new(|| Path::new("/proc/thread-self/children").exists());
        *SEES && HOLDS.load(Ordering::Relaxed)
    }

    /// Switches to the only child of the process that was named. It must be another one than
    /// before.
    pub fn take_child(&mut self) -> io::Result<()> {
        let named = self.named.ok_or_else(|| io::Error::other("no process was named"))?;
        let held = self.process.as_ref().map_err(|reason| io::Error::other(reason.clone()))?;
        self.process = Ok(held.next(named)?);
        Ok(())
    }

    /// Measures the process when it is ready for its first call: what it has now is its own
    /// baseline.
    pub fn measure(&mut self) -> EnforcedLimits {
        self.baseline = self.group.memory_used().unwrap_or(0);
        match &mut self.process {
            Ok(process) => {
                process.measure();
                EnforcedLimits { ceiling: process.ceiling(), clock: process.has_clock() }
            }
            Err(reason) => EnforcedLimits { ceiling: Err(reason.clone()), clock: Err(reason.clone()) },
        }
    }

    /// Sets the limits of the next call. An error means that a limit which was enforced before
    /// cannot be set.
    pub fn admit(&mut self, limits: &Limits) -> io::Result<()> {
        let bytes = limits.memory_mb * MIB;
        if let Ok(process) = &mut self.process {
            process.set_ceiling(bytes + ROOM)?;
        }
        self.group.set_cpu_percent(limits.cpu_percent)?;
        self.group.raise_memory(self.group_bytes(limits))
    }

    /// Called when the resources of the call before are released: applies this call's lower limits
    /// and starts to count its CPU time.
    pub fn begin(&self, limits: &Limits) -> Option<Meter<'_>> {
        if let Err(error) = self.group.lower_memory(self.group_bytes(limits)) {
            tracing::warn!(%error, "cannot lower a control group's memory limit");
        }
        let is_enforced_here = !self.group.keeps_cpu() && limits.cpu_percent < 100;
        let percent = is_enforced_here.then_some(limits.cpu_percent);
        let process = self.process.as_ref().ok()?;
        let budget = Duration::from_millis(limits.cpu_ms());
        Some(Meter::start(process, budget, percent, !self.group.bounds_memory()))
    }

    /// Lifts the CPU limit, so that the call can end.
    pub fn lift_cpu_limit(&self) {
        if let Err(error) = self.group.set_cpu_percent(100) {
            tracing::debug!(%error, "cannot lift the CPU limit of a call that ends");
        }
    }

    fn group_bytes(&self, limits: &Limits) -> u64 {
        self.baseline + limits.memory_mb * MIB + ROOM
    }

    /// CPU time of the process since it started; `None` if unknown.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.process.as_ref().ok()?.cpu_time()
    }

    /// The most resident memory of the process since it was forked, in bytes; `None` if unknown.
    pub fn peak_memory(&self) -> Option<u64> {
        self.process.as_ref().ok()?.peak_memory()
    }

    /// Whether the process holds so much memory that calls could lack it.
    pub fn uses_excess_memory(&self) -> bool {
        self.process.as_ref().is_ok_and(|process| process.has_grown_by(ROOM / 2))
    }

    /// Whether the kernel killed the process because its group reached the memory limit.
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
        // Its parent in the jail, if any, may exit before it.
        self.kill();
    }
}

/// The protections that the parent applies to each worker, for the report.
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
            let instead = "; a share of the processor is enforced by stopping and continuing the process";
            named(names::CPU_CGROUP, found.map_err(|reason| format!("{reason}{instead}")))
        }
        Controller::Processes => named(names::PROCESSES_CGROUP, found),
    }));
    protections
}
