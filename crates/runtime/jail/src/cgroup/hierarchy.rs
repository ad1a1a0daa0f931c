//! The folder of this sandbox in one cgroup hierarchy. The workers' groups are its children.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::CgroupLocation;
use super::files::{Files, with_path};
use super::find::{CgroupMembership, Controller, Version};
use super::owner::OwnerProcess;

/// The CPU weight of all workers together: half an ordinary process for each processor. They yield
/// to the runner and the database.
const WEIGHT: f64 = 0.5;
/// The memory limit of a worker until its first call sets its own, in bytes.
pub(super) const MEMORY_AT_FIRST: u64 = 2 * 1024 * 1024 * 1024;
/// Limit on threads and processes of one worker: the engine's own, and enough for a machine with
/// many processors.
const PROCESSES: u32 = 64;

pub struct Hierarchy {
    version: Version,
    controllers: Vec<Controller>,
    folder: PathBuf,
}

impl Hierarchy {
    /// Creates the sandbox's folder, and creates and removes a trial group to check that its limits
    /// can be set.
    pub fn open(
        membership: &CgroupMembership,
        controllers: &[Controller],
        name: &str,
        me: OwnerProcess,
    ) -> Result<Self, String> {
        let (outer, controllers) = match membership.version {
            Version::V1 => (membership.folder.clone(), controllers.to_vec()),
            Version::V2 => delegated(&membership.folder, controllers, me)?,
        };
        let folder = outer.join(name);
        fs::create_dir(&folder).map_err(|error| not_ours(&error, &folder))?;
        let hierarchy = Self { version: membership.version, controllers, folder };
        let opened = hierarchy.prepare().and_then(|()| {
            let trial = hierarchy.group("trial")?;
            fs::remove_dir(&trial.folder).map_err(|error| with_path(&error, &trial.folder))
        });
        match opened {
            Ok(()) => Ok(hierarchy),
            Err(error) => {
                hierarchy.remove();
                Err(not_ours(&error, &hierarchy.folder))
            }
        }
    }

    /// The location of this sandbox's folder.
    pub fn location(&self) -> CgroupLocation {
        CgroupLocation {
            version: match self.version {
                Version::V1 => 1,
                Version::V2 => 2,
            },
            controllers: self.controllers.iter().map(|controller| controller.name()).collect(),
            folder: self.folder.parent().unwrap_or(&self.folder).to_owned(),
        }
    }

    pub fn has(&self, controller: Controller) -> bool {
        self.controllers.contains(&controller)
    }

    fn prepare(&self) -> io::Result<()> {
        let own = Files { version: self.version, folder: self.folder.clone() };
        if self.has(Controller::Cpu) {
            let processors = std::thread::available_parallelism().map_or(1.0, |n| n.get() as f64);
            own.set_cpu_weight(WEIGHT * processors)?;
        }
        if self.version == Version::V2 {
            own.write("cgroup.subtree_control", &enabling(&self.controllers))?;
        }
        Ok(())
    }

    /// Creates a group and sets every limit.
    pub fn group(&self, name: &str) -> io::Result<Files> {
        let files = Files { version: self.version, folder: self.folder.join(name) };
        fs::create_dir(&files.folder).map_err(|error| with_path(&error, &files.folder))?;
        let bounded = self.bound(&files);
        if bounded.is_err() {
            let _ = fs::remove_dir(&files.folder);
        }
        bounded.map(|()| files)
    }

    fn bound(&self, files: &Files) -> io::Result<()> {
        for controller in &self.controllers {
            match controller {
                Controller::Memory => {
                    files.forbid_swap()?;
                    files.set_memory(MEMORY_AT_FIRST)?;
                }
                Controller::Cpu => files.set_cpu_percent(100)?,
                Controller::Processes => files.set_processes(PROCESSES)?,
            }
        }
        Ok(())
    }

    pub fn remove(&self) {
        if let Err(error) = fs::remove_dir(&self.folder)
            && error.kind() != io::ErrorKind::NotFound
        {
            tracing::debug!(folder = %self.folder.display(), %error, "cannot remove a control group; a later runner removes it");
        }
    }
}

/// In version 2 a group has either processes or child groups with controllers. So this process
/// moves into its own child group, if its group has no other processes.
fn delegated(here: &Path, wanted: &[Controller], me: OwnerProcess) -> Result<(PathBuf, Vec<Controller>), String> {
    let home = me.home_name();
    // An earlier sandbox of this process has moved it already.
    let outer = match here.file_name() {
        Some(name) if name == home.as_str() => here.parent().unwrap_or(here),
        _ => here,
    };
    let files = Files { version: Version::V2, folder: outer.to_owned() };
    let offered = files.controllers().map_err(|error| not_ours(&error, outer))?;
    let controllers: Vec<Controller> =
        wanted.iter().copied().filter(|wanted| offered.iter().any(|offered| offered == wanted.name())).collect();
    if controllers.is_empty() {
        return Err(format!("no controllers are delegated to the group {}", outer.display()));
    }
    let is_enabled = files
        .controllers_below()
        .is_ok_and(|below| controllers.iter().all(|controller| below.iter().any(|below| below == controller.name())));
    if !is_enabled && files.write("cgroup.subtree_control", &enabling(&controllers)).is_err() {
        let processes = files.processes().map_err(|error| not_ours(&error, outer))?;
        if !processes.iter().all(|process| is_ours(*process)) {
            return Err(format!(
                "the group {} has other processes too; start this program in its own group (systemd: Delegate=yes)",
                outer.display()
            ));
        }
        let home = Files { version: Version::V2, folder: outer.join(home) };
        fs::create_dir(&home.folder).map_err(|error| not_ours(&error, &home.folder))?;
        let moved = processes.iter().try_for_each(|process| home.admit(*process));
        moved.map_err(|error| not_ours(&error, &home.folder))?;
        files.write("cgroup.subtree_control", &enabling(&controllers)).map_err(|error| not_ours(&error, outer))?;
    }
    Ok((outer.to_owned(), controllers))
}

