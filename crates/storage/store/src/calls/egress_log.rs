//! The egress log of a tenant: written in batches, read newest first, deleted after its retention.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    EgressEntry, EgressOutcome, EgressQuery, EgressRecord, MAX_EGRESS_ENTRIES, StoreError, Violations,
};
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use crate::database::Database;
use crate::database::batches::repeat;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

/// The most entries of one tenant. The oldest are deleted first.
pub(crate) const MOST_ENTRIES: i64 = 1_000_000;
/// Entries that one transaction deletes.
const BATCH: i64 = 5000;

from_row! {
    struct EgressRow {
        id: i64,
        at: DateTime<Utc>,
        agent_id: Option<Uuid>,
        tool: String,
        tool_id: Option<Uuid>,
        call: Option<Uuid>,
        host: String,
        port: i32,
        method: String,
        outcome: String,
        reason: Option<String>,
        status: Option<i32>,
        bytes_out: i64,
        bytes_in: i64,
        duration_ms: i64,
    }
}

impl From<EgressRow> for EgressEntry {
    fn from(row: EgressRow) -> Self {
        let record = EgressRecord {
            at: row.at,
            agent_id: row.agent_id,
            tool: row.tool,
            tool_id: row.tool_id,
            call: row.call,
            host: row.host,
            port: u16::try_from(row.port).unwrap_or_default(),
            method: row.method,
            // A newer version may have written an outcome that this version does not know.
            outcome: row.outcome.parse().unwrap_or(EgressOutcome::Failed),
            reason: row.reason,
            status: row.status.and_then(|status| u16::try_from(status).ok()),
            bytes_out: row.bytes_out.unsigned_abs(),
            bytes_in: row.bytes_in.unsigned_abs(),
            duration_ms: row.duration_ms.unsigned_abs(),
        };
        Self { id: row.id, record }
    }
}

pub(crate) fn check(records: &[EgressRecord]) -> Result<(), StoreError> {
    if records.len() > MAX_EGRESS_ENTRIES {
        let why = format!("must have at most {MAX_EGRESS_ENTRIES} entries, has {}", records.len());
        return Err(Violations::one("entries", why).into());
    }
    for (index, record) in records.iter().enumerate() {
        record.check(&format!("entries[{index}]"))?;
    }
    Ok(())
}

pub(crate) async fn write(mut tx: TenantTransaction, records: &[EgressRecord]) -> Result<()> {
    if records.is_empty() {
        return Ok(());
    }
    let owner_id = tx.owner_id;
    let number = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    let mut insert = QueryBuilder::<Postgres>::new(
        "INSERT INTO egress_log (owner_id, at, agent_id, tool, tool_id, call, host, port, method, outcome, reason, status,
             bytes_out, bytes_in, duration_ms) ",
    );
    insert.push_values(records, |mut row, record| {
        row.push_bind(owner_id)
            .push_bind(record.at)
            .push_bind(record.agent_id)
            .push_bind(&record.tool)
            .push_bind(record.tool_id)
            .push_bind(record.call)
            .push_bind(&record.host)
            .push_bind(i32::from(record.port))
            .push_bind(&record.method)
            .push_bind(record.outcome.as_str())
            .push_bind(&record.reason)
            .push_bind(record.status.map(i32::from))
            .push_bind(number(record.bytes_out))
            .push_bind(number(record.bytes_in))
            .push_bind(number(record.duration_ms));
    });
    insert.build().persistent(false).execute(tx.connection()).await?;
    tx.commit().await
}

pub(crate) fn check_query(query: &EgressQuery) -> Result<(), StoreError> {
    let bounds = 1..=MAX_EGRESS_ENTRIES as u32;
    if bounds.contains(&query.limit) {
        return Ok(());
    }
    Err(Violations::one("limit", format!("must be from 1 to {MAX_EGRESS_ENTRIES}")).into())
}

