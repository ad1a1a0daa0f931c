//! Measures the CPU time of one call on the process's own clock, enforces its CPU share, and
//! reports when its budget is used up. If no control group counts memory, it also checks the
//! memory.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use super::process::Process;
use super::share::{Share, Turn};

/// The shortest time between two checks.
const SHORTEST: Duration = Duration::from_millis(5);
/// When to check again if the clock cannot be read: the process has exited, and its socket reports
/// that.
const LATER: Duration = Duration::from_mins(1);
/// The longest time between two checks if no control group counts the memory.
const MEMORY: Duration = Duration::from_millis(10);

pub struct Meter<'a> {
    process: &'a Process,
    /// Enforced by stopping the process, if no control group does it.
    share: Option<Share>,
    budget: Duration,
    /// No control group limits the memory.
    watches_memory: bool,
    processors: u32,
    /// CPU time at the start, on the process's clock.
    from: Duration,
    looked: Duration,
    at: Instant,
}

/// The result of a check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MeterCheck {
    /// The budget is used up.
    CpuExhausted,
    /// The process uses more memory than the call's limit.
    MemoryExceeded,
    /// Check again after this long.
    CheckAgain(Duration),
}

impl<'a> Meter<'a> {
    /// Starts to count. `percent` is the CPU share that is enforced here.
    pub fn start(process: &'a Process, budget: Duration, percent: Option<u64>, watches_memory: bool) -> Self {
        let processors = processors();
        let from = process.cpu_time().unwrap_or_default();
        Self {
            process,
            share: percent.map(|percent| Share::new(percent, processors)),
            budget,
            watches_memory,
            processors: processors as u32,
            from,
            looked: from,
            at: Instant::now(),
        }
    }

    /// The processor time of the process at the start.
    pub fn from(&self) -> Duration {
        self.from
    }

    /// How long no limit can be reached, so that no check is needed.
    pub fn first_look(&self) -> Duration {
        let share = self.share.as_ref().map_or(Duration::MAX, Share::first_wait);
        let memory = if self.watches_memory { MEMORY } else { Duration::MAX };
        (self.budget / self.processors).max(SHORTEST).min(share).min(memory)
    }

    pub fn check(&mut self) -> MeterCheck {
        let Some(now) = self.process.cpu_time() else { return MeterCheck::CheckAgain(LATER) };
        let left = (self.from + self.budget).saturating_sub(now);
        if left.is_zero() {
            self.lift_cpu_limit();
            return MeterCheck::CpuExhausted;
        }
        if self.watches_memory && self.process.is_past_its_ceiling() {
            return MeterCheck::MemoryExceeded;
        }
        // The fastest way to use it up is on all processors.
        let mut wait = (left / self.processors).max(SHORTEST);
        if self.watches_memory {
            wait = wait.min(MEMORY);
        }
        let Some(share) = &mut self.share else { return MeterCheck::CheckAgain(wait) };
        let passed = std::mem::replace(&mut self.at, Instant::now()).elapsed();
        let used = now.saturating_sub(std::mem::replace(&mut self.looked, now));
        let (turn, again) = share.after(passed, used);
        let done = match turn {
            Turn::Stop => self.process.stop(),
            Turn::Resume => self.process.resume(),
            Turn::Leave => Ok(()),
        };
        if done.is_err() {
            return MeterCheck::CheckAgain(LATER);
        }
        MeterCheck::CheckAgain(again.min(wait))
    }

    /// Lets the process run without its share: it needs the CPU to end its call.
    pub fn lift_cpu_limit(&mut self) {
        if self.share.take().is_some_and(|share| share.is_stopped()) {
            let _ = self.process.resume();
        }
    }
}

/// Read once: the library reads the files of this program's own control group for it.
fn processors() -> usize {
    static PROCESSORS: LazyLock<usize> = LazyLock::new(|| std::thread::available_parallelism().map_or(1, usize::from));
    *PROCESSORS
}

impl Drop for Meter<'_> {
    fn drop(&mut self) {
        self.lift_cpu_limit();
    }
}
