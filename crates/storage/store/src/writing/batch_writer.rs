//! Queues writes, writes them to the database in batches, one after the other, and reports the
//! outcome to each write.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures::FutureExt;
use rcrt_breadcrumb::{Event, EventContext, EventKind, EventNumber, Sensitivity, StoreError, Visibility};
use tokio::sync::oneshot;
use tokio::time::sleep;
use uuid::Uuid;

use super::batch::{self, WriteReceipts};
use super::prepared::{CallStart, NewCall, PreparedRecord};
use super::queue::SLOW;
use super::write::{PendingWrite, WriteOp, WriteOutcome};
use crate::database::connections::Connection;
use crate::database::failure::{Failure, Result, code};
use crate::events::WrittenEvent;
use crate::writing::Writer;

/// The most attempts of a write, after conflicts with others and lost connections.
const ATTEMPTS: usize = 6;

impl Writer {
    fn max_writers(&self) -> usize {
        (self.database.max_connections() as usize / 4).max(1)
    }

    /// Writes durably, alone or together with other writes of the tenant. Once begun, the write
    /// happens even if the caller stops waiting.
    pub(crate) async fn write(self: &Arc<Self>, owner_id: Uuid, work: WriteOp) -> Result<WriteOutcome> {
        let (reply, outcome) = oneshot::channel();
        if self.write_queue.put(owner_id, PendingWrite { work, reply }, self.max_writers())? {
            start(self);
        }
        outcome.await.unwrap_or_else(|_| {
            Err(StoreError::Unavailable("the store dropped the write; try again later".into()).into())
        })
    }
}

fn start(writer: &Arc<Writer>) {
    writer.database.tasks.spawn(run(writer.clone()));
}

/// Runs until nothing is queued.
async fn run(writer: Arc<Writer>) {
    while let Some((owner_id, batch)) = writer.write_queue.next() {
        // Even after a panic, the tenant's writer must be released.
        let carried = AssertUnwindSafe(write_batch(&writer, owner_id, batch)).catch_unwind();
        tokio::pin!(carried);
        let ended = loop {
            tokio::select! {
                biased;
                ended = &mut carried => break ended,
                () = sleep(SLOW) => {
                    if writer.write_queue.needs_another_writer(owner_id, writer.max_writers()) {
                        start(&writer);
                    }
                }
            }
        };
        if ended.is_err() {
            tracing::error!(tenant = %owner_id, "writing a batch panicked");
        }
        writer.write_queue.done(owner_id);
    }
}

async fn write_batch(writer: &Arc<Writer>, owner_id: Uuid, batch: Vec<PendingWrite>) {
    if batch.is_empty() {
        return;
    }
    let mut conn = match writer.database.acquire().await {
        Ok(conn) => conn,
        Err(failure) => return fail(batch, failure),
    };
    let result = batch::run(conn.connection(), owner_id, batch.iter().map(|write| &write.work)).await;
    conn.return_after(&result);
    let is_doubtful = match result {
        Ok(receipts) => return finish(writer, owner_id, batch, &receipts),
        Err(error) => {
            let failure = Failure::from(error);
            if batch.len() == 1 && !failure.is_unreachable() && !failure.is_collision() {
                return fail(batch, failure);
            }
            failure.is_unreachable()
        }
    };
    one_by_one(writer, owner_id, batch, is_doubtful).await;
}

/// `is_doubtful`: the connection was lost, so it is unknown whether they were written.
async fn one_by_one(writer: &Arc<Writer>, owner_id: Uuid, batch: Vec<PendingWrite>, is_doubtful: bool) {
    let mut rest = batch.into_iter();
    while let Some(write) = rest.next() {
        let written = write_alone(writer, owner_id, &write.work, is_doubtful).await;
        match written {
            Ok(receipts) => finish(writer, owner_id, vec![write], &receipts),
            // The database is unreachable or a lock blocks it: the others would wait as long again.
            Err(failure) if failure.is_unreachable() || failure.ran_out_of_time() => {
                return fail(std::iter::once(write).chain(rest), failure);
            }
            Err(failure) => fail([write], failure),
        }
    }
}

async fn write_alone(
    writer: &Arc<Writer>,
    owner_id: Uuid,
    work: &WriteOp,
    mut is_doubtful: bool,
) -> Result<WriteReceipts> {
    for attempt in 1.. {
        let mut conn =
            if is_doubtful { writer.database.acquire_tested().await? } else { writer.database.acquire().await? };
        let result = try_once(&mut conn, owner_id, work, is_doubtful).await;
        conn.return_after(&result);
        match result.map_err(Failure::from) {
            Ok(receipts) => return Ok(receipts),
            Err(failure) if attempt < ATTEMPTS && (failure.is_unreachable() || failure.is_collision()) => {
                is_doubtful |= failure.is_unreachable();
            }
            Err(failure) => return Err(failure),
        }
    }
    Err(StoreError::Internal("a write ran out of attempts".into()).into())
}

