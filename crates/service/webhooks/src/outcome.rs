//! What the result of an attempt means for a delivery.

use std::time::Duration;

use rcrt_breadcrumb::{Delivery, Settlement};

use crate::DeliveryOptions;
use crate::backoff::{bound, jittered};

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Ended {
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

impl Ended {
    pub(crate) fn settlement(self, delivery: &Delivery, options: &DeliveryOptions, dice: f64) -> Settlement {
        let failures = delivery.failures.saturating_add(1);
        let hold = (failures >= options.slow_from).then(|| {
            let bound =
                bound(options.first_pause, failures - options.slow_from.min(failures) + 1, options.longest_pause);
            // Half of the bound is fixed, so that a receiver that is down is not tried again at
            // once.
            bound / 2 + jittered(bound / 2, dice)
        });
        let (error, asked) = match self {
            Self::Answered { status: 200..=299, .. } => return Settlement::Delivered,
            Self::Answered { status: 410, .. } => {
                return Settlement::Gone { error: "the receiver responded with 410 Gone".into() };
            }
            Self::Answered { status: status @ 300..=399, retry_after } => {
                (format!("the receiver responded with {status}, and redirects are not followed"), retry_after)
            }
            Self::Answered { status, retry_after } => (format!("the receiver responded with {status}"), retry_after),
            Self::Failed(error) => (error, None),
            Self::Refused(error) => return Settlement::Dead { error, hold },
        };
        if delivery.attempt >= options.max_attempts || delivery.age >= options.retention.waiting {
            return Settlement::Dead { error, hold };
        }
        let pause = jittered(bound(options.first_pause, delivery.attempt, options.longest_pause), dice);
        let asked = asked.unwrap_or_default().min(options.longest_pause);
        // A receiver that asks for a pause gets it for all its deliveries.
        let hold = if asked.is_zero() { hold } else { Some(hold.unwrap_or_default().max(asked)) };
        Settlement::Retry { error, after: pause.max(asked), hold }
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
            fence: 1,
        }
    }

    fn settled(ended: Ended, attempt: u32, failures: u32) -> Settlement {
        ended.settlement(&delivery(attempt, failures, Duration::ZERO), &DeliveryOptions::default(), 1.0)
    }

    fn answered(status: u16) -> Ended {
        Ended::Answered { status, retry_after: None }
    }

    #[test]
    fn a_success_is_delivered_and_410_is_gone() {
        for status in [200, 202, 204, 299] {
            assert_eq!(settled(answered(status), 1, 9), Settlement::Delivered);
        }
        assert!(matches!(settled(answered(410), 1, 0), Settlement::Gone { .. }));
    }

    #[test]
    fn a_failure_is_retried_with_growing_pauses_until_the_last_attempt() {
        let mut pauses = Vec::new();
        for attempt in 1..16 {
            let Settlement::Retry { after, hold: None, error } = settled(answered(503), attempt, 0) else {
                panic!("attempt {attempt}");
            };
            assert_eq!(error, "the receiver responded with 503");
            pauses.push(after.as_secs());
        }
        assert_eq!(pauses, [2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 3600, 3600, 3600, 3600]);
        assert!(matches!(settled(answered(503), 16, 0), Settlement::Dead { .. }));
        assert!(matches!(settled(Ended::Failed("no".into()), 16, 0), Settlement::Dead { .. }));
    }

    #[test]
    fn an_old_or_refused_delivery_becomes_a_dead_letter() {
        let old = delivery(2, 0, Duration::from_hours(24));
        assert!(matches!(answered(500).settlement(&old, &DeliveryOptions::default(), 0.5), Settlement::Dead { .. }));
        let refused = Settlement::Dead { error: "no".into(), hold: None };
        assert_eq!(settled(Ended::Refused("no".into()), 1, 0), refused);
    }

    #[test]
    fn redirects_are_failures() {
        let Settlement::Retry { error, .. } = settled(answered(302), 1, 0) else { panic!() };
        assert!(error.contains("redirects are not followed"));
    }

    #[test]
    fn retry_after_is_respected_within_bounds() {
        let ask = |seconds, dice| {
            let ended = Ended::Answered { status: 429, retry_after: Some(Duration::from_secs(seconds)) };
            ended.settlement(&delivery(1, 0, Duration::ZERO), &DeliveryOptions::default(), dice)
        };
        let Settlement::Retry { after, hold, .. } = ask(120, 0.0) else { panic!() };
        assert_eq!((after, hold), (Duration::from_mins(2), Some(Duration::from_mins(2))));
        let Settlement::Retry { after, .. } = ask(1_000_000, 0.0) else { panic!() };
        assert_eq!(after, Duration::from_hours(1));
        let Settlement::Retry { after, .. } = ask(1, 1.0) else { panic!() };
        assert_eq!(after, Duration::from_secs(2), "never shorter than the computed pause");
    }

    #[test]
    fn a_failing_receiver_gets_fewer_attempts() {
        let holds: Vec<Option<u64>> = (0..20)
            .map(|failures| match settled(answered(500), 1, failures) {
                Settlement::Retry { hold, .. } => hold.map(|hold| hold.as_secs()),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(holds[..8], [None, None, None, None, Some(2), Some(4), Some(8), Some(16)]);
        assert_eq!(holds[19], Some(3600));
    }
}
