//! The pause before the next attempt: a random part of a bound that doubles ("full jitter"), so
//! that a receiver that recovers does not get all retries at once.

use std::time::Duration;

use uuid::Uuid;

/// The bound after this many failures (from 1).
pub(crate) fn bound(first: Duration, failures: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << failures.saturating_sub(1).min(30)).min(longest)
}

/// A part of the bound; `dice` is from 0 to 1.
pub(crate) fn jittered(bound: Duration, dice: f64) -> Duration {
    bound.mul_f64(dice.clamp(0.0, 1.0))
}

pub(crate) fn dice() -> f64 {
    // A v4 UUID is random, so no other generator is needed.
    f64::from((Uuid::new_v4().as_u128() >> 64) as u32 & 0xffff) / 65536.0
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pauses_grow_up_to_their_bound(first in 1_u64..10_000, longest in 1_u64..10_000_000, dice in 0.0..1.0_f64) {
            let (first, longest) = (Duration::from_millis(first), Duration::from_millis(longest));
            let bounds: Vec<Duration> = (1..40).map(|failures| bound(first, failures, longest)).collect();
            prop_assert_eq!(bounds[0], first.min(longest));
            prop_assert!(bounds.windows(2).all(|pair| pair[1] == (pair[0] * 2).min(longest)), "{:?}", bounds);
            prop_assert!(bounds.iter().all(|bound| jittered(*bound, dice) <= *bound));
        }
    }

    #[test]
    fn dice_returns_different_numbers() {
        let thrown: Vec<f64> = (0..20).map(|_| dice()).collect();
        assert!(thrown.iter().all(|dice| (0.0..1.0).contains(dice)));
        assert!(thrown.iter().any(|dice| (dice - thrown[0]).abs() > f64::EPSILON));
    }
}
