//! Quotas: how much a tenant can store.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

/// The quotas of one tenant. Absent or `null`: the operator's default for all tenants. 0: no quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TenantQuotas {
    /// The most records.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub max_records: Option<u64>,
    /// The most bytes of contexts: of the records, and of old versions as stored.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub max_bytes: Option<u64>,
    /// The most tools.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub max_tools: Option<u64>,
    /// The most bytes of the contexts of tools, without old versions.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub max_tool_bytes: Option<u64>,
    /// The most tools that an agent creates in an hour, unless it is a curator.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub max_tool_creations: Option<u64>,
    /// The most concurrent requests to one server, including event streams and without those of
    /// runners.
    #[serde(default)]
    #[schema(maximum = 9_007_199_254_740_991_u64)]
    pub max_requests: Option<u64>,
}

impl TenantQuotas {
    /// The largest quota: the largest integer that every JSON reader can represent.
    pub const MOST: u64 = (1 << 53) - 1;

    /// The quotas in force, if these are the tenant's own. `None`: no quota.
    #[must_use]
    pub fn or(self, defaults: Self) -> Self {
        let of = |own: Option<u64>, default: Option<u64>| own.or(default).filter(|most| *most > 0);
        Self {
            max_records: of(self.max_records, defaults.max_records),
            max_bytes: of(self.max_bytes, defaults.max_bytes),
            max_tools: of(self.max_tools, defaults.max_tools),
            max_tool_bytes: of(self.max_tool_bytes, defaults.max_tool_bytes),
            max_tool_creations: of(self.max_tool_creations, defaults.max_tool_creations),
            max_requests: of(self.max_requests, defaults.max_requests),
        }
    }

    /// Whether all records of the tenant must be counted.
    #[must_use]
    pub fn bounds_records(self) -> bool {
        self.max_records.is_some() || self.max_bytes.is_some()
    }

    /// Each quota with the name of its field.
    #[must_use]
    pub fn fields(self) -> [(&'static str, Option<u64>); 6] {
        [
            ("max_records", self.max_records),
            ("max_bytes", self.max_bytes),
            ("max_tools", self.max_tools),
            ("max_tool_bytes", self.max_tool_bytes),
            ("max_tool_creations", self.max_tool_creations),
            ("max_requests", self.max_requests),
        ]
    }
}

/// How much a tenant stores, and its quotas.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantUsage {
    pub records: u64,
    /// Bytes of contexts: of the records, and of old versions as stored. Those of a deleted record
    /// count until its events are deleted.
    pub bytes: u64,
    /// When both were counted. Later writes of this server are added.
    pub counted_at: DateTime<Utc>,
    /// The tenant's own quotas, as set.
    pub own: TenantQuotas,
    /// The quotas in force; `null`: no quota.
    pub in_force: TenantQuotas,
}

/// The last count of a tenant that has a quota.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TenantCount {
    pub id: Uuid,
    pub records: u64,
    pub bytes: u64,
}
