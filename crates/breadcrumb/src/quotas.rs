//! Quotas: how much a tenant can store.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// The bounds of one tenant. Absent or `null`: what the operator gives to every tenant; 0: no bound.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantQuotas {
    /// Records.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub max_records: Option<u64>,
    /// Bytes of contexts: of the records, and of old versions as they are stored.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub max_bytes: Option<u64>,
}

impl TenantQuotas {
    /// The largest bound: what every JSON reader can hold.
    pub const MOST: u64 = (1 << 53) - 1;

    /// The bounds in force, where these are the tenant's own. `None`: no bound.
    #[must_use]
    pub fn or(self, defaults: Self) -> Self {
        let of = |own: Option<u64>, default: Option<u64>| own.or(default).filter(|most| *most > 0);
        Self {
            max_records: of(self.max_records, defaults.max_records),
            max_bytes: of(self.max_bytes, defaults.max_bytes),
        }
    }
}

/// What a tenant keeps, and how much it may.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantUsage {
    pub records: u64,
    /// Of contexts: of the records, and of old versions as they are stored. Those of a deleted record count until its
    /// events are forgotten.
    pub bytes: u64,
    /// Both were counted then, and what this server wrote since is added.
    pub counted_at: DateTime<Utc>,
    /// The tenant's own bounds, as they were set.
    pub own: TenantQuotas,
    /// The bounds in force; `null`: none.
    pub in_force: TenantQuotas,
}

/// What a tenant with a quota kept when it was counted last.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantCount {
    pub id: Uuid,
    pub records: u64,
    pub bytes: u64,
}
