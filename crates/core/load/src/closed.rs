//! A closed loop: a fixed number of callers, each with one call at a time.

use std::sync::Arc;

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::drive::Run;

/// Sends until the window closes or `stop` is cancelled. The callers stay in `tasks`, each with its
/// last call.
pub async fn send(run: &Arc<Run>, in_flight: usize, stop: &CancellationToken, tasks: &mut JoinSet<()>) {
    for _ in 0..in_flight {
        let (run, stop) = (run.clone(), stop.clone());
        tasks.spawn(async move {
            loop {
                let due = run.now();
                if due >= run.end() || stop.is_cancelled() {
                    return;
                }
                run.call(run.next_number(), due).await;
                // A target that responds at once must not starve the checks of the clock and the
                // stop signal.
                tokio::task::coop::consume_budget().await;
            }
        });
    }
    tokio::select! {
        () = tokio::time::sleep_until(run.moment(run.end()).into()) => {}
        () = stop.cancelled() => {
            let now = run.now();
            run.with_record(|record| record.stop(now));
        }
    }
}
