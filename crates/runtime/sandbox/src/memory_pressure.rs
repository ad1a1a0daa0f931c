//! Whether memory is scarce: on the machine, or in this program's control group.

use std::fs;
use std::path::Path;

/// Memory is scarce if less than this part of it is available.
const SCARCE: u64 = 16;

/// Reads it from the kernel. False on systems that do not tell.
pub fn is_memory_scarce() -> bool {
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    machine().is_some_and(|memory| memory.is_scarce()) || is_scarce_in(Path::new("/sys/fs/cgroup"), &groups)
}

/// In bytes, or both in another unit.
struct Memory {
    total: u64,
    available: u64,
}

impl Memory {
    fn is_scarce(&self) -> bool {
        self.available < self.total / SCARCE
    }
}

/// `None` on systems that do not tell.
fn machine() -> Option<Memory> {
    let text = fs::read_to_string("/proc/meminfo").ok()?;
    Some(Memory { total: value(&text, "MemTotal:")?, available: value(&text, "MemAvailable:")? })
}

/// Whether memory is scarce in the control group of version 2 that this file of the kernel names,
/// or in one that contains it. The limit can be at any level, and workers have groups beside this
/// program's.
fn is_scarce_in(mount: &Path, groups: &str) -> bool {
    let Some(path) = groups.lines().find_map(|line| line.strip_prefix("0::/")) else { return false };
    let folder = mount.join(path);
    let levels = folder.ancestors().take_while(|level| level.starts_with(mount));
    levels.filter_map(group).any(|memory| memory.is_scarce())
}

/// `None` if the group has no limit.
fn group(folder: &Path) -> Option<Memory> {
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

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    /// A limit of 1600 bytes in `unit`, and the program in `unit/main`, which has none.
    fn is_scarce(used: u32, droppable: u32) -> io::Result<bool> {
        let mount = tempfile::tempdir()?;
        let unit = mount.path().join("unit");
        fs::create_dir_all(unit.join("main"))?;
        for (folder, most, used) in [(unit.clone(), "1600", used), (unit.join("main"), "max", 10)] {
            fs::write(folder.join("memory.max"), format!("{most}\n"))?;
            fs::write(folder.join("memory.current"), format!("{used}\n"))?;
            fs::write(folder.join("memory.stat"), format!("anon 1\ninactive_file {droppable}\n"))?;
        }
        Ok(is_scarce_in(mount.path(), "1:name=systemd:/x\n0::/unit/main\n"))
    }

    #[test]
    fn limits_of_containing_groups_count() -> io::Result<()> {
        assert!(!is_scarce(1500, 0)?);
        assert!(is_scarce(1501, 0)?);
        assert!(!is_scarce(1600, 100)?);
        assert!(!is_scarce_in(Path::new("/nowhere"), "0::/unit\n") && !is_scarce_in(Path::new("/nowhere"), ""));
        Ok(())
    }
}
