//! The one statement that writes records and steps of calls.

use std::collections::HashMap;
use std::ops::Deref;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Profile, TtlType};
use sqlx::PgConnection;
use uuid::Uuid;

use super::prepared::{IdempotencyKey, PreparedRecord, array_text};
use super::write::{CallStep, WriteOp};
use crate::failure::Result;
use crate::from_row::from_row;
use crate::row::{sensitivity_text, visibility_text};
use crate::transaction::TenantTransaction;

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

    /// When this record was created, if it was written.
    pub(super) fn at(&self, record: Uuid) -> Option<DateTime<Utc>> {
        self.of_record(record)?.at
    }

    pub(super) fn is_empty(&self) -> bool {
        self.written.is_empty()
    }
}

/// One record of a statement.
struct Given<'r> {
    prepared: &'r PreparedRecord,
    /// For a response, the request that is written with it.
    answered: Option<&'r PreparedRecord>,
}

impl Deref for Given<'_> {
    type Target = PreparedRecord;

    fn deref(&self) -> &PreparedRecord {
        self.prepared
    }
}

impl<'r> Given<'r> {
    /// The record, followed by its response.
    fn of(record: &'r PreparedRecord) -> impl Iterator<Item = Self> {
        let answer = record.answer().map(|answer| Self { prepared: answer, answered: Some(record) });
        std::iter::once(Self { prepared: record, answered: None }).chain(answer)
    }

    /// The idempotency key. A response uses its request's.
    fn key(&self) -> Option<&'r IdempotencyKey> {
        self.answered.unwrap_or(self.prepared).key.as_ref()
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

const STATEMENT: &str = "SELECT written, number, at, before FROM write_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, \
                         $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, \
                         $30, $31, $32, $33, $34, $35, $36)";

/// Runs in its own transaction, unless the connection is already in one.
pub(super) async fn run<'w>(
    connection: &mut PgConnection,
    owner_id: Uuid,
    works: impl Iterator<Item = &'w WriteOp> + Clone,
) -> Result<WriteReceipts, sqlx::Error> {
    let records: Vec<Given<'_>> = works.clone().filter_map(WriteOp::record).flat_map(Given::of).collect();
    let steps: Vec<CallStep> = works.filter_map(WriteOp::step).collect();
    write(connection, owner_id, 0, &records, &steps).await
}

/// Writes one record, which the caller has validated, as part of a larger transaction.
pub(crate) async fn insert(tx: &mut TenantTransaction, record: &PreparedRecord) -> Result<()> {
    let (owner_id, place) = (tx.owner_id, tx.next_event());
    write(tx.connection(), owner_id, place, &[Given { prepared: record, answered: None }], &[]).await?;
    Ok(())
}

/// `first`: the position of the first record among the transaction's events.
async fn write(
    connection: &mut PgConnection,
    owner_id: Uuid,
    first: i32,
    records: &[Given<'_>],
    steps: &[CallStep],
) -> Result<WriteReceipts, sqlx::Error> {
    let rows: Vec<Row> = sqlx::query_as(STATEMENT)
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
        .bind(column(records, |record| record.key().map(|key| key.key.as_str())))
        .bind(column(records, |record| record.key().map(|key| key.fingerprint.as_str())))
        .bind(column(records, |record| record.call.as_ref().map(|call| call.tool.as_str())))
        .bind(column(records, |record| record.call.as_ref().map(|call| call.request_id.as_str())))
        .bind(column(records, |record| record.call.as_ref().and_then(|call| call.workspace.as_deref())))
        .bind(column(records, |record| {
            record.call.as_ref().map(|call| array_text(call.profiles.iter().map(Profile::as_str)))
        }))
        .bind(column(records, |record| Some(record.call.as_ref()?.deadline_ms? as f64)))
        .bind(column(records, |record| record.reservation().map(|reservation| reservation.runner_id)))
        .bind(column(records, |record| record.reservation().map(|reservation| reservation.lease_ms as f64)))
        .bind(column(records, |record| Some(record.reservation()?.max_attempts?.clamp(1, 10).cast_signed())))
        .bind(column(steps, |step| step.lease.request))
        .bind(column(steps, |step| step.lease.fence))
        .bind(column(steps, |step| step.attempts))
        .bind(column(steps, |step| step.response))
        .bind(column(records, |record| record.answer().map(|answer| answer.id)))
        .bind(column(records, |record| record.answered.map(|request| request.id)))
        .fetch_all(connection)
        .await?;
    let mut receipts = WriteReceipts::default();
    for row in rows {
        receipts.written.insert(row.written, WriteReceipt { number: row.number, at: row.at });
        receipts.before = receipts.before.or(row.before);
    }
    Ok(receipts)
}

fn column<'r, R, T>(rows: &'r [R], of: impl Fn(&'r R) -> T) -> Vec<T> {
    rows.iter().map(of).collect()
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
