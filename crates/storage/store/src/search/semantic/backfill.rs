//! Queues all records of a tenant for embedding: for a new model, in a new tenant, or after missed
//! events.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::follower::queue;
use super::{NOT_EMBEDDED, SemanticSearch};
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::{Durability, TenantTransaction};

/// How many records one step queues, and how many can be queued when the next step starts.
const STEP: i64 = 500;

from_row! {
    struct Backfill {
        model: i32,
        at: Option<DateTime<Utc>>,
        breadcrumb_id: Option<Uuid>,
    }
}

/// Queues the next records of the tenant, the newest first. Returns whether the backfill continues.
/// Changes in the meantime arrive as events.
pub(super) async fn step(database: &Arc<Database>, semantic_search: &SemanticSearch, owner_id: Uuid) -> Result<bool> {
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    let backfill: Option<Backfill> =
        sqlx::query_as("SELECT model, at, breadcrumb_id FROM embedding_backfills WHERE NOT is_done")
            .fetch_optional(tx.connection())
            .await?;
    let Some(backfill) = backfill else { return Ok(false) };
    if Some(backfill.model) != *semantic_search.model.borrow() {
        return Ok(false);
    }
    let next: Vec<(Uuid, DateTime<Utc>, bool)> = sqlx::query_as(
        "SELECT b.id, b.updated_at, b.sensitivity <> 'secret' AND (b.schema_name IS NULL OR b.schema_name <> ALL ($4))
         FROM breadcrumbs b
         WHERE b.owner_id = current_tenant() AND ($1::timestamptz IS NULL
            OR (b.updated_at <= $1 AND (b.updated_at < $1 OR b.id > $2)))
         ORDER BY b.updated_at DESC, b.id LIMIT $3",
    )
    .bind(backfill.at)
    .bind(backfill.breadcrumb_id)
    .bind(STEP)
    .bind(NOT_EMBEDDED)
    .fetch_all(tx.connection())
    .await?;
    let mut ids: Vec<Uuid> = next.iter().filter(|(_, _, is_wanted)| *is_wanted).map(|(id, _, _)| *id).collect();
    ids.sort_unstable();
    let is_done = next.len() < STEP as usize;
    if is_done && sweep(&mut tx, backfill.model).await? {
        // The sweep was not complete. The next step queues the last records.
        tx.commit().await?;
        return Ok(true);
    }
    if !ids.is_empty() {
        queue(&mut tx, &ids).await?;
    }
    sqlx::query(
        "UPDATE embedding_backfills SET at = coalesce($1, at), breadcrumb_id = coalesce($2, breadcrumb_id), is_done = $3
         WHERE owner_id = current_tenant()",
    )
    .bind(next.last().map(|(_, at, _)| *at))
    .bind(next.last().map(|(id, _, _)| *id))
    .bind(is_done)
    .execute(tx.connection())
    .await?;
    tx.commit().await?;
    Ok(!is_done)
}

/// Deletes vectors of deleted records and of other models. Returns whether more may be left.
async fn sweep(tx: &mut TenantTransaction, model: i32) -> Result<bool> {
    let swept = sqlx::query(
        "DELETE FROM breadcrumb_embeddings WHERE ctid = ANY (ARRAY(
            SELECT e.ctid FROM breadcrumb_embeddings e
            WHERE e.owner_id = current_tenant() AND (e.model <> $1 OR NOT EXISTS (
                SELECT FROM breadcrumbs b
                WHERE b.owner_id = e.owner_id AND b.id = e.breadcrumb_id AND b.sensitivity <> 'secret'
                    AND (b.schema_name IS NULL OR b.schema_name <> ALL ($3))))
            LIMIT $2))",
    )
    .bind(model)
    .bind(STEP)
    .bind(NOT_EMBEDDED)
    .execute(tx.connection())
    .await?;
    Ok(swept.rows_affected() == STEP as u64)
}

/// Whether the tenant's queue is short enough for more records.
pub(super) async fn has_room(tx: &mut TenantTransaction) -> Result<bool> {
    let waiting: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM (SELECT FROM embedding_queue WHERE owner_id = current_tenant() LIMIT $1) q",
    )
    .bind(STEP)
    .fetch_one(tx.connection())
    .await?;
    Ok(waiting < STEP)
}
