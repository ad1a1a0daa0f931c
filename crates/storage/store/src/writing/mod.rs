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
mod new_call;
mod prepared;
mod queue;
mod queue_notifier;
mod rows;
mod write;

use rcrt_breadcrumb::NewBreadcrumb;
use uuid::Uuid;

pub(crate) use self::new_call::{CallStart, NewCall, check_response};
pub(crate) use self::prepared::{IdempotencyKey, PreparedRecord};
pub(crate) use self::queue::WriteQueue;
pub(crate) use self::queue_notifier::{QueueNotifier, QueueWaiter};
pub(crate) use self::write::{WriteOp, WriteOutcome};
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

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
