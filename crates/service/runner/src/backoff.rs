//! Retries with growing pauses and jitter.

use std::time::Duration;

use rcrt_breadcrumb::StoreError;
use uuid::Uuid;

const FIRST: Duration = Duration::from_millis(100);
const LONGEST: Duration = Duration::from_secs(5);

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    tries: u32,
}

impl Backoff {
    pub fn reset(&mut self) {
        self.tries = 0;
    }

    pub async fn wait(&mut self) {
        let delay = jittered(doubled(FIRST, self.tries, LONGEST));
        self.tries = self.tries.saturating_add(1);
        tokio::time::sleep(delay).await;
    }
}

/// `first`, doubled `times` times, at most `longest`.
pub(crate) fn doubled(first: Duration, times: u32, longest: Duration) -> Duration {
    first.saturating_mul(1 << times.min(20)).min(longest)
}

/// A random duration from half of the delay to all of it.
pub(crate) fn jittered(delay: Duration) -> Duration {
    // A new v4 UUID serves as the random number.
    let dice = (Uuid::new_v4().as_u128() >> 64) as u32 & 0xffff;
    delay / 2 + delay.mul_f64(f64::from(dice) / 65536.0) / 2
}

/// Repeats an operation of the store as long as a retry can help. Drop the future to stop.
pub(crate) async fn with_retries<T, F>(what: &'static str, mut ask: impl FnMut() -> F) -> Result<T, StoreError>
where
    F: Future<Output = Result<T, StoreError>>,
{
    let mut backoff = Backoff::default();
    loop {
        match ask().await {
            Err(error) if error.is_retryable() => {
                tracing::warn!(what, %error, "the store is not available; retrying");
                backoff.wait().await;
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn pauses_double_up_to_the_limit_with_jitter(tries in 0_u32..100) {
            let longest = Duration::from_secs(30);
            let pause = doubled(Duration::from_millis(500), tries, longest);
            prop_assert_eq!(pause.as_millis(), (500_u128 << tries.min(20)).min(30_000));
            let spread = jittered(pause);
            prop_assert!(pause / 2 <= spread && spread <= pause);
        }
    }
}
