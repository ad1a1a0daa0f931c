//! The protection levels of a sandbox, and the protections that each requires. Their names are
//! stable: operators read them in `rcrt doctor`, and
//! [`Unprotected`](crate::SandboxError::Unprotected) names them.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

use crate::{Protection, ProtectionState};

/// Which protections must be in force before tool code runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Level {
    /// Every required protection is in force, or the sandbox does not start.
    #[default]
    Strict,
    /// Whatever this machine supports. An operator must request it by name.
    Minimal,
}

impl Level {
    const ALL: [Self; 2] = [Self::Strict, Self::Minimal];

    fn as_str(self) -> &'static str {
        match self {
            Self::Strict => "strict",
            Self::Minimal => "minimal",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(self.as_str())
    }
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a valid sandbox level; expected `strict` or `minimal`")]
pub struct UnknownLevel(String);

impl FromStr for Level {
    type Err = UnknownLevel;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL.into_iter().find(|level| level.as_str() == text).ok_or_else(|| UnknownLevel(text.into()))
    }
}

/// The names under which protections are reported.
pub mod names {
    // Applied by the worker to itself.
    pub const DESCRIPTORS: &str = "no inherited descriptors";
    pub const PRIVILEGES: &str = "no new privileges";
    pub const CAPABILITIES: &str = "no capabilities";
    pub const ORDINARY_USER: &str = "ordinary user";
    pub const USER_NAMESPACE: &str = "user namespace";
    pub const MOUNT_NAMESPACE: &str = "mount namespace";
    pub const PROCESS_NAMESPACE: &str = "process namespace";
    pub const IPC_NAMESPACE: &str = "ipc namespace";
    pub const HOST_NAME_NAMESPACE: &str = "host name namespace";
    pub const NETWORK_NAMESPACE: &str = "network namespace";
    pub const CGROUP_NAMESPACE: &str = "cgroup namespace";
    pub const EMPTY_ROOT: &str = "empty root";
    pub const LANDLOCK: &str = "landlock";
    pub const SECCOMP: &str = "seccomp";
    pub const RESOURCE_LIMITS: &str = "resource limits";
    pub const NO_CORE_DUMPS: &str = "no core dumps";
    pub const PARENT_DEATH: &str = "parent death signal";
    pub const LOW_PRIORITY: &str = "low priority";
    /// All that a worker applies to itself.
    pub const OF_THE_WORKER: [&str; 18] = [
        DESCRIPTORS,
        PRIVILEGES,
        CAPABILITIES,
        ORDINARY_USER,
        USER_NAMESPACE,
        MOUNT_NAMESPACE,
        PROCESS_NAMESPACE,
        IPC_NAMESPACE,
        HOST_NAME_NAMESPACE,
        NETWORK_NAMESPACE,
        CGROUP_NAMESPACE,
        EMPTY_ROOT,
        LANDLOCK,
        SECCOMP,
        RESOURCE_LIMITS,
        NO_CORE_DUMPS,
        PARENT_DEATH,
        LOW_PRIORITY,
    ];

    // Applied by the parent to each worker.
    /// RLIMIT_DATA, which the parent sets for each call.
    pub const MEMORY_CEILING: &str = "memory ceiling";
    /// The CPU clock of the worker process, for `limits.cpu_ms`.
    pub const PROCESSOR_CLOCK: &str = "processor clock";
    pub const MEMORY_CGROUP: &str = "memory cgroup";
    pub const CPU_CGROUP: &str = "cpu cgroup";
    pub const PROCESSES_CGROUP: &str = "processes cgroup";
}

/// What strict requires. Any of the protections next to it is enough.
pub const REQUIRED: [(&str, &[&str]); 10] = [
    ("no inherited descriptors", &[names::DESCRIPTORS]),
    ("no new privileges", &[names::PRIVILEGES]),
    ("no capabilities", &[names::CAPABILITIES]),
    ("no core dumps", &[names::NO_CORE_DUMPS]),
    ("seccomp", &[names::SECCOMP]),
    ("no files", &[names::EMPTY_ROOT, names::LANDLOCK]),
    ("no network", &[names::NETWORK_NAMESPACE, names::SECCOMP]),
    ("resource limits", &[names::RESOURCE_LIMITS]),
    ("parent death signal", &[names::PARENT_DEATH]),
    ("a memory bound", &[names::MEMORY_CEILING, names::MEMORY_CGROUP]),
];

/// Required protections that are not in force: the name, and why. A protection that was not
/// reported is not in force.
pub fn missing(protections: &[Protection]) -> Vec<(String, String)> {
    REQUIRED
        .into_iter()
        .filter_map(|(what, by)| {
            let reasons: Result<Vec<String>, ()> = by
                .iter()
                .map(|name| match protections.iter().find(|protection| protection.name == *name).map(|p| &p.state) {
                    Some(ProtectionState::Applied) => Err(()),
                    Some(ProtectionState::Unavailable(reason)) => Ok(format!("{name}: {reason}")),
                    None => Ok(format!("{name}: not reported")),
                })
                .collect();
            reasons.ok().map(|reasons| (what.to_owned(), reasons.join("; ")))
        })
        .collect()
}

/// The names of those that were in force and are not any more, with the reason.
pub(crate) fn lost(first: &[Protection], now: &[Protection]) -> Vec<String> {
    let applied = first.iter().filter(|protection| protection.state == ProtectionState::Applied);
    applied
        .filter_map(|before| match now.iter().find(|other| other.name == before.name).map(|other| &other.state) {
            Some(ProtectionState::Applied) => None,
            Some(ProtectionState::Unavailable(reason)) => Some(format!("{}: {reason}", before.name)),
            None => Some(format!("{}: not reported", before.name)),
        })
        .collect()
}
