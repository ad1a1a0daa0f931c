//! The one statement that writes records and steps of calls.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::prepared::PreparedRecord;
use super::rows::NewRecord;
use super::write::{CallStep, WriteOp};
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

/// What a statement wrote.
#[derive(Default)]
pub(super) struct WriteReceipts {
    /// By [`WriteOp::receipt_id`].
    written: HashMap<Uuid, WriteReceipt>,
    /// The number of the tenant's newest event before these, if no other event can come between.
    pub(super) before: Option<i64>,
}

/// The receipt of one write. A start has neither field.
#[derive(Clone, Copy)]
pub(super) struct WriteReceipt {
    /// The number of the record's event, or `None` if it is no longer known.
    pub(super) number: Option<i64>,
    /// When the record was created.
    pub(super) at: Option<DateTime<Utc>>,
}

impl WriteReceipts {
    pub(super) fn one(written: Uuid, at: Option<DateTime<Utc>>) -> Self {
        Self { written: HashMap::from([(written, WriteReceipt { number: None, at })]), before: None }
    }

    pub(super) fn of(&self, work: &WriteOp) -> Option<WriteReceipt> {
        self.of_record(work.receipt_id())
    }

    /// The receipt of this record, if it was written.
    pub(super) fn of_record(&self, record: Uuid) -> Option<WriteReceipt> {
        self.written.get(&record).copied()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }
}

from_row! {
    struct Row {
        written: Uuid,
        number: Option<i64>,
        at: Option<DateTime<Utc>>,
        before: Option<i64>,
    }
}

/// Runs in its own transaction, unless the connection is already in one.
pub(super) async fn run<'w>(
    connection: &mut PgConnection,
    owner_id: Uuid,
    works: impl Iterator<Item = &'w WriteOp> + Clone,
) -> Result<WriteReceipts, sqlx::Error> {
    let records = NewRecord::all(works.clone().filter_map(WriteOp::record));
    let steps: Vec<CallStep> = works.filter_map(WriteOp::step).collect();
    write(connection, owner_id, &records, &steps).await
}

/// Writes one record, which the caller has validated, as part of a larger transaction.
pub(crate) async fn insert(tx: &mut TenantTransaction, record: &PreparedRecord) -> Result<()> {
    let (owner_id, event_index) = (tx.owner_id, tx.next_event());
    write(tx.connection(), owner_id, &[NewRecord::alone(event_index, record)], &[]).await?;
    Ok(())
}

async fn write(
    connection: &mut PgConnection,
    owner_id: Uuid,
    records: &[NewRecord<'_>],
    steps: &[CallStep],
) -> Result<WriteReceipts, sqlx::Error> {
    let rows: Vec<Row> = sqlx::query_as("SELECT written, number, at, before FROM write_batch($1, $2, $3)")
        .bind(owner_id)
        .bind(records)
        .bind(steps)
        .fetch_all(connection)
        .await?;
    let mut receipts = WriteReceipts::default();
    for row in rows {
        receipts.written.insert(row.written, WriteReceipt { number: row.number, at: row.at });
        receipts.before = receipts.before.or(row.before);
    }
    Ok(receipts)
}

/// Whether a record was written on a connection that was lost. It may have been deleted since.
pub(super) async fn find_written(
    connection: &mut PgConnection,
    owner_id: Uuid,
    id: Uuid,
) -> Result<Option<WriteReceipts>, sqlx::Error> {
    let mut tx = sqlx::Connection::begin(connection).await?;
    sqlx::query("SELECT set_config('rcrt.tenant', $1, true), set_config('rcrt.agent', '*', true)")
        .bind(owner_id.to_string())
        .execute(&mut *tx)
        .await?;
    let (is_written, at): (bool, Option<DateTime<Utc>>) = sqlx::query_as(
        "SELECT b.id IS NOT NULL OR EXISTS (SELECT FROM breadcrumb_versions WHERE breadcrumb_id = $1), b.created_at
         FROM (SELECT $1 AS id) given LEFT JOIN breadcrumbs b USING (id)",
    )
    .bind(id)
    .fetch_one(&mut *tx)
    .await?;
    Ok(is_written.then(|| WriteReceipts::one(id, at)))
}
