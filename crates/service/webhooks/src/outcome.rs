//! What the result of an attempt means for a delivery.

use std::time::Duration;

use rcrt_breadcrumb::{Delivery, DeliveryOutcome};

use crate::DeliveryOptions;
use crate::backoff::{bound, jittered};

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AttemptResult {
    Answered {
        status: u16,
        /// The pause that the receiver asks for.
        retry_after: Option<Duration>,
    },
    /// The gate refuses the address. A retry would not help.
    Refused(String),
    /// There was no response.
    Failed(String),
}

impl AttemptResult {
    pub(crate) fn outcome(self, delivery: &Delivery, options: &DeliveryOptions, dice: f64) -> DeliveryOutcome {
        let failures = delivery.failures.saturating_add(1);
        let hold = (failures >= options.slow_from).then(|| {
            let bound =
                bound(options.first_pause, failures - options.slow_from.min(failures) + 1, options.longest_pause);
            // Half of the bound is fixed, so that a receiver that is down is not tried again at
            // once.
            bound / 2 + jittered(bound / 2, dice)
        });
        let (error, asked) = match self {
            Self::Answered { status: 200..=299, .. } => return DeliveryOutcome::Delivered,
            Self::Answered { status: 410, .. } => {
                return DeliveryOutcome::Gone { error: "the receiver responded with 410 Gone".into() };
            }
            Self::Answered { status: status @ 300..=399, retry_after } => {
                (format!("the receiver responded with {status}, and redirects are not followed"), retry_after)
            }
            Self::Answered { status, retry_after } => (format!("the receiver responded with {status}"), retry_after),
            Self::Failed(error) => (error, None),
            Self::Refused(error) => return DeliveryOutcome::Dead { error, hold },
        };
        if delivery.attempt >= options.max_attempts || delivery.age >= options.retention.waiting {
            return DeliveryOutcome::Dead { error, hold };
        }
        let pause = jittered(bound(options.first_pause, delivery.attempt, options.longest_pause), dice);
        let asked = asked.unwrap_or_default().min(options.longest_pause);
        // A receiver that asks for a pause gets it for all its deliveries.
        let hold = if asked.is_zero() { hold } else { Some(hold.unwrap_or_default().max(asked)) };
        DeliveryOutcome::Retry { error, after: pause.max(asked), hold }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    fn delivery(attempt: u32, failures: u32, age: Duration) -> Delivery {
        Delivery {
            id: Uuid::nil(),
            owner_id: Uuid::nil(),
            webhook_id: Uuid::nil(),
            url: String::new(),
            payload: String::new(),
            attempt,
            age,
            failures,
            secret: None,
            call: None,
            fence: 1,
        }
    }

    fn outcome_of(ended: AttemptResult, attempt: u32, failures: u32) -> DeliveryOutcome {
        ended.outcome(&delivery(attempt, failures, Duration::ZERO), &DeliveryOptions::default(), 1.0)
    }

    fn answered(status: u16) -> AttemptResult {
        AttemptResult::Answered { status, retry_after: None }
    }

    #[test]
    fn a_success_is_delivered_and_410_is_gone() {
        for status in [200, 202, 204, 299] {
            assert_eq!(outcome_of(answered(status), 1, 9), DeliveryOutcome::Delivered);
        }
        assert!(matches!(outcome_of(answered(410), 1, 0), DeliveryOutcome::Gone { .. }));
    }

    #[test]
    fn a_failure_is_retried_with_growing_pauses_until_the_last_attempt() {
        let mut pauses = Vec::new();
        for attempt in 1..16 {
            let DeliveryOutcome::Retry { after, hold: None, error } = outcome_of(answered(503), attempt, 0) else {
                panic!("attempt {attempt}");
            };
            assert_eq!(error, "the receiver responded with 503");
            pauses.push(after.as_secs());
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600, 3600]);
        assert!(matches!(outcome_of(answered(503), 16, 0), DeliveryOutcome::Dead { .. }));
        assert!(matches!(outcome_of(AttemptResult::Failed("no".into()), 16, 0), DeliveryOutcome::Dead { .. }));
    }

    #[test]
    fn an_old_or_refused_delivery_becomes_a_dead_letter() {
        let old = delivery(2, 0, Duration::from_hours(24));
        assert!(matches!(answered(500).outcome(&old, &DeliveryOptions::default(), 0.5), DeliveryOutcome::Dead { .. }));
        let refused = DeliveryOutcome::Dead { error: "no".into(), hold: None };
        assert_eq!(outcome_of(AttemptResult::Refused("no".into()), 1, 0), refused);
    }

    #[test]
    fn redirects_are_failures() {
        let DeliveryOutcome::Retry { error, .. } = outcome_of(answered(302), 1, 0) else { panic!() };
        assert!(error.contains("redirects are not followed"));
    }

    #[test]
    fn retry_after_is_respected_within_bounds() {
        let ask = |seconds, dice| {
            let ended = AttemptResult::Answered { status: 429, retry_after: Some(Duration::from_secs(seconds)) };
            ended.outcome(&delivery(1, 0, Duration::ZERO), &DeliveryOptions::default(), dice)
        };
        let DeliveryOutcome::Retry { after, hold, .. } = ask(120, 0.0) else { panic!() };
        assert_eq!((after, hold), (Duration::from_mins(2), Some(Duration::from_mins(2))));
        let DeliveryOutcome::Retry { after, .. } = ask(1_000_000, 0.0) else { panic!() };
        assert_eq!(after, Duration::from_hours(1));
        let DeliveryOutcome::Retry { after, .. } = ask(1, 1.0) else { panic!() };
        assert_eq!(after, Duration::from_secs(2), "never shorter than the computed pause");
    }

    #[test]
    fn a_failing_receiver_gets_fewer_attempts() {
        let holds: Vec<Option<u64>> = (0..20)
            .map(|failures| match outcome_of(answered(500), 1, failures) {
                DeliveryOutcome::Retry { hold, .. } => hold.map(|hold| hold.as_secs()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(holds[..8], [None, None, None, None, Some(2), Some(4), Some(8), Some(16)]);
        assert_eq!(holds[19], Some(3600));
    }
}
