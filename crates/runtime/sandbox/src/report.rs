//! The protections between tool code and this machine, for `rcrt doctor`.

use serde::Serialize;

use crate::Level;

pub use crate::protocol::{Protection, ProtectionState};
pub use rcrt_jail::cgroup::CgroupLocation;

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The version of V8.
    pub engine_version: String,
    /// Fresh isolates come from a start-up snapshot.
    pub has_snapshot: bool,
    /// The level that the operator chose.
    pub level: Level,
    /// Limits that the engine does not enforce itself: the process does.
    pub left_to_process: Vec<String>,
    /// As the first worker reported them. Each later worker is checked by its own report, and one
    /// that lacks some of these is logged.
    pub protections: Vec<Protection>,
    /// The control groups in which the workers' groups are created; empty if none are available.
    pub cgroups: Vec<CgroupLocation>,
}

impl Report {
    /// What [`Level::Strict`] requires and this machine does not support: its name, and why.
    pub fn missing(&self) -> Vec<(String, String)> {
        crate::level::missing(&self.protections)
    }
}
