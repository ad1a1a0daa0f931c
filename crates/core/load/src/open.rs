//! An open loop: calls are due at a steady rate, whether or not earlier ones have finished.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::drive::Run;
use crate::due::Due;
use crate::fine_sleep::FineSleep;

/// Sends until the window closes or `stop` is cancelled, and records calls that were due and could
/// not be sent. Calls in flight stay in `tasks`.
pub async fn send(
    run: &Arc<Run>,
    per_second: f64,
    in_flight: usize,
    stop: &CancellationToken,
    tasks: &mut JoinSet<()>,
) {
    let due = Due::at(per_second);
    let slots = Arc::new(Semaphore::new(in_flight));
    let mut sleep = FineSleep::new();
    let mut sent = 0;
    while sent < due.before(run.end()) {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = sleep.until(run.moment(due.of(sent))) => {}
        }
        let Some(slot) = acquire_slot(run, &slots, stop).await else { break };
        let (run, number, due) = (run.clone(), run.next_number(), due.of(sent));
        tasks.spawn(async move {
            run.call(number, due).await;
            drop(slot);
        });
        sent += 1;
        while tasks.try_join_next().is_some() {}
    }
    let now = run.now();
    let is_stopped = stop.is_cancelled();
    run.with_record(|record| {
        if is_stopped {
            record.stop(now);
        }
        (sent..due.before(record.end())).for_each(|number| record.unsent(due.of(number)));
    });
}

/// A slot for one more call. None if the window has closed or the run was stopped. A free slot is
/// taken first: a call that was due at the last moment is sent, although the clock has moved on.
async fn acquire_slot(run: &Run, slots: &Arc<Semaphore>, stop: &CancellationToken) -> Option<OwnedSemaphorePermit> {
    tokio::select! {
        biased;
        slot = slots.clone().acquire_owned() => slot.ok(),
        () = stop.cancelled() => None,
        () = tokio::time::sleep_until(run.moment(run.end()).into()) => None,
    }
}
