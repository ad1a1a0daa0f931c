//! The processor time of an instance, by kind of process.

use std::time::Duration;

use rustix::param::clock_ticks_per_second;

use super::memory::stat;
use super::tree;

/// Processor time since the processes started.
#[derive(Debug, Clone, Copy, Default)]
pub struct CpuTime {
    /// The program itself.
    pub server: Duration,
    pub postgres: Duration,
    /// All its other descendants: the sandbox's processes.
    pub workers: Duration,
}

impl CpuTime {
    /// Of a process and all its descendants.
    pub fn of(root: u32) -> anyhow::Result<Self> {
        let mut found = Self::default();
        for process in tree(root)? {
            // A process that has just exited counts for its parent from then on.
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

    /// What one of so many calls took: all of it in milliseconds, and its parts as a note.
    pub fn of_each(&self, calls: u64) -> (f64, String) {
        let each = |time: Duration| time.as_secs_f64() * 1e3 / calls.max(1) as f64;
        let parts = [self.server, self.postgres, self.workers].map(each);
        let [server, postgres, workers] = parts;
        let note =
            format!("server and runner {server:.2} ms, Postgres {postgres:.2} ms, sandbox workers {workers:.2} ms");
        (parts.iter().sum(), note)
    }

    pub fn add(&mut self, more: &Self) {
        self.server += more.server;
        self.postgres += more.postgres;
        self.workers += more.workers;
    }
}

/// The processor time of a process since it started, without its children.
pub(super) fn processor_time(process: u32) -> std::io::Result<Duration> {
    let (_, stat) = stat(process)?;
    Ok(times(&stat)[0])
}

/// The time of the process, and of its children that it has waited for.
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
    fn a_process_and_its_children_have_separate_times() {
        let [own, children] = times("S 1 77 77 0 -1 4194560 1 2 3 4 10 20 30 40 20 0 1 0 5 6 7");
        let ticks = |time: Duration| (time.as_secs_f64() * clock_ticks_per_second() as f64).round();
        assert_eq!((ticks(own), ticks(children)), (30.0, 70.0));
    }
}
