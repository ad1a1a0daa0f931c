//! The combined use of all processes of the jail, from `/proc`: processor time, and memory where no
//! control group counts it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use nix::libc;

/// The state of things at the last look.
#[derive(Default)]
pub struct Usage {
    /// Of each process and of the children that it collected, in ticks.
    ticks: BTreeMap<u32, u64>,
    /// Bytes.
    memory: u64,
}

impl Usage {
    pub fn look(&mut self) {
        let Ok(entries) = fs::read_dir("/proc") else { return };
        self.memory = 0;
        let mut ticks = BTreeMap::new();
        for id in entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok()) {
            ticks.extend(ticks_of(id).map(|used| (id, used)));
            self.memory += memory_of(id).unwrap_or(0);
        }
        self.ticks = ticks;
    }

    /// Processor time of the processes that are there, and of those that they waited for. What the program leaves behind
    /// is waited for by the first process, so nothing is forgotten.
    pub fn processor_time(&self) -> Duration {
        // SAFETY: asks the C library for a number.
        #[allow(unsafe_code)]
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let per_second = u64::try_from(per_second).unwrap_or(100).max(1);
        Duration::from_millis(self.ticks.values().sum::<u64>() * 1000 / per_second)
    }

    /// Private bytes in memory: pages that several processes share count for each of them.
    pub fn memory(&self) -> u64 {
        self.memory
    }
}

/// User and system time, of the process and of its ended children.
fn ticks_of(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses may hold anything; what follows it does not.
    let fields = stat.rsplit_once(')')?.1.split_ascii_whitespace().skip(11).take(4);
    fields.map(|field| field.parse::<u64>().ok()).sum()
}

fn memory_of(id: u32) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{id}/status")).ok()?;
    let of = |name: &str| -> Option<u64> {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().trim_end_matches(" kB").parse().ok()
    };
    Some((of("RssAnon:")? + of("RssShmem:")?) * 1024)
}