pub(crate) async fn read(mut tx: TenantTransaction, query: &EgressQuery) -> Result<Vec<EgressEntry>> {
    let rows: Vec<EgressRow> = sqlx::query_as(
        "SELECT id, at, agent_id, tool, tool_id, call, host, port, method, outcome, reason, status, bytes_out, bytes_in,
                duration_ms
         FROM egress_log
         WHERE owner_id = current_tenant()
           AND ($1::bigint IS NULL OR id < $1) AND ($2::text IS NULL OR tool = $2) AND ($3::text IS NULL OR host = $3)
           AND ($4::uuid IS NULL OR agent_id = $4) AND ($5::uuid IS NULL OR call = $5)
           AND ($6::text IS NULL OR outcome = $6)
           AND ($7::timestamptz IS NULL OR at >= $7) AND ($8::timestamptz IS NULL OR at < $8)
         ORDER BY id DESC LIMIT $9",
    )
    .bind(query.before)
    .bind(&query.tool)
    .bind(&query.host)
    .bind(query.agent_id)
    .bind(query.call)
    .bind(query.outcome.map(EgressOutcome::as_str))
    .bind(query.since)
    .bind(query.until)
    .bind(i64::from(query.limit))
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(EgressEntry::from).collect())
}

/// Deletes entries from before this time, and the oldest beyond `most`, in all tenants. Returns how
/// many.
pub(crate) async fn prune(database: &Arc<Database>, before: DateTime<Utc>, most: i64) -> Result<usize> {
    let mut count = 0;
    let mut tx = database.begin("BEGIN").await?;
    let tenants: Vec<Uuid> = sqlx::query_scalar("SELECT tenants_with_old_egress($1, $2)")
        .bind(before)
        .bind(most)
        .fetch_all(&mut *tx)
        .await?;
    drop(tx);
    for tenant in tenants {
        count += repeat(database, tenant, Duration::MAX, |tx| forget(tx, before, most)).await?;
    }
    Ok(count)
}

/// Deletes at most a batch of each.
async fn forget(mut tx: TenantTransaction, before: DateTime<Utc>, most: i64) -> Result<usize> {
    let forgotten = sqlx::query(
        "DELETE FROM egress_log WHERE owner_id = current_tenant() AND id = ANY (ARRAY(
            (SELECT id FROM egress_log WHERE owner_id = current_tenant() AND at < $1 ORDER BY id LIMIT $3)
            UNION
            (SELECT id FROM (SELECT id FROM egress_log WHERE owner_id = current_tenant() ORDER BY id DESC OFFSET $2) old
             ORDER BY id LIMIT $3)))",
    )
    .bind(before)
    .bind(most)
    .bind(BATCH)
    .execute(tx.connection())
    .await?;
    tx.commit().await?;
    Ok(usize::try_from(forgotten.rows_affected()).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use chrono::Utc;
    use rcrt_breadcrumb::Tenancy;
    use rcrt_test_database::TestDatabase;

    use crate::database::transaction::TenantTransaction;
    use crate::{SecretsKey, Store, StoreOptions};

    #[tokio::test]
    async fn oldest_entries_beyond_the_limit_are_deleted() {
        let database = TestDatabase::new().await;
        let options = StoreOptions {
            app_url: Some(database.app_url.clone()),
            ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
        };
        let store = Store::open(options, &|_| {}).await.unwrap();
        let tenant = store.ensure_tenant("one").await.unwrap().id;
        let insert = format!(
            "INSERT INTO egress_log (owner_id, at, tool, host, port, method, outcome, bytes_out, bytes_in, duration_ms)
             SELECT '{tenant}', now(), 't', 'host-' || n, 443, 'GET', 'failed', 0, 0, 0 FROM generate_series(1, 12000) n"
        );
        database.execute(&insert).await;
        assert_eq!(
            super::prune(&store.inner.database, Utc::now() - store.inner.retention.egress, 100).await.unwrap(),
            11_900
        );
        let mut tx = TenantTransaction::begin(&store.inner.database, tenant).await.unwrap();
        let left: (i64, String) =
            sqlx::query_as("SELECT count(*), min(host) FROM egress_log").fetch_one(tx.connection()).await.unwrap();
        assert_eq!(left, (100, "host-11901".into()));
        drop(tx);
        store.close().await;
    }
}
