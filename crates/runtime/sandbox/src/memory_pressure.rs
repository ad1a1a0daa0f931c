//! Whether memory is scarce: on the machine, or in this program's control group.

use std::fs;
use std::path::Path;

/// Memory is scarce if less than this part of it is available.
const SCARCE: u64 = 16;

/// Reads it from the kernel. False on systems that do not tell.
pub fn is_memory_scarce() -> bool {
    [machine(), group()].into_iter().flatten().any(|Memory { total, available }| available < total / SCARCE)
}

/// In bytes, or both in another unit.
struct Memory {
    total: u64,
    available: u64,
}

/// `None` on systems that do not tell.
fn machine() -> Option<Memory> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(Memory { total: value(&text, "MemTotal:")?, available: value(&text, "MemAvailable:")? })
}

/// `None` without a control group of version 2 that limits memory.
fn group() -> Option<Memory> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let folder = Path::new("/sys/fs/cgroup").join(path);
    let number = |file: &str| fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok();
    let total = number("memory.max")?;
    let used = number("memory.current")?;
    // Pages of files that the kernel drops when it needs memory.
    let statistics = fs::read_to_string(folder.join("memory.stat")).ok()?;
    let droppable = value(&statistics, "inactive_file").unwrap_or_default();
    Some(Memory { total, available: total.saturating_sub(used.saturating_sub(droppable)) })
}

/// The number after this word at the begin of a line.
fn value(text: &str, word: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix(word))?.split_whitespace().next()?.parse().ok()
}
