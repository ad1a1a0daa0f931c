//! An open loop: calls fall due at a steady rate, whatever becomes of the earlier ones.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::drive::Run;
use crate::due::Due;
use crate::fine_sleep::FineSleep;

/// Sends until the window ends or `stop` is cancelled, and takes down what was due and could not be sent. Calls that are
/// under way are left in `tasks`.
pub async fn send(
    run: &Arc<Run>,
    per_second: f64,
    in_flight: usize,
    stop: &CancellationToken,
    tasks: &mut JoinSet<()>,
) {
    let due = Due::at(per_second);
    let places = Arc::new(Semaphore::new(in_flight));
    let mut sleep = FineSleep::new();
    let mut sent = 0;
    while sent < due.before(run.end()) {
        tokio::select! {
            biased;
            () = stop.cancelled() => break,
            () = sleep.until(run.moment(due.of(sent))) => {}
        }
        let Some(place) = place(run, &places, stop).await else { break };
        let (run, number, due) = (run.clone(), run.next_number(), due.of(sent));
        tasks.spawn(async move {
            run.call(number, due).await;
            drop(place);
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

/// Room for one more call; none once the window has ended, or somebody wants the end. Room that is there goes first: a
/// call that was due at the last moment is sent, though the clock has gone on.
async fn place(run: &Run, places: &Arc<Semaphore>, stop: &CancellationToken) -> Option<OwnedSemaphorePermit> {
    tokio::select! {
        biased;
        place = places.clone().acquire_owned() => place.ok(),
        () = stop.cancelled() => None,
        () = tokio::time::sleep_until(run.moment(run.end()).into()) => None,
    }
}
