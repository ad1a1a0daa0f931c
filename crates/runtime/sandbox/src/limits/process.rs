//! The process that runs tool code, from outside: reads its clock, sets its ceiling, stops and
//! continues it. It is held by a descriptor, so a later process with the same id is never affected.

use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use nix::time::{ClockId, clock_getcpuclockid};
use rustix::process::{Pid, PidfdFlags, Resource, Rlimit, Signal, getrlimit, pidfd_open, pidfd_send_signal, prlimit};

pub struct Process {
    pid: Pid,
    descriptor: OwnedFd,
    clock: ClockId,
    /// Writable private memory before the first call, in bytes, as RLIMIT_DATA counts it.
    baseline: Result<u64, String>,
    /// Opened once, because it is read often during a call.
    status: Option<File>,
    /// The ceiling that was set last, in bytes.
    ceiling: Option<u64>,
    /// The hard limit of the ceiling, in bytes: workers inherit it from this program.
    hard: Option<u64>,
}

impl Process {
    /// Opens the process. `child` is the one that this program started: the process itself or its
    /// parent.
    pub fn open(process: u32, child: u32) -> io::Result<Self> {
        let pid = i32::try_from(process).ok().and_then(Pid::from_raw).ok_or(io::ErrorKind::InvalidInput)?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
        if process != child && parent(process)? != child {
            return Err(io::Error::other(format!("process {process} is not a child of {child}")));
        }
        let clock = clock_getcpuclockid(nix::unistd::Pid::from_raw(pid.as_raw_nonzero().get()))?;
        let hard = getrlimit(Resource::Data).maximum;
        Ok(Self { pid, descriptor, clock, baseline: Err("not measured".into()), status: None, ceiling: None, hard })
    }

    /// Opens the only child of `parent`, which must be another process than this one. The baseline,
    /// if any, was measured on the first child.
    pub fn next(&self, parent: u32) -> io::Result<Self> {
        let path = format!("/proc/{parent}/task/{parent}/children");
        let text = fs::read_to_string(&path)?;
        let mut children = text.split_ascii_whitespace();
        let (Some(Ok(child)), None) = (children.next().map(str::parse::<u32>), children.next()) else {
            return Err(io::Error::other(format!("process {parent} does not have exactly one child: {text}")));
        };
        if u32::try_from(self.pid.as_raw_nonzero().get()) == Ok(child) {
            return Err(io::Error::other(format!("process {child} is still the previous one")));
        }
        let mut next = Self::open(child, parent)?;
        next.baseline.clone_from(&self.baseline);
        next.status = File::open(format!("/proc/{child}/status")).ok();
        Ok(next)
    }

    /// Measures the process's baseline.
    pub fn measure(&mut self) {
        self.baseline = self.data_bytes();
        self.status = File::open(format!("/proc/{}/status", self.pid)).ok();
        // Page tables and pages that are not writable any more count here, but not as data.
        if let (Ok(baseline), Some(held)) = (&mut self.baseline, held_bytes(self.status.as_ref())) {
            *baseline = (*baseline).max(held);
        }
    }

    /// Whether it uses more memory than its ceiling allows, including kinds that the kernel does
    /// not count against the ceiling: pages that are not writable any more, and page tables.
    pub fn is_past_its_ceiling(&self) -> bool {
        self.ceiling.is_some_and(|ceiling| held_bytes(self.status.as_ref()).is_some_and(|held| held > ceiling))
    }

    /// Whether the ceiling can be set, or why not.
    pub fn ceiling(&self) -> Result<(), String> {
        self.baseline.as_ref().map(|_| ()).map_err(Clone::clone)
    }

    /// Whether its CPU time can be read, or why not.
    pub fn has_clock(&self) -> Result<(), String> {
        self.clock.now().map(|_| ()).map_err(|error| error.to_string())
    }

    /// Lets the process grow by this many bytes beyond its baseline, and no further.
    pub fn set_ceiling(&mut self, bytes: u64) -> io::Result<()> {
        let Ok(baseline) = &self.baseline else { return Ok(()) };
        let soft = baseline + bytes;
        if self.ceiling == Some(soft) {
            return Ok(());
        }
        // The hard limit is not lowered, since it could not be raised again.
        let current = Some(self.hard.map_or(soft, |hard| soft.min(hard)));
        prlimit(Some(self.pid), Resource::Data, Rlimit { current, maximum: self.hard })?;
        self.ceiling = Some(soft);
        Ok(())
    }

    /// Whether it has grown by this many bytes since the baseline.
    pub fn has_grown_by(&self, bytes: u64) -> bool {
        let grown = self.baseline.as_ref().ok().and_then(|baseline| Some((baseline, self.data_bytes().ok()?)));
        grown.is_some_and(|(baseline, now)| now > baseline + bytes)
    }

    /// CPU time of all its threads since it started; `None` if it has exited.
    pub fn cpu_time(&self) -> Option<Duration> {
        self.clock.now().ok().map(Duration::from)
    }

    /// Its most resident memory so far, in bytes; `None` if it has exited.
    pub fn peak_memory(&self) -> Option<u64> {
        read_status(self.status.as_ref(), |kib| kib("VmHWM"))
    }

