//! How deliveries are tried.

use std::time::Duration;

use breadcrumb::{DeliveryClaimRequest, Retention};
use executors::egress::{EgressOptions, PrivateHost};

/// What leaves room for the answer to an attempt that used all of its time to be written down.
const LEASE_BEYOND_ATTEMPT: Duration = Duration::from_secs(30);
/// More of an answer is not read.
const ANSWER_BYTES: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryOptions {
    /// Attempts under way at the same time, of all webhooks. Default 64.
    pub most: usize,
    /// Of one webhook, on all servers together. Default 1: a webhook's first attempts go in the order of the events.
    pub per_webhook: usize,
    /// Of one delivery; then it is given up. Default 16.
    pub max_attempts: u32,
    /// Before the second attempt, at most; doubled with each further one. Default 2 seconds.
    pub first_pause: Duration,
    /// Between two attempts, at most, also where a receiver asks for more. Default 1 hour.
    pub longest_pause: Duration,
    /// A webhook with so many failures in a row gets one attempt at a time, after growing pauses. Default 5.
    pub slow_from: u32,
    /// For the connection. Default 10 seconds.
    pub connect_timeout: Duration,
    /// For a whole attempt, the answer included. Default 20 seconds.
    pub timeout: Duration,
    /// A delivery that is older is given up. Default 24 hours. Dead ones are kept for 30 days, at most 10,000 of a tenant.
    pub retention: Retention,
    /// Between looks at the queue that nobody asked for. Default 1 second.
    pub poll: Duration,
}

impl Default for DeliveryOptions {
    fn default() -> Self {
        const HOUR: Duration = Duration::from_hours(1);
        Self {
            most: 64,
            per_webhook: 1,
            max_attempts: 16,
            first_pause: Duration::from_secs(2),
            longest_pause: HOUR,
            slow_from: 5,
            connect_timeout: Duration::from_secs(10),
            timeout: Duration::from_secs(20),
            retention: Retention { waiting: 24 * HOUR, dead: 30 * 24 * HOUR, most_dead: 10_000 },
            poll: Duration::from_secs(1),
        }
    }
}

impl DeliveryOptions {
    pub(crate) fn taking(&self, most: usize) -> DeliveryClaimRequest {
        DeliveryClaimRequest {
            most,
            per_webhook: self.per_webhook,
            slow_from: self.slow_from,
            lease: self.timeout + LEASE_BEYOND_ATTEMPT,
        }
    }

    /// For the gate that deliveries go through.
    pub fn egress(&self, allowed_private: Vec<PrivateHost>) -> EgressOptions {
        EgressOptions {
            allowed_private,
            max_response_bytes: ANSWER_BYTES,
            connect_timeout: self.connect_timeout,
            head_timeout: self.timeout,
            idle_timeout: self.timeout,
            total_timeout: self.timeout,
            ..EgressOptions::default()
        }
    }
}
