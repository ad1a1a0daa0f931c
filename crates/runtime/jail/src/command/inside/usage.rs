//! The resource use of all processes of the jail, from `/proc`: CPU time, and memory if no control
//! group counts it.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use nix::libc;

/// The values at the last check.
#[derive(Default)]
pub struct Usage {
    /// Clock ticks of each process and of the children that it has waited for.
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

    /// CPU time of the current processes and of those that they waited for. The first process waits
    /// for orphans, so no time is lost.
    pub fn processor_time(&self) -> Duration {
        // SAFETY: reads a number from the C library.
        #[allow(unsafe_code)]
        let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
        let per_second = u64::try_from(per_second).unwrap_or(100).max(1);
        Duration::from_millis(self.ticks.values().sum::<u64>() * 1000 / per_second)
    }

    /// Private resident memory in bytes. Pages that several processes share count for each of them.
    pub fn memory(&self) -> u64 {
        self.memory
    }
}

/// User and system time of the process and of the children that it has waited for.
fn ticks_of(id: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // The name in parentheses can contain anything; the fields after it cannot.
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
