//! Targets for tests, and a run against one.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_load::{Measured, Pace, Plan, Target, drive};
use tokio_util::sync::CancellationToken;

/// A target that calls a function.
pub struct Does<F>(pub F);

#[async_trait]
impl<F, R> Target for Does<F>
where
    F: Fn(u64) -> R + Send + Sync,
    R: Future<Output = Result<(), String>> + Send,
{
    async fn call(&self, number: u64) -> Result<(), String> {
        (self.0)(number).await
    }
}

/// Runs without a warm-up.
pub async fn run(target: Arc<dyn Target>, pace: Pace, window_ms: u64, stop: &CancellationToken) -> Measured {
    let plan = Plan { pace, warm_up: Duration::ZERO, duration: Duration::from_millis(window_ms) };
    drive(target, &plan, stop).await
}
