//! Records whose time has ended. To readers they are gone at that moment; here they are taken out.

use breadcrumb::{ErrorCode, ToolFailure};
use uuid::Uuid;

use crate::calls;
use crate::failure::Done;
use crate::records;
use crate::transaction::TenantTransaction;

/// How many records one transaction takes out. Each writes up to two events.
const BATCH: i64 = 50;

/// Takes out ended records, each with its event; a request that still waits is answered `Timeout`. Gives how many; at
/// most a batch, so that it is to be called again until it gives none.
pub(crate) async fn expire(mut tx: TenantTransaction) -> Done<usize> {
    let mut ended: Vec<Uuid> =
        sqlx::query_scalar("SELECT id FROM breadcrumbs WHERE ttl <= now() ORDER BY ttl LIMIT $1")
            .bind(BATCH)
            .fetch_all(tx.connection())
            .await?;
    // Like everything that holds several calls.
    ended.sort_unstable();
    tx.lock_all(&ended).await?;
    for id in &ended {
        let reason = ToolFailure::new(ErrorCode::Timeout, "the request's time to live ended before it ran");
        calls::abandon(&mut tx, *id, reason).await?;
        // Nothing happens when another server was faster.
        records::remove(&mut tx, None, *id).await?;
    }
    if !ended.is_empty() {
        tx.commit().await?;
    }
    Ok(ended.len())
}
