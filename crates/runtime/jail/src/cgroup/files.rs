//! The control files of a group. Cgroup versions 1 and 2 have different names and formats for them.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::find::Version;

/// The period in which CPU time is limited, in microseconds: the kernel's default.
const PERIOD_US: u64 = 100_000;

/// One group, in one hierarchy.
#[derive(Debug, Clone)]
pub struct Files {
    pub version: Version,
    pub folder: PathBuf,
}

impl Files {
    pub fn write(&self, file: &str, value: &str) -> io::Result<()> {
        write(&self.folder.join(file), value)
    }

    fn read(&self, file: &str) -> io::Result<String> {
        fs::read_to_string(self.folder.join(file))
    }

    pub fn admit(&self, process: u32) -> io::Result<()> {
        self.write("cgroup.procs", &process.to_string())
    }

    /// Disables swap for the group: otherwise it could use more memory than its limit.
    pub fn forbid_swap(&self) -> io::Result<()> {
        let (file, value) = match self.version {
            Version::V1 => ("memory.swappiness", "0"),
            Version::V2 => ("memory.swap.max", "0"),
        };
        match self.write(file, value) {
            // A kernel without swap has no such file.
            Err(_) if !self.folder.join(file).exists() => Ok(()),
            written => written,
        }
    }

    pub fn set_memory(&self, bytes: u64) -> io::Result<()> {
        let file = match self.version {
            Version::V1 => "memory.limit_in_bytes",
            Version::V2 => "memory.max",
        };
        self.write(file, &bytes.to_string())
    }

    /// Bytes that the group uses now.
    pub fn memory_used(&self) -> io::Result<u64> {
        let file = match self.version {
            Version::V1 => "memory.usage_in_bytes",
            Version::V2 => "memory.current",
        };
        self.read(file)?.trim().parse().map_err(io::Error::other)
    }

    /// The CPU limit of the group, in percent of one processor.
    pub fn set_cpu_percent(&self, percent: u64) -> io::Result<()> {
        let quota = PERIOD_US * percent / 100;
        match self.version {
            Version::V1 => {
                self.write("cpu.cfs_period_us", &PERIOD_US.to_string())?;
                self.write("cpu.cfs_quota_us", &quota.to_string())
            }
            Version::V2 => self.write("cpu.max", &format!("{quota} {PERIOD_US}")),
        }
    }

    /// The weight of the group compared with its siblings; 1 is one ordinary process.
    pub fn set_cpu_weight(&self, processes: f64) -> io::Result<()> {
        match self.version {
            Version::V1 => self.write("cpu.shares", &((processes * 1024.0) as u64).max(2).to_string()),
            Version::V2 => self.write("cpu.weight", &((processes * 100.0) as u64).clamp(1, 10_000).to_string()),
        }
    }

    pub fn set_processes(&self, most: u32) -> io::Result<()> {
        self.write("pids.max", &most.to_string())
    }

    /// Whether the kernel killed a process of the group because the group reached its memory limit.
    pub fn was_killed_for_memory(&self) -> bool {
        let (kills, reached) = match self.version {
            Version::V1 => ("memory.oom_control", self.read("memory.failcnt").unwrap_or_default()),
            Version::V2 => ("memory.events", self.read("memory.events").unwrap_or_default()),
        };
        // The kernel also kills when the machine runs out of memory, below the group's limit.
        let is_own = match self.version {
            Version::V1 => reached.trim() != "0",
            Version::V2 => count(&reached, "oom") > 0,
        };
        is_own && count(&self.read(kills).unwrap_or_default(), "oom_kill") > 0
    }

    /// The controllers that are enabled for child groups.
    pub fn controllers_below(&self) -> io::Result<Vec<String>> {
        Ok(words(&self.read("cgroup.subtree_control")?))
    }

    pub fn controllers(&self) -> io::Result<Vec<String>> {
        Ok(words(&self.read("cgroup.controllers")?))
    }

    pub fn processes(&self) -> io::Result<Vec<u32>> {
        Ok(self.read("cgroup.procs")?.lines().filter_map(|line| line.parse().ok()).collect())
    }
}

/// Writes a file; an error contains the path.
pub fn write(path: &Path, value: &str) -> io::Result<()> {
    fs::write(path, value).map_err(|error| with_path(&error, path))
}

