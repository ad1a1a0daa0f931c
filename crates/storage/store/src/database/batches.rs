//! Background work in all tenants, in batches. Each batch is a short transaction of its own.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use tokio::time::Instant;
use uuid::Uuid;

use super::pool::Database;
use super::transaction::TenantTransaction;
use crate::database::failure::Result;

/// The tenants that this query returns.
pub(crate) async fn tenants(database: &Database, sql: &'static str) -> Result<Vec<Uuid>> {
    let mut tx = database.begin("BEGIN").await?;
    Ok(sqlx::query_scalar(sql).fetch_all(&mut *tx).await?)
}

/// The tenants that this query returns for a time.
pub(crate) async fn tenants_before(database: &Database, sql: &'static str, before: DateTime<Utc>) -> Result<Vec<Uuid>> {
    let mut tx = database.begin("BEGIN").await?;
    Ok(sqlx::query_scalar(sql).bind(before).fetch_all(&mut *tx).await?)
}

/// Repeats the batch in this tenant until it changes no row, or for `most` time. Returns how many
/// rows were changed.
pub(crate) async fn repeat<F: Future<Output = Result<usize>>>(
    database: &Arc<Database>,
    tenant: Uuid,
    most: Duration,
    batch: impl Fn(TenantTransaction) -> F,
) -> Result<usize> {
    let (begun, mut count) = (Instant::now(), 0);
    while begun.elapsed() < most {
        match batch(TenantTransaction::begin(database, tenant).await?).await {
            Ok(0) => break,
            Ok(some) => count += some,
            // It moves to another database, which does this work then.
            Err(failure) if failure.is_fenced() => break,
            Err(failure) => return Err(failure),
        }
    }
    Ok(count)
}
