//! Statistics of the deletion of expired records.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// Totals of the deletion of a tenant's expired records, over all servers and restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HygieneStats {
    /// Runs that deleted something, and runs that were requested.
    pub runs_completed: u64,
    pub total_breadcrumbs_purged: u64,
    /// When the last run started and ended, and what it deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run_at: Option<DateTime<Utc>>,
    pub last_run_duration_ms: u64,
    pub last_run_purged: u64,
    /// 1 if the last run failed.
    pub last_run_errors: u32,
    /// Expired records that are not deleted yet. Readers do not see them.
    pub waiting: u64,
}

/// The result of one run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HygieneRun {
    /// Expired requests that were tagged `health:check`.
    pub health_checks_purged: u64,
    /// Other expired records.
    pub expired_breadcrumbs_purged: u64,
    pub duration_ms: u64,
    /// False if one run could not delete everything. The next run continues.
    pub is_complete: bool,
}

impl HygieneRun {
    pub fn total(&self) -> u64 {
        self.health_checks_purged + self.expired_breadcrumbs_purged
    }
}
