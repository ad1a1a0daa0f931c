//! Webhook deliveries that were given up.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{DeadLetter, StoreError};
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use crate::database::failure::{Failure, Result};
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

/// The most bytes of one page's payloads (a larger single one is still returned).
const PAGE_BYTES: i64 = 16 * 1024 * 1024;
/// The most rows of one statement.
const BATCH: i64 = 1000;

from_row! {
    struct DeadRow {
        id: Uuid,
        webhook_id: Uuid,
        agent_id: Uuid,
        url: String,
        payload: Json<Value>,
        last_error: String,
        attempts: i32,
        dead_at: DateTime<Utc>,
    }
}

fn unknown(id: Uuid) -> Failure {
    StoreError::NotFound { what: "dead letter", id }.into()
}

pub(super) async fn list(tx: &mut TenantTransaction, limit: u32, offset: u32) -> Result<Vec<DeadLetter>> {
    let owner_id = tx.owner_id;
    let rows: Vec<DeadRow> = sqlx::query_as(
        // The event of a record that became secret is returned without its context, as it would be
        // posted.
        "SELECT d.id, d.webhook_id, w.agent_id, w.url,
            CASE WHEN EXISTS (SELECT FROM breadcrumbs b
                    WHERE b.owner_id = $1 AND b.id = d.breadcrumb_id AND b.sensitivity = 'secret')
                OR EXISTS (SELECT FROM breadcrumb_versions v
                    WHERE v.owner_id = $1 AND v.breadcrumb_id = d.breadcrumb_id AND v.version >= d.version AND v.sensitivity = 'secret')
            THEN (d.payload::jsonb || '{\"context\": {}, \"redacted\": true}')::json ELSE d.payload END AS payload,
            d.last_error, d.attempts, d.dead_at
         FROM (SELECT id, sum(size_bytes) OVER (ORDER BY dead_at DESC, id) - size_bytes AS bytes_before
               FROM (SELECT id, size_bytes, dead_at FROM deliveries WHERE owner_id = $1 AND state = 'dead'
                     ORDER BY dead_at DESC, id LIMIT $2 OFFSET $3) counted) page
         JOIN deliveries d ON d.owner_id = $1 AND d.id = page.id
         JOIN webhooks w ON w.owner_id = $1 AND w.id = d.webhook_id
         WHERE page.bytes_before < $4 ORDER BY d.dead_at DESC, d.id",
    )
    .bind(owner_id)
    .bind(i64::from(limit))
    .bind(i64::from(offset))
    .bind(PAGE_BYTES)
    .fetch_all(tx.connection())
    .await?;
    let letter = |row: DeadRow| DeadLetter {
        id: row.id,
        webhook_id: row.webhook_id,
        agent_id: row.agent_id,
        url: row.url,
        payload: row.payload.0,
        last_error: row.last_error,
        attempts: row.attempts.unsigned_abs(),
        created_at: row.dead_at,
    };
    Ok(rows.into_iter().map(letter).collect())
}

pub(super) async fn retry(mut tx: TenantTransaction, id: Uuid) -> Result<()> {
    let done = sqlx::query(
        "UPDATE deliveries SET state = 'waiting', attempts = 0, due_at = now(), queued_at = now(), dead_at = NULL,
            last_error = NULL WHERE id = $1 AND state = 'dead'",
    )
    .bind(id)
    .execute(tx.connection())
    .await?;
    if done.rows_affected() == 0 {
        return Err(unknown(id));
    }
    tx.commit().await
}

pub(super) async fn delete(mut tx: TenantTransaction, id: Uuid) -> Result<()> {
    let done = sqlx::query("DELETE FROM deliveries WHERE id = $1 AND state = 'dead'")
        .bind(id)
        .execute(tx.connection())
        .await?;
    if done.rows_affected() == 0 {
        return Err(unknown(id));
    }
    tx.commit().await
}

/// A tenant has a bounded number of dead letters, so one transaction can delete them all.
pub(super) async fn delete_all(mut tx: TenantTransaction) -> Result<u64> {
    let owner_id = tx.owner_id;
    let mut count = 0;
    loop {
        let done = sqlx::query(
            "DELETE FROM deliveries WHERE owner_id = $1 AND id IN (
                SELECT id FROM deliveries WHERE owner_id = $1 AND state = 'dead' LIMIT $2)",
        )
        .bind(owner_id)
        .bind(BATCH)
        .execute(tx.connection())
        .await?;
        if done.rows_affected() == 0 {
            break;
        }
        count += done.rows_affected();
    }
    tx.commit().await?;
    Ok(count)
}
