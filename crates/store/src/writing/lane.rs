//! A lane carries one batch after the other into the database, and tells each write what became of it.

use std::sync::Arc;

use breadcrumb::{Event, EventKind, EventNumber, StoreError};
use uuid::Uuid;

use super::batch::{self, Marks};
use super::write::{Outcome, Work, Write};
use crate::failure::{Done, Failure, is_unreachable};
use crate::kept::Lent;
use crate::store::Inner;

/// How often a write is tried at most: collisions with others, and lost connections.
const ATTEMPTS: usize = 6;

/// Until nothing waits any more.
pub(super) async fn run(store: Arc<Inner>) {
    while let Some((owner_id, batch)) = store.writes.next() {
        carry(&store, owner_id, batch).await;
        store.writes.done(owner_id);
    }
}

async fn carry(store: &Arc<Inner>, owner_id: Uuid, batch: Vec<Write>) {
    let mut is_doubtful = false;
    match store.lend().await {
        Ok(mut lent) => match batch::run(lent.connection(), owner_id, batch.iter().map(|write| &write.work)).await {
            Ok(marks) => {
                lent.give_back();
                return settle(store, owner_id, batch, &marks);
            }
            Err(error) if is_unreachable(&error) => {
                lent.discard();
                is_doubtful = true;
            }
            Err(error) => {
                lent.give_back();
                let failure = Failure::from(error);
                if batch.len() == 1 && !failure.is_collision() {
                    return fail(batch, failure);
                }
            }
        },
        Err(failure) => return fail(batch, failure),
    }
    one_by_one(store, owner_id, batch, is_doubtful).await;
}

/// `is_doubtful`: the connection was lost, and nobody knows whether they were written.
async fn one_by_one(store: &Arc<Inner>, owner_id: Uuid, batch: Vec<Write>, is_doubtful: bool) {
    let mut rest = batch.into_iter();
    while let Some(write) = rest.next() {
        match alone(store, owner_id, &write.work, is_doubtful).await {
            Ok(marks) => settle(store, owner_id, vec![write], &marks),
            // Without a database the others need not wait for it as long again.
            Err(failure) if failure.is_unreachable() => {
                fail(std::iter::once(write).chain(rest), failure);
                return;
            }
            Err(failure) => fail([write], failure),
        }
    }
}

async fn alone(store: &Arc<Inner>, owner_id: Uuid, work: &Work, mut is_doubtful: bool) -> Done<Marks> {
    for attempt in 1.. {
        let mut lent = if is_doubtful { store.lend_tested().await? } else { store.lend().await? };
        let result = try_once(&mut lent, owner_id, work, is_doubtful).await;
        match result {
            Ok(marks) => {
                lent.give_back();
                return Ok(marks);
            }
            Err(error) if is_unreachable(&error) && attempt < ATTEMPTS => {
                lent.discard();
                is_doubtful = true;
            }
            Err(error) => {
                lent.give_back();
                let failure = Failure::from(error);
                if !failure.is_collision() || attempt >= ATTEMPTS {
                    return Err(failure);
                }
            }
        }
    }
    Err(StoreError::Internal("a write was tried without an end".into()).into())
}

async fn try_once(lent: &mut Lent, owner_id: Uuid, work: &Work, is_doubtful: bool) -> Result<Marks, sqlx::Error> {
    // A start that is repeated is one start; a record has its id, by which it is found.
    if is_doubtful
        && let Some(record) = work.record()
        && batch::is_written(lent.connection(), owner_id, record.id).await?
    {
        return Ok([(record.id, None)].into());
    }
    batch::run(lent.connection(), owner_id, std::iter::once(work)).await
}

/// What hears of the writes is woken before their makers go on, so that nobody can be ahead of it.
fn settle(store: &Inner, owner_id: Uuid, batch: Vec<Write>, marks: &Marks) {
    let is_followed = store.feeds.is_followed(owner_id);
    let (mut events, mut queues, mut has_records) = (Vec::new(), false, false);
    let mut replies = Vec::with_capacity(batch.len());
    for write in batch {
        let mark = marks.get(&write.work.mark());
        replies.push((write.reply, if mark.is_some() { Outcome::Written } else { Outcome::Refused }));
        if let Some(event) = mark
            && let Some(record) = write.work.into_record()
        {
            has_records = true;
            queues |= record.call.is_some();
            if is_followed && let Some((number, at)) = event {
                let bytes = record.size_bytes;
                let event = Event {
                    number: EventNumber(*number),
                    kind: EventKind::Created,
                    breadcrumb_id: record.id,
                    owner_id,
                    version: 1,
                    tags: record.record.tags,
                    schema_name: record.record.schema_name,
                    updated_at: *at,
                    context: record.record.context,
                };
                events.push((event, bytes));
            }
        }
    }
    if queues {
        store.hints.queued(owner_id);
    }
    if has_records {
        store.feeds.wrote(owner_id, events);
        store.announcer.announce(owner_id);
    } else {
        store.feeds.wake_waiting(owner_id);
    }
    for (reply, outcome) in replies {
        // Whoever does not listen any more does not need to know.
        let _ = reply.send(Ok(outcome));
    }
}

fn fail(writes: impl IntoIterator<Item = Write>, failure: Failure) {
    let error = StoreError::from(failure);
    for write in writes {
        let _ = write.reply.send(Err(error.clone().into()));
    }
}
