//! Writes outgoing requests into the tenants' egress logs, in batches and without blocking them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{EgressRecord, MAX_EGRESS_ENTRIES};
use rcrt_egress::{EgressRecorder, Logged};
use tokio::sync::mpsc::Receiver;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long records are collected before they are written.
const COLLECTED: Duration = Duration::from_secs(1);
/// Pause before a failed write is retried.
const PAUSE: Duration = Duration::from_secs(2);
/// Time for the last batch at shutdown.
const ENDING: Duration = Duration::from_secs(5);

/// The log of an egress gate, and the receiver that its writer will use.
pub struct EgressLogChannel {
    pub log: EgressRecorder,
    taken: Receiver<Logged>,
}

impl EgressLogChannel {
    pub fn new() -> Self {
        let (log, taken) = EgressRecorder::new();
        Self { log, taken }
    }
}

/// A running writer.
pub struct EgressLogWriter {
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl EgressLogWriter {
    /// `store_of` returns a tenant's store, with the rights of a runner.
    pub fn start(
        records: EgressLogChannel,
        store_of: impl Fn(Uuid) -> Arc<dyn rcrt_breadcrumb::EgressLog> + Send + Sync + 'static,
    ) -> Self {
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        let task = tokio::spawn(async move { run(records, store_of, stopped).await });
        Self { stop, task }
    }

    /// Writes the remaining entries, for some seconds at most. Call it after the users of the gate
    /// have stopped.
    pub async fn close(mut self) {
        self.stop.cancel();
        if timeout(ENDING, &mut self.task).await.is_err() {
            tracing::warn!("the last entries of the egress log were not written");
            self.task.abort();
        }
    }
}

async fn run(
    mut records: EgressLogChannel,
    store_of: impl Fn(Uuid) -> Arc<dyn rcrt_breadcrumb::EgressLog> + Send + Sync,
    stop: CancellationToken,
) {
    loop {
        let mut batch = Vec::new();
        tokio::select! {
            () = stop.cancelled() => records.taken.close(),
            count = records.taken.recv_many(&mut batch, MAX_EGRESS_ENTRIES) => {
                // The gate was dropped.
                if count == 0 {
                    return;
                }
            }
        }
        tokio::select! {
            () = stop.cancelled() => {}
            () = sleep(COLLECTED) => {}
        }
        while batch.len() < MAX_EGRESS_ENTRIES
            && let Ok(record) = records.taken.try_recv()
        {
            batch.push(record);
        }
        if batch.is_empty() && stop.is_cancelled() {
            return;
        }
        let mut tenants: HashMap<Uuid, Vec<EgressRecord>> = HashMap::new();
        for (owner_id, record) in batch {
            // An entry that the store refuses would make its whole batch fail.
            if let Err(found) = record.check("entry") {
                tracing::error!(%found, "an entry of the egress log cannot be written");
                continue;
            }
            tenants.entry(owner_id).or_default().push(record);
        }
        for (owner_id, records) in tenants {
            write(&*store_of(owner_id), records).await;
        }
        let lost = records.log.take_lost();
        if lost > 0 {
            tracing::warn!(
                lost,
                "entries of the egress log were dropped: they arrived faster than they could be written"
            );
        }
    }
}

/// Writes the entries, and retries until the store accepts them or returns a permanent error.
async fn write(store: &dyn rcrt_breadcrumb::EgressLog, records: Vec<EgressRecord>) {
    let mut is_failing = false;
    while let Err(error) = store.log_egress(records.clone()).await {
        if !error.is_retryable() {
            tracing::error!(%error, lost = records.len(), "entries of the egress log cannot be written");
            return;
        }
        if !is_failing {
            tracing::warn!(%error, "the egress log cannot be written; retrying");
            is_failing = true;
        }
        sleep(PAUSE).await;
    }
}
