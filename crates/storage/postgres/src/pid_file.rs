//! `postmaster.pid`: Postgres's record of the process that serves a cluster, and of its state.

use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PidFile {
    pub(crate) pid: i32,
    pub(crate) ready: bool,
}

impl PidFile {
    /// Returns `None` if the file is missing or incomplete: Postgres writes it line by line.
    pub(crate) fn read(cluster: &Path) -> Option<Self> {
        Self::parse(&std::fs::read_to_string(cluster.join("postmaster.pid")).ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        // A standalone backend writes its pid negated.
        let pid = lines.next()?.trim().parse::<i32>().ok()?.checked_abs().filter(|pid| *pid > 1)?;
        Some(Self { pid, ready: lines.nth(6).is_some_and(|status| status.trim() == "ready") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WHOLE: &str = "30146\n/srv/data/postgres\n1795300845\n5432\n/srv/data/run\n\n 10013010         5\nready   \n";

    #[test]
    fn reads_the_pid_and_the_status() {
        assert_eq!(PidFile::parse(WHOLE), Some(PidFile { pid: 30146, ready: true }));
        assert_eq!(PidFile::parse(&WHOLE.replace("ready", "starting")), Some(PidFile { pid: 30146, ready: false }));
    }

    #[test]
    fn a_partial_file_is_never_ready() {
        for end in 0..WHOLE.len() - "ready   \n".len() {
            assert!(PidFile::parse(&WHOLE[..end]).is_none_or(|file| !file.ready), "{end}");
        }
    }

    #[test]
    fn invalid_files_name_no_process() {
        for text in ["", "\n", "x", "0", "1", "-2147483648", "99999999999"] {
            assert_eq!(PidFile::parse(text), None, "{text:?}");
        }
    }
}
