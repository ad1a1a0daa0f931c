//! The options of deliveries.

use std::time::Duration;

use rcrt_breadcrumb::{DeliveryClaimRequest, Retention};
use rcrt_egress::{EgressOptions, PrivateHost};

/// Time to write the result of an attempt that used its whole timeout.
const LEASE_BEYOND_ATTEMPT: Duration = Duration::from_secs(30);
/// The most bytes that are read of a response.
const ANSWER_BYTES: u64 = 64 * 1024;

#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryOptions {
    /// Concurrent attempts of all webhooks. Default 64.
    pub most: usize,
    /// Concurrent attempts of one webhook, on all servers together. Default 1: the first attempts
    /// of a webhook's deliveries are in the order of the events.
    pub per_webhook: usize,
    /// Attempts of one delivery, before it becomes a dead letter. Default 16.
    pub max_attempts: u32,
    /// The maximum pause before the second attempt; it doubles with each further attempt. Default 2
    /// seconds.
    pub first_pause: Duration,
    /// The maximum pause between two attempts, even if a receiver asks for more. Default 1 hour.
    pub longest_pause: Duration,
    /// A webhook with this many consecutive failures gets one attempt at a time, with growing
    /// pauses. Default 5.
    pub slow_from: u32,
    /// The timeout of a connection. Default 10 seconds.
    pub connect_timeout: Duration,
    /// The timeout of a whole attempt, including the response. Default 20 seconds.
    pub timeout: Duration,
    /// An older delivery becomes a dead letter. Default 24 hours. Dead letters are stored for 30
    /// days, at most 10,000 per tenant.
    pub retention: Retention,
    /// The interval at which the queue is polled without a notification. Default 1 second.
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
    pub(crate) fn claim_request(&self, most: usize) -> DeliveryClaimRequest {
        DeliveryClaimRequest {
            most,
            per_webhook: self.per_webhook,
            slow_from: self.slow_from,
            lease: self.timeout + LEASE_BEYOND_ATTEMPT,
        }
    }

    /// The options of the gate for deliveries.
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
