//! How many calls are made below one call, by it and by the calls that it makes.

use std::sync::Arc;

use rcrt_breadcrumb::MAX_DESCENDANTS;
use uuid::Uuid;

use crate::database::Database;
use crate::database::failure::Result;
use crate::database::transaction::{Durability, TenantTransaction};

/// Counts `change` calls of the call `made_by`. Returns false, and counts nothing, if its tree
/// would have more than [`MAX_DESCENDANTS`].
///
/// Committed before the requests are written, so that calls that are made at once cannot exceed the
/// limit together. A request that is not written then, because the connection was lost, stays
/// counted.
pub(crate) async fn count_descendants(
    database: &Arc<Database>,
    owner_id: Uuid,
    made_by: Uuid,
    change: i32,
) -> Result<bool> {
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    let is_counted = sqlx::query_scalar("SELECT count_descendants($1, $2, $3)")
        .bind(made_by)
        .bind(change)
        .bind(MAX_DESCENDANTS as i32)
        .fetch_one(tx.connection())
        .await?;
    tx.commit().await?;
    Ok(is_counted)
}
