//! Deletes what is stored for a limited time: events, requests and responses, old versions, and the
//! results of idempotent creates.

use chrono::{DateTime, TimeDelta, Utc};
use uuid::Uuid;

use super::{Remains, remove_all};
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// How long a repeated create returns the first result.
pub(crate) const KEY_RETENTION: TimeDelta = TimeDelta::days(1);

const BATCH: i64 = 500;
/// Records that one transaction deletes.
pub(crate) const CALLS: i64 = 100;

/// Deletes events from before this time, the oldest first, unless they go with their range.
/// `archived_only`: those that are in a file. With the event of a deletion, it also deletes the
/// record's versions and its call. Returns how many: at most a batch.
pub(crate) async fn events(mut tx: TenantTransaction, before: DateTime<Utc>, archived_only: bool) -> Result<usize> {
    let forgotten: Vec<(Uuid, bool)> = sqlx::query_as(
        "WITH forgotten AS (
            DELETE FROM events WHERE owner_id = current_tenant() AND number IN (SELECT old_open_events($1, $2, $3))
            RETURNING owner_id, number, breadcrumb_id, kind),
         shared AS (
            INSERT INTO pruned_events AS f (owner_id, number)
            SELECT owner_id, max(number) FROM forgotten GROUP BY owner_id
            ON CONFLICT (owner_id) DO UPDATE SET number = greatest(f.number, EXCLUDED.number))
         SELECT breadcrumb_id, kind = 'breadcrumb.deleted' FROM forgotten",
    )
    .bind(before)
    .bind(archived_only)
    .bind(BATCH)
    .fetch_all(tx.connection())
    .await?;
    sqlx::query("DELETE FROM shared_events WHERE owner_id = current_tenant() AND at < $1")
        .bind(before)
        .execute(tx.connection())
        .await?;
    let deleted: Vec<Uuid> = forgotten.iter().filter(|(_, is_last)| *is_last).map(|(id, _)| *id).collect();
    delete_remains(&mut tx, &deleted).await?;
    tx.commit().await?;
    Ok(forgotten.len())
}

/// Does for the deletions in a range of numbers what [`events`] does for each, before the range is
/// dropped. Takes a batch of them after this number, and returns the last one; `None` if there are
/// no more.
pub(crate) async fn deletions(mut tx: TenantTransaction, after: i64, next_number: i64) -> Result<Option<i64>> {
    let found: Vec<(i64, Uuid)> = sqlx::query_as(
        "SELECT number, breadcrumb_id FROM events
         WHERE owner_id = current_tenant() AND number > $1 AND number < $2 AND kind = 'breadcrumb.deleted'
         ORDER BY number LIMIT $3",
    )
    .bind(after)
    .bind(next_number)
    .bind(BATCH)
    .fetch_all(tx.connection())
    .await?;
    let deleted: Vec<Uuid> = found.iter().map(|(_, id)| *id).collect();
    delete_remains(&mut tx, &deleted).await?;
    tx.commit().await?;
    Ok(found.last().map(|(number, _)| *number))
}

/// Deletes the versions and grants of deleted records, and their calls.
async fn delete_remains(tx: &mut TenantTransaction, deleted: &[Uuid]) -> Result<()> {
    // A record that was imported again keeps its versions and grants.
    let deleted: Vec<Uuid> = sqlx::query_scalar(
        "SELECT d.id FROM unnest($1::uuid[]) AS d (id)
         WHERE NOT EXISTS (SELECT FROM breadcrumbs b WHERE b.owner_id = current_tenant() AND b.id = d.id)",
    )
    .bind(deleted)
    .fetch_all(tx.connection())
    .await?;
    if !deleted.is_empty() {
        sqlx::query("DELETE FROM breadcrumb_versions WHERE breadcrumb_id = ANY($1)")
            .bind(&deleted)
            .execute(tx.connection())
            .await?;
        sqlx::query("DELETE FROM acl_grants WHERE breadcrumb_id = ANY($1)")
            .bind(&deleted)
            .execute(tx.connection())
            .await?;
        // A call exists as long as its request or its response: it says whose response that is.
        sqlx::query(
            "DELETE FROM calls c WHERE (c.request = ANY($1) OR c.response = ANY($1)) AND c.state = 'finished'
                AND NOT EXISTS (SELECT FROM breadcrumbs b
                    WHERE b.owner_id = c.owner_id AND b.id IN (c.request, c.response))",
        )
        .bind(&deleted)
        .execute(tx.connection())
        .await?;
    }
    Ok(())
}