pub fn with_path(error: &io::Error, path: &Path) -> io::Error {
    io::Error::new(error.kind(), format!("{}: {error}", path.display()))
}

fn words(text: &str) -> Vec<String> {
    text.split_ascii_whitespace().map(str::to_owned).collect()
}

/// The number after `name` in lines of `name number`.
fn count(text: &str, name: &str) -> u64 {
    let number = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.trim().parse().ok();
    text.lines().find_map(number).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(version: Version, name: &str) -> Files {
        let folder = std::env::temp_dir().join(format!("rcrt-files-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        Files { version, folder }
    }

    fn set_all(files: &Files) {
        files.set_memory(64 << 20).unwrap();
        files.forbid_swap().unwrap();
        files.set_cpu_percent(20).unwrap();
        files.set_processes(64).unwrap();
        files.set_cpu_weight(0.5).unwrap();
        files.admit(42).unwrap();
    }

    fn written(files: &Files) -> Vec<(String, String)> {
        let mut all: Vec<_> = fs::read_dir(&files.folder)
            .unwrap()
            .flatten()
            .map(|entry| (entry.file_name().into_string().unwrap(), fs::read_to_string(entry.path()).unwrap()))
            .collect();
        all.sort();
        all
    }

    fn pairs(expected: &[(&str, &str)]) -> Vec<(String, String)> {
        expected.iter().map(|(file, value)| ((*file).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn version_1_files_are_written_and_read() {
        let files = files(Version::V1, "v1");
        set_all(&files);
        let expected = [
            ("cgroup.procs", "42"),
            ("cpu.cfs_period_us", "100000"),
            ("cpu.cfs_quota_us", "20000"),
            ("cpu.shares", "512"),
            ("memory.limit_in_bytes", "67108864"),
            ("memory.swappiness", "0"),
            ("pids.max", "64"),
        ];
        assert_eq!(written(&files), pairs(&expected));
        let kills = |failcnt: &str, oom: &str| {
            files.write("memory.failcnt", failcnt).unwrap();
            files.write("memory.oom_control", oom).unwrap();
            files.was_killed_for_memory()
        };
        assert!(kills("3\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"));
        assert!(!kills("3\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 0\n"));
        assert!(!kills("0\n", "oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"));
        files.write("memory.usage_in_bytes", "4096\n").unwrap();
        assert_eq!(files.memory_used().unwrap(), 4096);
        fs::remove_dir_all(&files.folder).unwrap();
    }

    #[test]
    fn version_2_files_are_written_and_read() {
        let files = files(Version::V2, "v2");
        set_all(&files);
        let expected = [
            ("cgroup.procs", "42"),
            ("cpu.max", "20000 100000"),
            ("cpu.weight", "50"),
            ("memory.max", "67108864"),
            ("memory.swap.max", "0"),
            ("pids.max", "64"),
        ];
        assert_eq!(written(&files), pairs(&expected));
        let kills = |events: &str| {
            files.write("memory.events", events).unwrap();
            files.was_killed_for_memory()
        };
        assert!(kills("low 0\nhigh 0\nmax 12\noom 1\noom_kill 2\noom_group_kill 1\n"));
        assert!(!kills("low 0\nhigh 0\nmax 12\noom 0\noom_kill 1\noom_group_kill 0\n"));
        assert!(!kills("low 0\nhigh 0\nmax 12\noom 0\noom_kill 0\noom_group_kill 0\n"));
        files.write("memory.current", "8192\n").unwrap();
        files.write("cgroup.controllers", "cpuset cpu io memory pids\n").unwrap();
        files.write("cgroup.procs", "1\n22\n").unwrap();
        assert_eq!(files.memory_used().unwrap(), 8192);
        assert_eq!(files.controllers().unwrap(), ["cpuset", "cpu", "io", "memory", "pids"]);
        assert_eq!(files.processes().unwrap(), [1, 22]);
        fs::remove_dir_all(&files.folder).unwrap();
    }

    #[test]
    fn an_error_names_the_file() {
        let files = Files { version: Version::V2, folder: "/no/such/folder".into() };
        assert!(files.set_memory(1).unwrap_err().to_string().starts_with("/no/such/folder/memory.max: "));
    }
}
