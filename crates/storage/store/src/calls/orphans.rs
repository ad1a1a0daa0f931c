//! Calls that another call waited for until it ended.

use rcrt_breadcrumb::{ErrorCode, ToolFailure};
use uuid::Uuid;

use super::store_response::abandon;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// Calls per transaction.
const BATCH: i64 = 50;

/// Cancels the calls that a finished call waited for. Its runner does so itself, unless it was
/// lost. Returns how many: at most a batch, so call it again until it returns 0.
///
/// In its own transaction, so that calls are always locked in the order of their requests.
pub(crate) async fn cancel_orphans(mut tx: TenantTransaction) -> Result<usize> {
    let orphans: Vec<Uuid> = sqlx::query_scalar(
        "SELECT request FROM calls c
         WHERE awaited AND response IS NULL AND NOT cancel_requested AND EXISTS (
            SELECT FROM calls p WHERE p.owner_id = c.owner_id AND p.request = c.parent AND p.response IS NOT NULL)
         ORDER BY request LIMIT $1 FOR UPDATE OF c SKIP LOCKED",
    )
    .bind(BATCH)
    .fetch_all(tx.connection())
    .await?;
    for request in &orphans {
        let failure = ToolFailure::new(ErrorCode::Cancelled, "the call that waited for this one has ended");
        abandon(&mut tx, *request, failure).await?;
    }
    if !orphans.is_empty() {
        tx.commit().await?;
    }
    Ok(orphans.len())
}
