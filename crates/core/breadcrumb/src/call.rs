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

use crate::{AllowedTools, Breadcrumb, NewBreadcrumb, Profiles};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum CallState {
    Queued,
    Claimed,
    Running,
    Finished,
}

/// The state of a request's call.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Call {
    /// The request's record.
    pub request: Uuid,
    pub tool: String,
    pub state: CallState,
    /// Attempts that were started.
    pub attempt: u32,
    pub max_attempts: u32,
    pub cancel_requested: bool,
    /// The response record, once the call is finished.
    pub response: Option<Uuid>,
    pub queued_at: DateTime<Utc>,
}

/// What a runner sends to claim calls when it has free slots.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ClaimRequest {
    /// Identifies the runner process.
    pub runner_id: Uuid,
    /// The maximum number of calls, 1 to 100. Awaited calls come first, then the oldest.
    #[schema(minimum = 1, maximum = 100)]
    pub limit: u32,
    /// How long a lease lasts without a heartbeat, in milliseconds, 1,000 to 600,000.
    #[schema(minimum = 1000, maximum = 600_000)]
    pub lease_ms: u64,
    /// Tools for which this runner has no free slot now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub except_tools: Vec<String>,
    /// Tools of which this runner takes only awaited calls now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub awaited_only: Vec<String>,
    /// The only tools whose calls this runner takes. Empty: all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub only_tools: Vec<String>,
}

/// The right to run one call until the lease ends. A store refuses writes with an old fence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// The request's record.
    pub request: Uuid,
    /// The fencing token. It grows with each claim of this call.
    pub fence: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Claim {
    pub lease: Lease,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    pub request: Breadcrumb,
    /// The profiles of the request's author and of the calls that led to it, as of when the request
    /// was written.
    #[serde(default)]
    pub profiles: Profiles,
    /// The allow list of the request's author, as of the claim. Absent: every tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allowed_tools: Option<Box<AllowedTools>>,
    /// Milliseconds from the claim until the request's deadline, by the database's clock.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_left_ms: Option<u64>,
    pub queued_at: DateTime<Utc>,
    /// When this attempt became claimable. A retry is not claimable at once.
    #[serde(default)]
    pub ready_at: Option<DateTime<Utc>>,
}

/// How a new request's call is claimed as it is written.
#[derive(Debug, Clone, Copy)]
pub struct ClaimTerms {
    /// The id of the new request.
    pub id: Uuid,
    pub runner_id: Uuid,
    pub lease_ms: u64,
    /// If set, the call begins running with its first of so many attempts, otherwise claimed.
    pub max_attempts: Option<u32>,
}

/// The response that is written with a new request.
#[derive(Debug, Clone)]
pub struct AnsweredTerms {
    /// The id of the new request.
    pub id: Uuid,
    pub response: NewBreadcrumb,
    /// The agent of the runner that computed the response.
    pub responder: Uuid,
    /// The tool's number of attempts, of which the response is the first.
    pub max_attempts: u32,
}

/// The result of a heartbeat for one lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LeaseState {
    pub lease: Lease,
    pub status: LeaseStatus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum LeaseStatus {
    /// The lease was extended.
    Held,
    /// The lease was extended, and the call is to be cancelled: respond with `Cancelled`.
    CancelRequested,
    /// The runner no longer holds the lease: stop, and write nothing.
    Lost,
}

/// How a runner returns a call to the queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Release {
    /// The call was not started. The attempt does not count.
    Unstarted,
    /// The call failed, and a retry can succeed. It cannot be claimed again before this many
    /// milliseconds have passed. Refused with [`crate::StoreError::Invalid`] if no attempt is left.
    Retry { after_ms: u64 },
}

impl Claim {
    /// The claim of a call that was claimed as its request was written.
    pub fn at_write(request: Breadcrumb, profiles: Profiles, time_left_ms: Option<u64>) -> Self {
        let at = request.created_at;
        let lease = Lease::claimed_at_write(request.id, at);
        Self {
            lease,
            attempt: 1,
            request,
            profiles,
            allowed_tools: None,
            time_left_ms,
            queued_at: at,
            ready_at: Some(at),
        }
    }

    /// How long the call could have been claimed before it was, by the database's clock: the fence
    /// is the time of the claim in microseconds.
    pub fn waited(&self) -> Duration {
        let since = self.ready_at.unwrap_or(self.queued_at);
        Duration::from_micros(u64::try_from(self.lease.fence - since.timestamp_micros()).unwrap_or(0))
    }

    /// The same, if the request was written at this time.
    #[must_use]
    pub fn written_at(mut self, at: DateTime<Utc>) -> Self {
        (self.request.created_at, self.request.updated_at) = (at, at);
        let allowed_tools = self.allowed_tools;
        Self { allowed_tools, ..Self::at_write(self.request, self.profiles, self.time_left_ms) }
    }
}

impl Lease {
    /// The lease of a call that was claimed as its request was written, at this time. The store and
    /// the runner compute the same fence, so it need not be sent.
    pub fn claimed_at_write(request: Uuid, at: DateTime<Utc>) -> Self {
        Self { request, fence: at.timestamp_micros() }
    }
}

impl ClaimRequest {
    /// A claim of calls of all tools.
    pub fn new(runner_id: Uuid, limit: u32, lease_ms: u64) -> Self {
        Self { runner_id, limit, lease_ms, except_tools: Vec::new(), awaited_only: Vec::new(), only_tools: Vec::new() }
    }

    /// Whether queued calls of some tools are left out.
    pub fn is_partial(&self) -> bool {
        !self.except_tools.is_empty() || !self.awaited_only.is_empty()
    }

    pub fn lease(&self) -> Duration {
        Duration::from_millis(self.lease_ms)
    }

    /// The lists of tools, with the names of their fields.
    pub fn lists(&self) -> [(&'static str, &[String]); 3] {
        [("except_tools", &self.except_tools), ("awaited_only", &self.awaited_only), ("only_tools", &self.only_tools)]
    }

    pub fn check(&self) -> Result<(), crate::Violations> {
        let mut found = crate::Violations::default();
        if !(1..=100).contains(&self.limit) {
            found.add("limit", "must be from 1 to 100");
        }
        if !(1_000..=600_000).contains(&self.lease_ms) {
            found.add("lease_ms", "must be from 1000 to 600000");
        }
        for (field, tools) in self.lists() {
            if tools.len() > 1000 {
                found.add(field, "must have at most 1000 entries");
            }
        }
        found.into_result()
    }
}
