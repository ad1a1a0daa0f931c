//! Group commit: writes that share one flush to disk.
//!
//! A new record, a start or a response is written at once if no batch is in progress. Writes that
//! arrive meanwhile are queued and go together in the next transaction. No write waits for others
//! to join, and under load the flush, the round trip and the statement are shared. A batch belongs
//! to one tenant. A batch that fails is repeated write by write, so that each fails alone.
//!
//! A write's ids are assigned before it is sent. If the connection is lost before the reply, the
//! store can check whether the write happened, and repeat it if not.

mod batch;
mod batch_writer;
mod outcome;
mod prepared;
mod queue;
mod queue_notifier;
mod rows;
mod write;

use std::sync::Arc;

use rcrt_breadcrumb::NewBreadcrumb;
use uuid::Uuid;

pub(crate) use self::outcome::check_response;
pub(crate) use self::prepared::{CallStart, IdempotencyKey, NewCall, PreparedRecord};
use self::queue::WriteQueue;
pub(crate) use self::queue_notifier::{QueueNotifier, QueueWaiter};
pub(crate) use self::write::{WriteOp, WriteOutcome};
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::events::{Announcer, Feeds};
use crate::rows::queue_limit::QueueLimit;
use crate::rows::quotas::Quotas;

/// Queues writes, and tells those who wait for what was written.
pub(crate) struct Writer {
    pub(crate) database: Arc<Database>,
    pub(crate) quotas: Arc<Quotas>,
    pub(crate) queue_limit: QueueLimit,
    feeds: Arc<Feeds>,
    announcer: Arc<Announcer>,
    write_queue: WriteQueue,
    pub(crate) queue_notifier: QueueNotifier,
}

impl Writer {
    pub(crate) fn new(
        database: Arc<Database>,
        quotas: Arc<Quotas>,
        queue_limit: QueueLimit,
        feeds: Arc<Feeds>,
        announcer: Arc<Announcer>,
    ) -> Self {
        Self {
            database,
            quotas,
            queue_limit,
            feeds,
            announcer,
            write_queue: WriteQueue::default(),
            queue_notifier: QueueNotifier::default(),
        }
    }
}

/// Writes a record that the caller has validated and that is not a request, as part of a larger
/// transaction.
pub(crate) async fn insert(
    tx: &mut TenantTransaction,
    id: Uuid,
    record: NewBreadcrumb,
    creator: Option<Uuid>,
) -> Result<()> {
    let record = PreparedRecord::new(id, record, creator);
    batch::insert(tx, &record).await?;
    tx.count_usage(1, record.size_bytes);
    Ok(())
}
