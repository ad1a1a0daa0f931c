//! Runs a plan.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::measured::Measured;
use crate::plan::{Pace, Plan};
use crate::record::Record;
use crate::{closed, open};

/// How long to wait for calls that are in flight when the window closes.
pub const DRAIN: Duration = Duration::from_secs(30);
/// The same after the run was stopped.
const STOPPED_DRAIN: Duration = Duration::from_secs(2);

/// What is put under load. One `call` is one operation from the caller's point of view: it returns
/// when the caller has its result.
#[async_trait]
pub trait Target: Send + Sync {
    /// Makes call `number` of this run, counted from 0. The error is a short sentence. Equal
    /// sentences are counted together.
    async fn call(&self, number: u64) -> Result<(), String>;
}

/// Puts `target` under the plan's load. Calls are numbered from 0, including the warm-up. When
/// `stop` is cancelled, no further call is sent, and the results so far are returned. Must run in a
/// Tokio runtime with timers.
pub async fn drive(target: Arc<dyn Target>, plan: &Plan, stop: &CancellationToken) -> Measured {
    if let Err(error) = plan.check() {
        let failures = [(format!("nothing was sent: {error}"), 1)].into();
        return Measured { failures, ..Measured::default() };
    }
    let run = Arc::new(Run::new(target, plan));
    let mut tasks = JoinSet::new();
    match plan.pace {
        Pace::Closed { in_flight } => closed::send(&run, in_flight, stop, &mut tasks).await,
        Pace::Open { per_second, in_flight } => open::send(&run, per_second, in_flight, stop, &mut tasks).await,
    }
    let patience = if stop.is_cancelled() { STOPPED_DRAIN } else { DRAIN };
    let drained = async { while tasks.join_next().await.is_some() {} };
    let in_time = tokio::select! {
        () = drained => true,
        () = tokio::time::sleep(patience) => false,
        // A stop also ends the wait for the last responses.
        () = stop.cancelled(), if !stop.is_cancelled() => false,
    };
    if !in_time {
        tasks.shutdown().await;
    }
    run.close()
}

/// One run in progress.
pub(crate) struct Run {
    target: Arc<dyn Target>,
    began: Instant,
    numbers: AtomicU64,
    record: Mutex<Option<Record>>,
    end: Duration,
}

impl Run {
    fn new(target: Arc<dyn Target>, plan: &Plan) -> Self {
        Self {
            target,
            began: Instant::now(),
            numbers: AtomicU64::new(0),
            record: Mutex::new(Some(Record::new(plan.warm_up, plan.duration))),
            end: plan.end(),
        }
    }

    /// When the window closes, measured from the start of the run.
    pub fn end(&self) -> Duration {
        self.end
    }

    pub fn now(&self) -> Duration {
        self.began.elapsed()
    }

    /// The clock time of that moment of the run.
    pub fn moment(&self, since_begin: Duration) -> Instant {
        self.began + since_begin
    }

    pub fn next_number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Makes one call, which was due at `due`, and records it.
    pub async fn call(&self, number: u64, due: Duration) {
        self.with_record(|record| record.sent(number, due));
        let how = self.target.call(number).await;
        let now = self.now();
        self.with_record(|record| record.ended(number, now, how));
    }

    pub fn with_record(&self, write: impl FnOnce(&mut Record)) {
        if let Some(record) = self.record.lock().as_mut() {
            write(record);
        }
    }

    fn close(&self) -> Measured {
        let now = self.now();
        self.record.lock().take().map_or_else(Measured::default, |record| record.close(now))
    }
}
