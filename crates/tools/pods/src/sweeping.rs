//! Deletes pods that a process left behind when it was killed: they are found by their label.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::kubernetes::{ApiError, Pod};
use crate::lifecycle::PodRuns;
use crate::spec::{CREATED_BY, MANAGED_BY, is_expired};

const EVERY: Duration = Duration::from_secs(30);

/// Sweeps until stopped.
pub async fn run(runs: Arc<PodRuns>, stop: CancellationToken) {
    loop {
        tokio::select! {
            swept = sweep(&runs) => match swept {
                Ok(0) => {}
                Ok(count) => tracing::info!(count, "pods that were left behind are deleted"),
                Err(error) => tracing::warn!(%error, "pods that were left behind cannot be found"),
            },
            () = stop.cancelled() => return,
        }
        tokio::select! {
            () = sleep(EVERY) => {}
            () = stop.cancelled() => return,
        }
    }
}

async fn sweep(runs: &PodRuns) -> Result<usize, ApiError> {
    let (mut count, mut after) = (0, String::new());
    loop {
        let page = runs.cluster.pods(MANAGED_BY, &after).await?;
        for pod in page.items.iter().filter(|pod| is_left_behind(pod, runs)) {
            runs.delete(&pod.metadata.name).await;
            count += 1;
        }
        if page.metadata.next.is_empty() {
            return Ok(count);
        }
        after = page.metadata.next;
    }
}

/// Other processes take care of their own pods until these expire.
fn is_left_behind(pod: &Pod, runs: &PodRuns) -> bool {
    let is_own = pod.metadata.labels.get(CREATED_BY).is_some_and(|id| *id == runs.id.to_string());
    is_expired(pod) || is_own && !runs.is_live(&pod.metadata.name)
}