fn enabling(controllers: &[Controller]) -> String {
    controllers.iter().map(|controller| format!("+{}", controller.name())).collect::<Vec<_>>().join(" ")
}

/// Whether a process is this one or its descendant.
fn is_ours(process: u32) -> bool {
    let me = std::process::id();
    let mut at = Some(process);
    while let Some(process) = at {
        if process == me {
            return true;
        }
        at = parent(process).filter(|parent| *parent > 0);
    }
    false
}

fn parent(process: u32) -> Option<u32> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_ascii_whitespace().nth(1)?.parse().ok()
}

fn not_ours(error: &io::Error, path: &Path) -> String {
    let text = error.to_string();
    let path = path.display().to_string();
    let text = if text.contains(&path) { text } else { format!("{path}: {text}") };
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            format!("this process cannot create control groups here: {text}")
        }
        _ => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("rcrt-hierarchy-{}-{name}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn v2(name: &str, controllers: &str, below: &str, processes: &str) -> (PathBuf, OwnerProcess) {
        let folder = folder(name);
        fs::write(folder.join("cgroup.controllers"), controllers).unwrap();
        fs::write(folder.join("cgroup.subtree_control"), below).unwrap();
        fs::write(folder.join("cgroup.procs"), processes).unwrap();
        (folder, OwnerProcess::this_process().unwrap())
    }

    #[test]
    fn version_2_enables_missing_controllers() {
        let (folder, me) = v2("enabled", "cpu memory pids\n", "cpu memory pids\n", "1\n");
        let found = delegated(&folder, &Controller::ALL, me).unwrap();
        assert_eq!(found, (folder.clone(), Controller::ALL.to_vec()));
        fs::remove_dir_all(folder).unwrap();

        let (folder, me) = v2("part", "cpuset cpu io\n", "\n", "");
        let found = delegated(&folder, &Controller::ALL, me).unwrap();
        assert_eq!(found, (folder.clone(), vec![Controller::Cpu]));
        assert_eq!(fs::read_to_string(folder.join("cgroup.subtree_control")).unwrap(), "+cpu");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn version_2_reports_missing_controllers_and_other_processes() {
        let (folder, me) = v2("none", "cpuset\n", "", "");
        let reason = delegated(&folder, &Controller::ALL, me).unwrap_err();
        assert!(reason.contains("no controllers"), "{reason}");
        fs::remove_dir_all(folder).unwrap();

        // A file that cannot be written simulates the kernel's refusal while the group has
        // processes.
        let (folder, me) = v2("others", "memory\n", "", &format!("1\n{}\n", std::process::id()));
        fs::remove_file(folder.join("cgroup.subtree_control")).unwrap();
        fs::create_dir(folder.join("cgroup.subtree_control")).unwrap();
        let reason = delegated(&folder, &Controller::ALL, me).unwrap_err();
        assert!(reason.contains("Delegate=yes"), "{reason}");
        assert!(!folder.join(me.home_name()).exists());
        // It moves if it is the group's only process.
        fs::write(folder.join("cgroup.procs"), std::process::id().to_string()).unwrap();
        let _ = delegated(&folder, &Controller::ALL, me).unwrap_err();
        let moved = fs::read_to_string(folder.join(me.home_name()).join("cgroup.procs")).unwrap();
        assert_eq!(moved, std::process::id().to_string());
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_second_sandbox_uses_the_same_parent_group() {
        let (folder, me) = v2("second", "memory\n", "memory\n", "");
        let home = folder.join(me.home_name());
        fs::create_dir(&home).unwrap();
        assert_eq!(delegated(&home, &Controller::ALL, me).unwrap().0, folder);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_new_group_has_every_limit() {
        let folder = folder("bounds");
        let membership = CgroupMembership { version: Version::V1, folder: folder.clone() };
        let hierarchy =
            Hierarchy { version: Version::V1, controllers: Controller::ALL.to_vec(), folder: membership.folder };
        hierarchy.prepare().unwrap();
        let files = hierarchy.group("w1").unwrap();
        for (file, value) in
            [("pids.max", "64"), ("cpu.cfs_quota_us", "100000"), ("memory.limit_in_bytes", "2147483648")]
        {
            assert_eq!(fs::read_to_string(files.folder.join(file)).unwrap(), value, "{file}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_permission_error_says_that_groups_cannot_be_created() {
        let error = io::Error::from(io::ErrorKind::PermissionDenied);
        let reason = not_ours(&error, Path::new("/sys/fs/cgroup/x"));
        assert!(reason.starts_with("this process cannot create control groups here: /sys/fs/cgroup/x"), "{reason}");
        assert!(is_ours(std::process::id()) && !is_ours(1));
    }
}