async fn try_once(
    conn: &mut Connection,
    owner_id: Uuid,
    work: &WriteOp,
    is_doubtful: bool,
) -> Result<WriteReceipts, sqlx::Error> {
    let once = std::iter::once(work);
    // A repeated start counts once, and a record is found by its id.
    let Some(record) = work.record().filter(|_| is_doubtful) else {
        return batch::run(conn.connection(), owner_id, once).await;
    };
    if let Some(receipts) = batch::find_written(conn.connection(), owner_id, record.id).await? {
        return Ok(receipts);
    }
    let result = batch::run(conn.connection(), owner_id, once).await;
    // The write on the lost connection may have been committed only now, and so conflict with this
    // one.
    let is_refused = match &result {
        Ok(receipts) => receipts.is_empty(),
        Err(error) => code(error).as_deref() == Some("23505"),
    };
    if is_refused && let Some(receipts) = batch::find_written(conn.connection(), owner_id, record.id).await? {
        return Ok(receipts);
    }
    result
}

/// Subscribers are woken before the writers continue, so that a writer cannot be ahead of them.
fn finish(writer: &Writer, owner_id: Uuid, batch: Vec<PendingWrite>, receipts: &WriteReceipts) {
    let is_followed = writer.feeds.is_followed(owner_id);
    let (mut events, mut queues, mut has_records) = (Vec::new(), false, false);
    let mut replies = Vec::with_capacity(batch.len());
    for write in batch {
        let receipt = receipts.of(&write.work);
        let is_response = matches!(write.work, WriteOp::Complete { .. });
        let outcome = receipt.map_or(WriteOutcome::Refused, |receipt| WriteOutcome::Written(receipt.at));
        replies.push((write.reply, outcome));
        if receipt.is_some()
            && let Some(record) = write.work.into_record()
        {
            has_records = true;
            // Quota was reserved for new records. A response needs none.
            let of_response = record.answer().map_or(0, |answer| answer.size_bytes);
            if is_response {
                writer.quotas.add_usage(owner_id, 1, record.size_bytes);
            } else if of_response > 0 {
                writer.quotas.add_usage(owner_id, 1, of_response);
            }
            queues |= record.call.as_ref().is_some_and(|call| matches!(call.start, CallStart::Queued));
            if is_followed {
                events.extend(created_events(owner_id, record, receipts));
            }
        }
    }
    if queues {
        writer.queue_notifier.queued(owner_id);
    }
    if has_records {
        writer.feeds.publish(owner_id, events, receipts.before);
        writer.announcer.announce(owner_id);
    } else {
        writer.feeds.wake_waiting(owner_id);
    }
    for (reply, outcome) in replies {
        // A closed receiver does not need the result.
        let _ = reply.send(Ok(outcome));
    }
}

/// The event of the record and then that of the response that was written with it.
fn created_events(owner_id: Uuid, mut record: PreparedRecord, receipts: &WriteReceipts) -> Vec<WrittenEvent> {
    let answer = match record.call.take() {
        Some(NewCall { start: CallStart::Answered(answer, _), .. }) => Some(*answer),
        _ => None,
    };
    [Some(record), answer]
        .into_iter()
        .flatten()
        .filter_map(|record| created_event(owner_id, record, receipts))
        .collect()
}

/// `None` if not everything that subscribers need is known.
fn created_event(owner_id: Uuid, record: PreparedRecord, receipts: &WriteReceipts) -> Option<WrittenEvent> {
    let (number, at) = receipts.of_record(record.id).and_then(|receipt| receipt.number.zip(receipt.at))?;
    let (size_bytes, created_by) = (record.size_bytes, record.agent);
    let redacted = record.record.sensitivity == Sensitivity::Secret;
    let event = Event {
        number: EventNumber(number),
        kind: EventKind::Created,
        breadcrumb_id: record.id,
        owner_id,
        version: 1,
        tags: record.record.tags,
        schema_name: record.record.schema_name,
        updated_at: at,
        context: if redacted { EventContext::default() } else { record.record.context.into() },
        redacted,
        private: record.record.visibility == Visibility::Private,
    };
    Some(WrittenEvent { event, size_bytes, created_by })
}

fn fail(writes: impl IntoIterator<Item = PendingWrite>, failure: Failure) {
    let error = StoreError::from(failure);
    for PendingWrite { reply, .. } in writes {
        let _ = reply.send(Err(error.clone().into()));
    }
}
