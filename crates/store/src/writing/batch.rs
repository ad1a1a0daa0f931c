//! The one statement that writes records and steps of calls.

use std::collections::HashMap;

use breadcrumb::TtlType;
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::prepared::{Prepared, array_text};
use super::write::{Step, Work};
use crate::failure::Done;
use crate::row::{sensitivity_text, visibility_text};
use crate::transaction::TenantTransaction;

/// What was written, by [`Work::mark`], with the numbers and the moments of the records' events.
pub(super) type Marks = HashMap<Uuid, Option<(i64, DateTime<Utc>)>>;

const STATEMENT: &str = "SELECT written, number, at FROM write_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
                         $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, \
                         $30, $31)";

/// In a transaction of its own, unless the connection is in one.
pub(super) async fn run<'w>(
    connection: &mut PgConnection,
    owner_id: Uuid,
    works: impl Iterator<Item = &'w Work> + Clone,
) -> Result<Marks, sqlx::Error> {
    let records: Vec<&Prepared> = works.clone().filter_map(Work::record).collect();
    let steps: Vec<Step> = works.filter_map(Work::step).collect();
    write(connection, owner_id, 0, &records, &steps).await
}

/// Writes one record, which was checked before, as a part of a larger transaction.
pub(crate) async fn insert(tx: &mut TenantTransaction, record: &Prepared) -> Done<()> {
    let (owner_id, place) = (tx.owner_id, tx.next_event());
    write(tx.connection(), owner_id, place, &[record], &[]).await?;
    Ok(())
}

/// `first`: the place of the first record among the transaction's events.
async fn write(
    connection: &mut PgConnection,
    owner_id: Uuid,
    first: i32,
    records: &[&Prepared],
    steps: &[Step],
) -> Result<Marks, sqlx::Error> {
    let rows: Vec<(Uuid, Option<i64>, Option<DateTime<Utc>>)> = sqlx::query_as(STATEMENT)
        .bind(owner_id)
        .bind((first..).take(records.len()).collect::<Vec<i32>>())
        .bind(column(records, |record| record.id))
        .bind(column(records, |record| record.record.title.as_str()))
        .bind(column(records, |record| record.record.description.as_deref()))
        .bind(column(records, |record| record.record.semantic_version.as_deref()))
        .bind(column(records, |record| record.context.as_str()))
        .bind(column(records, |record| record.tags.as_str()))
        .bind(column(records, |record| record.record.schema_name.as_deref()))
        .bind(column(records, |record| record.llm_hints.as_deref()))
        .bind(column(records, |record| visibility_text(record.record.visibility)))
        .bind(column(records, |record| sensitivity_text(record.record.sensitivity)))
        .bind(column(records, |record| record.checksum.as_str()))
        .bind(column(records, |record| record.size_bytes))
        .bind(column(records, |record| record.ttl))
        .bind(column(records, |record| record.record.ttl_type.map(TtlType::as_str)))
        .bind(column(records, |record| record.ttl_config.as_deref()))
        .bind(column(records, |record| record.agent))
        .bind(column(records, |record| record.label_words.as_str()))
        .bind(column(records, |record| record.context_words.as_str()))
        .bind(column(records, |record| record.key.as_ref().map(|key| key.key.as_str())))
        .bind(column(records, |record| record.key.as_ref().map(|key| key.fingerprint.as_str())))
        .bind(column(records, |record| record.call.as_ref().map(|call| call.tool.as_str())))
        .bind(column(records, |record| record.call.as_ref().map(|call| call.request_id.as_str())))
        .bind(column(records, |record| record.call.as_ref().and_then(|call| call.workspace.as_deref())))
        .bind(column(records, |record| record.call.as_ref().map(|call| array_text(call.profiles.iter().copied()))))
        .bind(column(records, |record| Some(record.call.as_ref()?.deadline_ms? as f64)))
        .bind(column(steps, |step| step.lease.request))
        .bind(column(steps, |step| step.lease.fence))
        .bind(column(steps, |step| step.max_attempts))
        .bind(column(steps, |step| step.response))
        .fetch_all(connection)
        .await?;
    Ok(rows.into_iter().map(|(mark, number, at)| (mark, number.zip(at))).collect())
}

fn column<'r, R, T>(rows: &'r [R], of: impl Fn(&'r R) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
}

/// Whether the record was written, and perhaps deleted since.
pub(super) async fn is_written(connection: &mut PgConnection, owner_id: Uuid, id: Uuid) -> Result<bool, sqlx::Error> {
    let mut tx = sqlx::Connection::begin(connection).await?;
    sqlx::query("SELECT set_config('rcrt.tenant', $1, true), set_config('rcrt.agent', '*', true)")
        .bind(owner_id.to_string())
        .execute(&mut *tx)
        .await?;
    sqlx::query_scalar(
        "SELECT EXISTS (SELECT FROM breadcrumbs WHERE id = $1)
            OR EXISTS (SELECT FROM breadcrumb_versions WHERE breadcrumb_id = $1)",
    )
    .bind(id)
    .fetch_one(&mut *tx)
    .await
}
