//! Reads on a replica of the database. A read sees everything that was committed before it began,
//! on any server, as on the primary: it asks the primary how far its log is on disk, and the
//! replica whether it has applied so much.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rcrt_breadcrumb::StoreError;

use super::failure::{Failure, Result};
use super::pool::{Database, Replica};

/// How long a read waits for the replica. After that it uses the primary.
const PATIENCE: Duration = Duration::from_millis(100);
const LOOK_FIRST: Duration = Duration::from_millis(1);
const LOOK_LONGEST: Duration = Duration::from_millis(8);
/// How long the primary serves all reads after the replica was behind, or failed.
const REST_IF_BEHIND: Duration = Duration::from_secs(1);
const REST_IF_FAILED: Duration = Duration::from_secs(5);

impl Replica {
    /// The replica, if it has everything that the primary has committed.
    async fn current(&self, primary: &Database) -> Option<Arc<Database>> {
        if self.rests.lock().until.is_some_and(|until| Instant::now() < until) {
            return None;
        }
        match self.is_current(primary).await {
            Ok(true) => {
                let mut rests = self.rests.lock();
                if std::mem::take(&mut rests.is_reported) {
                    tracing::info!("the replica serves reads again");
                }
                Some(self.database.clone())
            }
            Ok(false) => {
                self.rest(REST_IF_BEHIND);
                None
            }
            Err(failure) => {
                self.failed(failure);
                None
            }
        }
    }

    async fn is_current(&self, primary: &Database) -> Result<bool> {
        let mut connection = primary.begin("BEGIN").await?;
        // What was confirmed is on disk. Positions have no type in sqlx.
        let position: String =
            sqlx::query_scalar("SELECT pg_current_wal_flush_lsn()::text").fetch_one(&mut *connection).await?;
        drop(connection);
        let (begun, mut pause) = (Instant::now(), LOOK_FIRST);
        let mut replica = self.database.begin("BEGIN").await?;
        loop {
            // A server that is no replica (any more) has other data than the primary.
            let has: bool = sqlx::query_scalar(
                "SELECT pg_is_in_recovery() AND coalesce(pg_last_wal_replay_lsn() >= $1::pg_lsn, false)",
            )
            .bind(&position)
            .fetch_one(&mut *replica)
            .await?;
            if has || begun.elapsed() >= PATIENCE {
                return Ok(has);
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LOOK_LONGEST);
        }
    }

    fn rest(&self, time: Duration) {
        self.rests.lock().until = Some(Instant::now() + time);
    }

    fn failed(&self, failure: Failure) {
        self.rest(REST_IF_FAILED);
        if !std::mem::replace(&mut self.rests.lock().is_reported, true) {
            tracing::warn!(error = %StoreError::from(failure), "the replica cannot be read; reading from the primary");
        }
    }
}

impl Database {
    /// Runs a read on the replica if there is one and it has everything that was committed before.
    /// Otherwise, and if the read fails there, runs it on the primary. The work must not write.
    pub(crate) async fn read<T, F>(self: &Arc<Self>, work: impl Fn(Arc<Self>) -> F + Send + Sync) -> Result<T>
    where
        F: Future<Output = Result<T>> + Send,
    {
        if let Some(replica) = &self.replica
            && let Some(database) = replica.current(self).await
        {
            match work(database).await {
                // A replica also cancels a read of rows that it must remove: a collision.
                Err(failure) if failure.is_unreachable() || failure.is_collision() => replica.failed(failure),
                done => return done,
            }
        }
        work(self.clone()).await
    }
}
