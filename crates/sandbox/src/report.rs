//! What stands between tool code and this machine, for `rcrt doctor`.

use serde::Serialize;

pub use crate::protocol::{Protection, ProtectionState};

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// `V8` or `QuickJS`.
    pub engine: String,
    pub engine_version: String,
    /// Fresh isolates come from a start-up snapshot.
    pub has_snapshot: bool,
    /// As the first worker told them; every worker of this machine has the same.
    pub protections: Vec<Protection>,
}
