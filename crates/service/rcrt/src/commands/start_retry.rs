//! Lets `up` continue its start after the database was restarted. It serves clients already, and
//! their calls continue too.

use std::time::Duration;

use rcrt_breadcrumb::StoreError;
use tokio::time::{Instant, sleep};

/// No attempt of a step begins after this time; the process then ends with the error.
const LONGEST: Duration = Duration::from_mins(1);
const PAUSE: Duration = Duration::from_millis(200);

/// Repeats a step of the start while a later attempt can succeed.
pub async fn retried<T, E, F>(what: &str, step: impl FnMut() -> F) -> anyhow::Result<T>
where
    E: Into<anyhow::Error>,
    F: Future<Output = Result<T, E>>,
{
    retried_until(Instant::now() + LONGEST, what, step).await
}

async fn retried_until<T, E, F>(end: Instant, what: &str, mut step: impl FnMut() -> F) -> anyhow::Result<T>
where
    E: Into<anyhow::Error>,
    F: Future<Output = Result<T, E>>,
{
    loop {
        match step().await.map_err(E::into) {
            Err(error) if is_outage(&error) && Instant::now() < end => {
                tracing::warn!(what, error = format!("{error:#}"), "the store is not available; retrying");
                sleep(PAUSE).await;
            }
            other => return other,
        }
    }
}

fn is_outage(error: &anyhow::Error) -> bool {
    let is_away = |error: &StoreError| matches!(error, StoreError::Unavailable(_) | StoreError::Busy(_));
    error.chain().filter_map(|cause| cause.downcast_ref::<StoreError>()).any(is_away)
}

#[cfg(test)]
mod tests {
    use anyhow::Context;

    use super::*;

    /// A step that cannot reach the store, but for the attempt with this number.
    async fn attempts(end: Instant, successful: u32) -> anyhow::Result<u32> {
        let mut attempt = 0;
        retried_until(end, "step", || {
            attempt += 1;
            std::future::ready(if attempt == successful {
                Ok(attempt)
            } else {
                Err(StoreError::Unavailable("away".into())).context("the step failed")
            })
        })
        .await
    }

    #[tokio::test]
    async fn a_step_is_repeated_until_the_store_is_available() {
        assert_eq!(attempts(Instant::now() + LONGEST, 3).await.unwrap(), 3);
    }

    #[tokio::test]
    async fn the_error_is_returned_when_the_time_is_up() {
        let error = attempts(Instant::now(), 2).await.unwrap_err();
        assert_eq!(format!("{error:#}"), "the step failed: the store cannot be reached: away");
    }

    #[tokio::test]
    async fn an_error_that_stays_is_returned_at_once() {
        let mut attempts = 0;
        let refused = retried("step", || {
            attempts += 1;
            std::future::ready(Err::<(), _>(StoreError::Forbidden("not yours".into())))
        });
        assert!(refused.await.is_err());
        assert_eq!(attempts, 1);
    }
}