    pub fn stop(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.descriptor, Signal::STOP)?)
    }

    pub fn resume(&self) -> io::Result<()> {
        Ok(pidfd_send_signal(&self.descriptor, Signal::CONT)?)
    }

    /// Works on a stopped process too.
    pub fn kill(&self) {
        let _ = pidfd_send_signal(&self.descriptor, Signal::KILL);
    }

    fn data_bytes(&self) -> Result<u64, String> {
        let path = format!("/proc/{}/statm", self.pid);
        let text = fs::read_to_string(&path).map_err(|error| format!("{path}: {error}"))?;
        let pages: Option<u64> = text.split_ascii_whitespace().nth(5).and_then(|pages| pages.parse().ok());
        let pages = pages.ok_or_else(|| format!("{path} cannot be read: {text}"))?;
        Ok(pages * rustix::param::page_size() as u64)
    }
}

/// Private memory, resident or swapped out, and its page tables.
fn held_bytes(status: Option<&File>) -> Option<u64> {
    read_status(status, |kib| Some(kib("RssAnon")? + kib("VmPTE")? + kib("VmSwap").unwrap_or(0)))
}

/// An amount of memory in bytes. `amount` gets the fields of the status, in KiB.
fn read_status(status: Option<&File>, amount: impl FnOnce(&dyn Fn(&str) -> Option<u64>) -> Option<u64>) -> Option<u64> {
    let mut text = [0; 4096];
    let length = status?.read_at(&mut text, 0).ok()?;
    let text = String::from_utf8_lossy(text.get(..length)?);
    let kib = |name: &str| -> Option<u64> {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_ascii_whitespace().next()?.parse().ok()
    };
    Some(amount(&kib)? * 1024)
}

fn parent(process: u32) -> io::Result<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    let parent = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_ascii_whitespace().nth(1)?.parse().ok());
    parent.ok_or_else(|| io::Error::other("cannot read the parent of the process"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;
    use std::process::{Child, Command, Stdio};

    /// A shell that has started: before that, its memory changes.
    fn shell(script: &str) -> (Child, Process) {
        let script = format!("echo; {script}");
        let mut shell = Command::new("/bin/sh");
        let mut child = shell.args(["-c", &script]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        child.stdout.as_mut().unwrap().read_exact(&mut [0]).unwrap();
        let process = Process::open(child.id(), child.id()).unwrap();
        (child, process)
    }

    fn state(child: &Child) -> String {
        let stat = fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
        stat.rsplit_once(") ").unwrap().1[..1].to_owned()
    }

    #[test]
    fn the_clock_of_a_stopped_process_does_not_advance() {
        let (mut child, process) = shell("while :; do :; done");
        while process.cpu_time().unwrap() < Duration::from_millis(20) {
            std::thread::yield_now();
        }
        process.stop().unwrap();
        while state(&child) != "T" {
            std::thread::yield_now();
        }
        let stopped = process.cpu_time().unwrap();
        assert_eq!(process.cpu_time().unwrap(), stopped);
        process.resume().unwrap();
        while process.cpu_time().unwrap() == stopped {
            std::thread::yield_now();
        }
        process.stop().unwrap();
        process.kill();
        child.wait().unwrap();
        assert_eq!(process.cpu_time(), None);
        assert!(process.stop().is_err());
    }

    #[test]
    fn the_ceiling_is_set_from_outside_and_can_be_raised_again() {
        let (mut child, mut process) = shell("read line");
        assert!(process.ceiling().is_err());
        process.measure();
        process.ceiling().unwrap();
        let limit = || {
            let limits = fs::read_to_string(format!("/proc/{}/limits", child.id())).unwrap();
            let line = limits.lines().find(|line| line.starts_with("Max data size")).unwrap().to_owned();
            line.split_ascii_whitespace().nth(3).unwrap().parse::<u64>().unwrap()
        };
        process.set_ceiling(8 << 20).unwrap();
        let low = limit();
        assert!((8 << 20..10 << 20).contains(&low), "{low}");
        process.set_ceiling(64 << 20).unwrap();
        assert_eq!(limit() - low, 56 << 20);
        assert!(process.has_grown_by(0) || !process.has_grown_by(1));
        process.kill();
        child.wait().unwrap();
        assert!(process.set_ceiling(1 << 20).is_err());
    }

    #[test]
    fn the_next_process_is_the_only_child_and_a_new_one() {
        let (mut child, parent) = shell("sleep 60 & wait");
        let id = child.id();
        let children = || fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap();
        while children().is_empty() {
            std::thread::yield_now();
        }
        let first = parent.next(id).unwrap();
        assert_eq!(children().trim(), first.pid.to_string());
        let same = first.next(id).err().expect("it is the previous one");
        assert!(same.to_string().contains("is still the previous one"), "{same}");
        first.kill();
        parent.kill();
        child.wait().unwrap();
        let none = first.next(id).err().expect("there is no child");
        assert_eq!(none.kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn a_process_without_one_child_has_no_next() {
        let (mut child, process) = shell("read line");
        let none = process.next(child.id()).err().expect("it has none");
        assert!(none.to_string().contains("does not have exactly one child"), "{none}");
        process.kill();
        child.wait().unwrap();
    }

    #[test]
    fn a_process_that_is_not_a_child_is_refused() {
        let (mut child, process) = shell("read line");
        let other = Process::open(child.id(), 1).err().expect("not the child of 1");
        assert!(other.to_string().contains("is not a child of 1"), "{other}");
        assert!(Process::open(0, 1).is_err());
        process.kill();
        child.wait().unwrap();
    }
}
