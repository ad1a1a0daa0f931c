//! A control group for each process that is started for a call, including its descendants. Versions
//! 1 and 2 are supported, in the group of this process. Groups are optional: they are used where
//! this process can create them. The functions here block for short times, as the kernel's files
//! do.

mod files;
mod find;
mod group;
mod hierarchy;
mod owner;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use find::Controller;
pub use group::Group;

use parking_lot::Mutex;
use serde::Serialize;

use hierarchy::Hierarchy;
use owner::OwnerProcess;

/// How long [`Cgroups::close`] waits for groups whose processes are still exiting.
const LEAVING: Duration = Duration::from_secs(2);
const LEAVING_AT_ONCE: Duration = Duration::from_millis(100);
const AGAIN: Duration = Duration::from_millis(2);

/// A control group in which each process of a call gets a child group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CgroupLocation {
    /// 1 or 2.
    pub version: u8,
    /// `memory`, `cpu`, `pids`.
    pub controllers: Vec<&'static str>,
    pub folder: PathBuf,
}

/// The folder of this process in each hierarchy, with a child group for each worker process.
pub struct Cgroups {
    hierarchies: Vec<Hierarchy>,
    leaving: Arc<Leaving>,
}

/// Groups that could not be removed yet.
#[derive(Default)]
struct Leaving(Mutex<Vec<PathBuf>>);

impl Leaving {
    /// Removes the group now, or later if a process in it is still exiting.
    fn add(&self, folder: PathBuf) {
        if let Err(error) = std::fs::remove_dir(&folder)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            self.0.lock().push(folder);
        }
    }

    /// Tries again to remove the groups; true when none is left.
    fn retry(&self) -> bool {
        let mut folders = self.0.lock();
        folders.retain(|folder| std::fs::remove_dir(folder).is_err() && folder.exists());
        folders.is_empty()
    }
}

/// For each controller: that it is in use, or why not.
pub type Findings = BTreeMap<Controller, Result<(), String>>;

impl Cgroups {
    /// No groups, because they are disabled.
    pub fn none() -> (Self, Findings) {
        let reason = || Err("disabled".to_owned());
        let findings = Controller::ALL.into_iter().map(|controller| (controller, reason())).collect();
        (Self { hierarchies: Vec::new(), leaving: Arc::default() }, findings)
    }

    /// Removes the folders of dead runners and creates this sandbox's folders wherever it can. The
    /// findings say what is not available.
    pub fn open() -> (Self, Findings) {
        let read = |path: &str| std::fs::read_to_string(path).map_err(|error| format!("{path}: {error}"));
        let known = read("/proc/self/cgroup").and_then(|groups| Ok((groups, read("/proc/self/mountinfo")?)));
        let known =
            known.and_then(|known| Ok((known, OwnerProcess::this_process().map_err(|error| error.to_string())?)));
        match known {
            Ok(((groups, mounts), me)) => Self::open_at(find::memberships(&groups, &mounts), me),
            Err(reason) => {
                let findings =
                    Controller::ALL.into_iter().map(|controller| (controller, Err(reason.clone()))).collect();
                (Self { hierarchies: Vec::new(), leaving: Arc::default() }, findings)
            }
        }
    }

    fn open_at(
        memberships: BTreeMap<Controller, Result<find::CgroupMembership, String>>,
        me: OwnerProcess,
    ) -> (Self, Findings) {
        let mut findings = Findings::new();
        let mut wanted: Vec<(find::CgroupMembership, Vec<Controller>)> = Vec::new();
        for (controller, membership) in memberships {
            match membership {
                // Controllers that are mounted together share their groups.
                Ok(membership) => match wanted.iter_mut().find(|(other, _)| *other == membership) {
                    Some((_, controllers)) => controllers.push(controller),
                    None => wanted.push((membership, vec![controller])),
                },
                Err(reason) => {
                    findings.insert(controller, Err(reason));
                }
            }
        }
        let name = me.new_name();
        let mut hierarchies = Vec::new();
        for (membership, controllers) in wanted {
            owner::sweep(&membership.folder, me);
            let found = Hierarchy::open(&membership, &controllers, &name, me);
            for controller in controllers {
                let finding = match &found {
                    Ok(hierarchy) if hierarchy.has(controller) => Ok(()),
                    Ok(_) => Err(format!("the group {} does not have this controller", membership.folder.display())),
                    Err(reason) => Err(reason.clone()),
                };
                findings.insert(controller, finding);
            }
            hierarchies.extend(found);
        }
        (Self { hierarchies, leaving: Arc::default() }, findings)
    }

    /// Where this sandbox creates its groups.
    pub fn locations(&self) -> Vec<CgroupLocation> {
        self.hierarchies.iter().map(Hierarchy::location).collect()
    }

    /// Creates a group and moves the process into it.
    pub fn admit(&self, process: u32) -> std::io::Result<Group> {
        self.leaving.retry();
        Group::make(&self.hierarchies, process, self.leaving.clone())
    }

    /// Removes groups whose processes were still exiting.
    pub fn remove_leftovers(&self) {
        self.leaving.retry();
    }

    /// Removes this sandbox's folders, after the processes in them have exited.
    pub fn close(&self) {
        self.remove_within(LEAVING);
    }

    fn remove_within(&self, most: Duration) {
        let until = Instant::now() + most;
        while !self.leaving.retry() && Instant::now() < until {
            std::thread::sleep(AGAIN);
        }
        for hierarchy in &self.hierarchies {
            hierarchy.remove();
        }
    }
}

impl Drop for Cgroups {
    fn drop(&mut self) {
        // Killed processes exit quickly. A later runner removes what takes longer.
        self.remove_within(LEAVING_AT_ONCE);
    }
}
