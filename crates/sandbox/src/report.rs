//! The protections between tool code and this machine, for `rcrt doctor`.

use serde::Serialize;

use crate::Level;

pub use crate::protocol::{Protection, ProtectionState};
pub use jail::cgroup::CgroupLocation;

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// Of V8.
    pub engine_version: String,
    /// Fresh isolates come from a start-up snapshot.
    pub has_snapshot: bool,
    /// What the operator insists on.
    pub level: Level,
    /// Limits that the engine does not keep by itself: the process keeps them.
    pub left_to_process: Vec<String>,
    /// As the first worker reported them. Each later one is checked by its own report, and one that
    /// lacks some of these is logged.
    pub protections: Vec<Protection>,
    /// The control groups in which the workers' own are made; none where there are none to be had.
    pub cgroups: Vec<CgroupLocation>,
}

impl Report {
    /// What [`Level::Strict`] calls for and this machine does not give: its name, and why.
    pub fn missing(&self) -> Vec<(String, String)> {
        crate::level::missing(&self.protections)
    }
}
