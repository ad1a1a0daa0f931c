//! The time by which a request must have its response.

use std::time::Duration;

use rcrt_breadcrumb::{Limits, ToolFailure, ToolRequest};
use tokio::time::{Instant, sleep_until};

#[derive(Debug, Clone, Copy)]
pub(crate) struct Deadline {
    allowed_ms: u64,
    pub at: Instant,
}

impl Deadline {
    /// Call it as soon as the call is claimed. The remaining time comes from the store, because
    /// clocks differ.
    pub fn after(time_left_ms: Option<u64>, request: &ToolRequest) -> Option<Self> {
        let left = Duration::from_millis(time_left_ms?);
        Some(Self { allowed_ms: request.deadline_ms.unwrap_or_default(), at: Instant::now() + left })
    }

    /// Whether there is still time after this pause.
    pub fn outlasts(&self, pause: Duration) -> bool {
        Instant::now() + pause < self.at
    }

    /// Reduces the time limit to the time that is left.
    pub fn shorten(&self, limits: &mut Limits) {
        let left = self.at.saturating_duration_since(Instant::now()).as_millis().max(1) as u64;
        limits.timeout_ms = limits.timeout_ms.min(left);
    }

    pub fn failure(&self, when: &str) -> ToolFailure {
        ToolFailure::deadline_passed(self.allowed_ms, when)
    }

    /// Never returns without a deadline.
    pub async fn passed(deadline: Option<&Self>) {
        match deadline {
            Some(deadline) => sleep_until(deadline.at).await,
            None => std::future::pending().await,
        }
    }
}
