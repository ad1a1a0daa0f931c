//! A clock that tests move.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, TimeDelta, Utc};
use rcrt_schedule::Clock;
use tokio::sync::watch;

pub struct MovedClock(watch::Sender<DateTime<Utc>>);

impl MovedClock {
    pub fn at(time: &str) -> Arc<Self> {
        Arc::new(Self(watch::Sender::new(moment(time))))
    }

    pub fn set(&self, time: &str) {
        self.0.send_replace(moment(time));
    }

    pub fn forward(&self, by: TimeDelta) {
        self.0.send_modify(|now| *now += by);
    }
}

#[async_trait]
impl Clock for MovedClock {
    fn now(&self) -> DateTime<Utc> {
        *self.0.borrow()
    }

    async fn sleep_until(&self, moment: DateTime<Utc>) {
        // The sender is this clock, which exists as long as there is a waiter.
        let _ = self.0.subscribe().wait_for(|now| *now >= moment).await;
    }
}

/// `2026-03-29T00:30:00Z`.
pub fn moment(time: &str) -> DateTime<Utc> {
    time.parse().unwrap()
}
