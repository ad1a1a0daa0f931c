//! Statistics of the deletion of expired records.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What the purging of a tenant's ended records came to, over all servers and restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HygieneStats {
    /// Runs that had something to take out, and those that somebody asked for.
    pub runs_completed: u64,
    pub total_breadcrumbs_purged: u64,
    /// The beginning and the end of the last run, and what it took out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<DateTime<Utc>>,
    pub last_run_duration_ms: u64,
    pub last_run_purged: u64,
    /// 1 when the last run did not come to its end.
    pub last_run_errors: u32,
    /// Records that have ended and wait to be taken out. Readers do not see them.
    pub waiting: u64,
}

/// What one run did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HygieneRun {
    /// Requests among the ended records that were tagged `health:check`.
    pub health_checks_purged: u64,
    /// The other ended records.
    pub expired_breadcrumbs_purged: u64,
    pub duration_ms: u64,
    /// False when more is left than one run may take: the next one goes on.
    pub is_complete: bool,
}

impl HygieneRun {
    pub fn total(&self) -> u64 {
        self.health_checks_purged + self.expired_breadcrumbs_purged
    }
}
