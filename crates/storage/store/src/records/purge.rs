//! Deletes the rows of deleted tenants, a few at a time, while other tenants work.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::StoreError;
use tokio::time::{MissedTickBehavior, interval};

use crate::database::Database;
use crate::database::batches::tenants;
use crate::database::failure::Result;

/// The longest time from a tenant's deletion to the start of its purge.
const LOOK: Duration = Duration::from_secs(5);
/// Rows per transaction, and the pause between two: a purge uses at most a third of one
/// connection's time.
const BATCH: i32 = 500;
const REST: Duration = Duration::from_millis(20);

/// Runs until the store is closed.
pub(crate) async fn run(database: Arc<Database>) {
    let mut ticks = interval(LOOK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            () = database.stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let purged = tokio::select! {
            () = database.stop.cancelled() => return,
            purged = purge(&database) => purged,
        };
        match purged {
            Ok(0) => {}
            Ok(rows) => tracing::info!(rows, "deleted rows of deleted tenants"),
            Err(failure) => {
                tracing::warn!(error = %StoreError::from(failure), "deleting the rows of a deleted tenant failed; retrying");
            }
        }
    }
}

/// Returns how many rows there were.
pub(crate) async fn purge(database: &Arc<Database>) -> Result<u64> {
    let mut rows = 0;
    for tenant in tenants(database, "SELECT deleted_tenants()").await? {
        loop {
            // After a crash the lost part is deleted again.
            let mut tx = database.begin("BEGIN; SET LOCAL synchronous_commit = off").await?;
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