/// Deletes responses and logs from before this time, and requests whose calls finished before it.
/// The requests of open calls stay. Of their events, only the contexts are deleted too. A record
/// that another transaction has locked is left for the next batch. Returns how many: at most a
/// batch.
pub(crate) async fn calls(mut tx: TenantTransaction, before: DateTime<Utc>) -> Result<usize> {
    let found = old_calls(&mut tx, before, CALLS).await?;
    if found.is_empty() { Ok(0) } else { delete_calls(tx, &found, before).await }
}

/// The responses and logs, and the requests, that [`calls`] deletes: at most so many of each.
pub(crate) async fn old_calls(tx: &mut TenantTransaction, before: DateTime<Utc>, most: i64) -> Result<Vec<Uuid>> {
    Ok(sqlx::query_scalar(OLD_CALLS).bind(before).bind(most).fetch_all(tx.connection()).await?)
}

/// Deletes these requests, responses and logs, unless they were changed after this time or are
/// locked. Returns how many were deleted.
pub(crate) async fn delete_calls(mut tx: TenantTransaction, found: &[Uuid], before: DateTime<Utc>) -> Result<usize> {
    let free = tx.try_lock_all(found).await?;
    let old: Vec<(Uuid, i64)> = sqlx::query_as(
        "SELECT id, size_bytes FROM breadcrumbs WHERE id = ANY($1) AND updated_at < $2 ORDER BY id FOR UPDATE SKIP LOCKED",
    )
    .bind(&free)
    .bind(before)
    .fetch_all(tx.connection())
    .await?;
    if !old.is_empty() {
        let (ids, bytes): (Vec<Uuid>, Vec<i64>) = old.iter().copied().unzip();
        remove_all(&mut tx, None, &ids, Remains::Labels).await?;
        tx.count_usage(-old.len().cast_signed() as i64, -bytes.iter().sum::<i64>());
    }
    tx.commit().await?;
    Ok(old.len())
}

/// By the index on schema names and times of change. A response never changes, so its time is the
/// end of its call.
const OLD_CALLS: &str = "
    (SELECT id FROM breadcrumbs
     WHERE owner_id = current_tenant() AND updated_at < $1
        AND schema_name IN ('tool.response.v1', 'tool.create.response.v1', 'tool.log.v1')
     ORDER BY updated_at LIMIT $2)
    UNION ALL
    (SELECT id FROM breadcrumbs b
     WHERE owner_id = current_tenant() AND schema_name IN ('tool.request.v1', 'tool.create.request.v1') AND updated_at < $1
        AND NOT EXISTS (SELECT FROM calls c WHERE c.owner_id = b.owner_id AND c.request = b.id
            AND (c.state <> 'finished' OR c.finished_at >= $1))
     ORDER BY updated_at LIMIT $2)";

/// Deletes versions of existing records that were replaced before this time. Returns how many.
/// Those behind a draft of a tool stay: the newest that is no draft goes on to serve.
pub(crate) async fn versions(tx: TenantTransaction, before: DateTime<Utc>) -> Result<usize> {
    delete(
        tx,
        before,
        "DELETE FROM breadcrumb_versions WHERE ctid = ANY (ARRAY(
            SELECT v.ctid FROM breadcrumb_versions v
            WHERE v.replaced_at < $1 AND EXISTS (
                SELECT FROM breadcrumbs b WHERE b.owner_id = v.owner_id AND b.id = v.breadcrumb_id
                    AND NOT coalesce(b.schema_name IN ('tool.code.v1', 'tool.v1') AND 'tool:draft' = ANY (b.tags), false))
            LIMIT $2))",
    )
    .await
}

pub(crate) async fn keys(tx: TenantTransaction, before: DateTime<Utc>) -> Result<usize> {
    delete(
        tx,
        before,
        "DELETE FROM idempotency_keys WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM idempotency_keys WHERE created_at < $1 LIMIT $2))",
    )
    .await
}

/// Deletes one batch.
async fn delete(mut tx: TenantTransaction, before: DateTime<Utc>, sql: &'static str) -> Result<usize> {
    let deleted = sqlx::query(sql).bind(before).bind(BATCH).execute(tx.connection()).await?;
    tx.commit().await?;
    Ok(deleted.rows_affected() as usize)
}
