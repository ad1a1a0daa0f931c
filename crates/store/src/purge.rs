//! Deletes the rows of deleted tenants, a few at a time, while other tenants work.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::StoreError;
use tokio::time::{MissedTickBehavior, interval};
use uuid::Uuid;

use crate::Store;
use crate::failure::Result;
use crate::store::Inner;

/// How long after a deletion it begins, at the latest.
const LOOK: Duration = Duration::from_secs(5);
/// Rows of one transaction, and the rest between two: at most a third of one connection's time goes into it.
const BATCH: i32 = 500;
const REST: Duration = Duration::from_millis(20);

impl Store {
    /// Deletes all rows of deleted tenants. Returns how many there were. The store does so by
    /// itself.
    pub async fn purge(&self) -> Result<u64, StoreError> {
        Ok(purge(&self.inner).await?)
    }
}

/// Until the store is closed.
pub(crate) async fn run(store: Arc<Inner>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = store.stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let purged = tokio::select! {
            () = store.stop.cancelled() => return,
            purged = purge(&store) => purged,
        };
        match purged {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "took away what deleted tenants left"),
            Err(failure) => {
                tracing::warn!(error = %StoreError::from(failure), "a deleted tenant's rows are still there; trying again");
            }
        }
    }
}

async fn purge(store: &Arc<Inner>) -> Result<u64> {
    let deleted: Vec<Uuid> = {
        let mut tx = store.begin("BEGIN").await?;
        sqlx::query_scalar("SELECT deleted_tenants()").fetch_all(&mut *tx).await?
    };
    let mut rows = 0;
    for tenant in deleted {
        loop {
            // A crash undoes at most what is done again then.
            let mut tx = store.begin("BEGIN; SET LOCAL synchronous_commit = off").await?;
            let gone: i64 =
                sqlx::query_scalar("SELECT purge_tenant($1, $2)").bind(tenant).bind(BATCH).fetch_one(&mut *tx).await?;
            tx.commit().await?;
            if gone == 0 {
                break;
            }
            rows += gone.unsigned_abs();
            tokio::time::sleep(REST).await;
        }
    }
    Ok(rows)
}
