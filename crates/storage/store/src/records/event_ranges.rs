//! The partitions of events: made ahead, and dropped as a whole when they are old.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::prune;
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// Makes the next partitions, and drops those that have only events from before this time. Returns
/// how many were dropped. What does not get its lock in time is left to the next run.
pub(crate) async fn renew(database: &Arc<Database>, before: DateTime<Utc>) -> Result<usize> {
    unless_locked(extend(database).await)?;
    let mut count = 0;
    let mut tx = database.begin("BEGIN").await?;
    let old: Vec<(i64, i64)> = sqlx::query_as("SELECT first_number, next_number FROM old_event_ranges($1)")
        .bind(before)
        .fetch_all(&mut *tx)
        .await?;
    // A transaction that is only dropped keeps its locks for a moment. The partitions could not be
    // dropped until then.
    tx.commit().await?;
    for (first, next) in old {
        finish_deletions(database, first, next).await?;
        count += usize::from(unless_locked(drop_range(database, first).await)?.unwrap_or_default());
    }
    Ok(count)
}

async fn extend(database: &Database) -> Result<()> {
    let mut tx = database.begin("BEGIN").await?;
    sqlx::query("SELECT extend_event_ranges()").execute(&mut *tx).await?;
    Ok(tx.commit().await?)
}

/// The versions, grants and calls of deleted records are in other tables.
async fn finish_deletions(database: &Arc<Database>, first: i64, next: i64) -> Result<()> {
    let mut tx = database.begin("BEGIN").await?;
    let tenants: Vec<Uuid> =
        sqlx::query_scalar("SELECT tenants_with_deletions($1, $2)").bind(first).bind(next).fetch_all(&mut *tx).await?;
    tx.commit().await?;
    for tenant in tenants {
        let mut after = first - 1;
        while let Some(last) = prune::deletions(TenantTransaction::begin(database, tenant).await?, after, next).await? {
            after = last;
        }
    }
    Ok(())
}

async fn drop_range(database: &Database, first: i64) -> Result<bool> {
    let mut tx = database.begin("BEGIN").await?;
    let is_dropped = sqlx::query_scalar("SELECT drop_event_range($1)").bind(first).fetch_one(&mut *tx).await?;
    tx.commit().await?;
    Ok(is_dropped)
}

/// `None` if a lock was not available in time.
fn unless_locked<T>(done: Result<T>) -> Result<Option<T>> {
    match done {
        Err(failure) if failure.ran_out_of_time() => Ok(None),
        other => other.map(Some),
    }
}
