//! The clock of the scheduler and the tools. Tests can move it.

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};

#[async_trait]
pub trait Clock: Send + Sync + 'static {
    fn now(&self) -> DateTime<Utc>;

    /// Waits until this time. Dropping the future ends the wait.
    async fn sleep_until(&self, moment: DateTime<Utc>);
}

/// The machine's own clock.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

/// The longest wait before the clock is read again, because the machine's clock can be set, and a
/// machine can sleep.
const POLL_INTERVAL: Duration = Duration::from_secs(20);

#[async_trait]
impl Clock for SystemClock {
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }

    async fn sleep_until(&self, moment: DateTime<Utc>) {
        while let Ok(left) = (moment - self.now()).to_std()
            && !left.is_zero()
        {
            tokio::time::sleep(left.min(POLL_INTERVAL)).await;
        }
    }
}
