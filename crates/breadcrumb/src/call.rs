//! Calls in the queue: states, claims and leases.
//!
//! States: `queued` → `claimed` → `running` → `finished`. A call that only computes finishes
//! without `running`, or while its request is written. A claim is a lease with a fencing token, by
//! the database's clock. A lease that ends while `claimed` puts the call back to `queued`. One that
//! ends while `running` is queued again only if attempts are left; otherwise the store responds to
//! the request.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Breadcrumb, Profiles};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    Queued,
    Claimed,
    Running,
    Finished,
}

/// Where a request stands.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Call {
    /// The request's record.
    pub request: Uuid,
    pub tool: String,
    pub state: CallState,
    /// How many attempts were started.
    pub attempt: u32,
    pub max_attempts: u32,
    pub cancel_requested: bool,
    /// The response's record, once finished.
    pub response: Option<Uuid>,
    pub queued_at: DateTime<Utc>,
}

/// What a runner asks for when it has room.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// This runner process.
    pub runner_id: Uuid,
    /// How many calls at most, 1 to 100. The oldest come first.
    #[schema(minimum = 1, maximum = 100)]
    pub limit: u32,
    /// How long the lease lasts without a heartbeat, in milliseconds, 1,000 to 600,000.
    #[schema(minimum = 1000, maximum = 600_000)]
    pub lease_ms: u64,
    /// Tools that this runner has no room for now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except_tools: Vec<String>,
}

/// The right to run one call, until the lease ends. A store refuses whoever shows an old fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// The request's record.
    pub request: Uuid,
    /// Grows with every claim of this call.
    pub fence: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Claim {
    pub lease: Lease,
    /// Which attempt this would be, from 1.
    pub attempt: u32,
    pub request: Breadcrumb,
    /// Of whoever wrote the request, and of the calls that led to it, as they stood when it was written.
    #[serde(default)]
    pub profiles: Profiles,
    /// Milliseconds until the request's deadline, at the moment of the claim and by the database's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left_ms: Option<u64>,
    pub queued_at: DateTime<Utc>,
    /// Since when this attempt could have been claimed: a retry waits for its time.
    #[serde(default)]
    pub ready_at: Option<DateTime<Utc>>,
}

/// What a heartbeat learns about one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HeldLease {
    pub lease: Lease,
    pub status: LeaseStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseStatus {
    /// Extended.
    Held,
    /// Extended, and somebody wants the call to stop: answer it `Cancelled`.
    CancelRequested,
    /// Not ours any more: stop, and write nothing.
    Lost,
}

/// How a runner gives a call back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// It was not started; the attempt does not count.
    Unstarted,
    /// It failed in a way that a retry may mend; not to be claimed again before this many milliseconds have passed.
    /// Refused with [`crate::StoreError::Invalid`] when no attempt is left.
    Retry { after_ms: u64 },
}

impl Lease {
    /// Of a call that a runner took on as its request was written, at this moment: the store and the runner reckon the
    /// fence alike, so that it need not be told.
    pub fn claimed_at_write(request: Uuid, at: DateTime<Utc>) -> Self {
        Self { request, fence: at.timestamp_micros() }
    }
}

impl ClaimRequest {
    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    pub fn check(&self) -> Result<(), crate::Violations> {
        let mut found = crate::Violations::default();
        if !(1..=100).contains(&self.limit) {
            found.add("limit", "must be from 1 to 100");
        }
        if !(1_000..=600_000).contains(&self.lease_ms) {
            found.add("lease_ms", "must be from 1000 to 600000");
        }
        if self.except_tools.len() > 1000 {
            found.add("except_tools", "has more than 1000 entries");
        }
        found.into_result()
    }
}
