//! Who is notified of commits.

use uuid::Uuid;

/// What a committed transaction changed in its tenant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Commit {
    pub(crate) owner_id: Uuid,
    /// Whether it wrote events. Without events, other events may have waited for it to end.
    pub(crate) has_events: bool,
    /// The change of records and bytes that no quota was reserved for.
    pub(crate) records: i64,
    pub(crate) bytes: i64,
}

/// Subscribes to commits when the store opens.
pub(crate) trait CommitListener: Send + Sync {
    /// Called after each commit, before the writer continues. Must not block.
    fn committed(&self, commit: &Commit);
}
