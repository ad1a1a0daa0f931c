//! The names of a runner's folders. They tell any later runner whether the owner is still running.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

const PREFIX: &str = "rcrt";

/// The process that owns a folder: its PID namespace, its PID, and its start time, since PIDs are
/// reused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OwnerProcess {
    namespace: u64,
    process: u32,
    /// Clock ticks since boot.
    started: u64,
}

impl OwnerProcess {
    pub fn this_process() -> std::io::Result<Self> {
        let process = std::process::id();
        let started = started(process).ok_or_else(|| std::io::Error::other("/proc/self/stat cannot be read"))?;
        Ok(Self { namespace: fs::metadata("/proc/self/ns/pid")?.ino(), process, started })
    }

    /// A unique folder name.
    pub fn new_name(self) -> String {
        static MADE: AtomicU32 = AtomicU32::new(0);
        self.name(&MADE.fetch_add(1, Ordering::Relaxed).to_string())
    }

    /// The name of the group into which a runner moves itself, so that its own group can have child
    /// groups.
    pub fn home_name(self) -> String {
        self.name("home")
    }

    fn name(self, last: &str) -> String {
        let Self { namespace, process, started } = self;
        format!("{PREFIX}-{namespace}-{process}-{started}-{last}")
    }

    /// The owner of the folder with this name.
    pub fn of(name: &str) -> Option<Self> {
        let mut parts = name.split('-');
        if parts.next()? != PREFIX {
            return None;
        }
        let (namespace, process, started) = (parts.next()?, parts.next()?, parts.next()?);
        let (_, None) = (parts.next()?, parts.next()) else { return None };
        Some(Self {
            namespace: namespace.parse().ok()?,
            process: process.parse().ok()?,
            started: started.parse().ok()?,
        })
    }

    /// Whether it has certainly exited. Of a process in another namespace nothing is known.
    pub fn is_dead(self, me: Self) -> bool {
        self.namespace == me.namespace && started(self.process) != Some(self.started)
    }
}

/// Removes the groups that dead runners left in `folder`. A group with processes cannot be removed
/// and stays.
pub fn sweep(folder: &Path, me: OwnerProcess) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(OwnerProcess::of).is_some_and(|maker| maker.is_dead(me)) {
            let path = entry.path();
            let removed = remove_tree(&path);
            tracing::debug!(folder = %path.display(), is_removed = removed.is_ok(), "cleanup of a dead runner's control group");
        }
    }
}

/// Removes a group and its child groups. The control files in it are removed with the folder.
pub fn remove_tree(folder: &Path) -> std::io::Result<()> {
    for entry in fs::read_dir(folder)?.flatten() {
        if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            remove_tree(&entry.path())?;
        }
    }
    fs::remove_dir(folder)
}

/// When the process started, in clock ticks since boot. `None` if it does not exist or is a zombie.
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The name in parentheses can contain anything; the fields after it cannot.
    let mut fields = stat.rsplit_once(')')?.1.split_ascii_whitespace();
    let state = fields.next()?;
    let started = fields.nth(18)?.parse().ok()?;
    (state != "Z").then_some(started)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_identifies_its_owner() {
        let me = OwnerProcess::this_process().unwrap();
        assert_eq!(OwnerProcess::of(&me.new_name()), Some(me));
        assert_eq!(OwnerProcess::of(&me.home_name()), Some(me));
        assert_ne!(me.new_name(), me.new_name());
        for other in ["rcrt", "rcrt-1-2", "rcrt-1-2-3", "rcrt-1-2-x-0", "other-1-2-3-0", "rcrt-1-2-3-0-0", ""] {
            assert_eq!(OwnerProcess::of(other), None, "{other}");
        }
    }

    #[test]
    fn only_folders_of_dead_owners_are_removed() {
        let me = OwnerProcess::this_process().unwrap();
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let living = OwnerProcess { process: child.id(), started: started(child.id()).unwrap(), ..me };
        let reused = OwnerProcess { started: living.started - 1, ..living };
        let elsewhere = OwnerProcess { namespace: me.namespace + 1, ..reused };
        let folder = std::env::temp_dir().join(me.new_name());
        let all = [me, living, reused, elsewhere].map(|maker| folder.join(maker.name("7")));
        for path in &all {
            fs::create_dir_all(path.join("w1")).unwrap();
        }
        fs::create_dir(folder.join("not-ours")).unwrap();
        sweep(&folder, me);
        let left = all.each_ref().map(|path| path.exists());
        child.kill().unwrap();
        assert_eq!(left, [true, true, false, true]);
        // A zombie counts as dead.
        while !living.is_dead(me) {
            std::thread::yield_now();
        }
        child.wait().unwrap();
        sweep(&folder, me);
        assert!(!all[1].exists() && all[0].exists() && folder.join("not-ours").exists());
        fs::remove_dir_all(&folder).unwrap();
    }
}
