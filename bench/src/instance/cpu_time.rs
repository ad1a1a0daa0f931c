//! What an instance has spent of the processors, by kind of process.

use std::time::Duration;

use rustix::param::clock_ticks_per_second;

use super::memory::stat;
use super::tree;

/// Processor time since the processes began.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuTime {
    /// The program itself.
    pub server: Duration,
    pub postgres: Duration,
    /// All other processes below it: those of the sandbox.
    pub workers: Duration,
}

impl CpuTime {
    /// Of a process and all below it.
    pub fn of(root: u32) -> anyhow::Result<Self> {
        let mut found = Self::default();
        for process in tree(root)? {
            // One that has just ended is its parent's from then on.
            let Ok((program, stat)) = stat(process) else { continue };
            let [own, children] = times(&stat);
            if program == "postgres" {
                found.postgres += own + children;
            } else if process == root {
                found.server += own;
                found.workers += children;
            } else {
                found.workers += own + children;
            }
        }
        Ok(found)
    }

    /// Of this program.
    pub fn own() -> Duration {
        processor_time(std::process::id()).unwrap_or_default()
    }

    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            server: self.server.saturating_sub(before.server),
            postgres: self.postgres.saturating_sub(before.postgres),
            workers: self.workers.saturating_sub(before.workers),
        }
    }

    pub fn add(&mut self, more: &Self) {
        self.server += more.server;
        self.postgres += more.postgres;
        self.workers += more.workers;
    }
}

/// What a process has taken of the processors since it began, without its children.
pub(super) fn processor_time(process: u32) -> std::io::Result<Duration> {
    let (_, stat) = stat(process)?;
    Ok(times(&stat)[0])
}

/// What the process has spent, and its children that it has waited for.
fn times(stat: &str) -> [Duration; 2] {
    // `utime` is the 14th field, then come `stime`, `cutime` and `cstime`.
    let mut ticks = stat.split(' ').skip(11).map(|field| field.parse::<u64>().unwrap_or_default());
    let mut two = || {
        let ticks = ticks.next().unwrap_or_default() + ticks.next().unwrap_or_default();
        Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64)
    };
    [two(), two()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_of_a_process_and_its_children_are_told_apart() {
        let [own, children] = times("S 1 77 77 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5 6 7");
        let ticks = |time: Duration| (time.as_secs_f64() * clock_ticks_per_second() as f64).round();
        assert_eq!((ticks(own), ticks(children)), (30.0, 70.0));
    }
}
