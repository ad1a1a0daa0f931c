//! Puts changed records into the embedding queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use uuid::Uuid;

use super::{NOT_EMBEDDED, SemanticSearch};
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::events::following::{CatchUpReason, EventHeader, Follower};

/// Queues every changed record, and deletes the vectors of records that were deleted or must not
/// have one any more.
pub(crate) struct EmbeddingFollower {
    semantic_search: Arc<SemanticSearch>,
    /// Whether a step since the last wake-up queued records. The step may have been rolled back.
    has_queued: AtomicBool,
}

impl EmbeddingFollower {
    pub(crate) fn new(semantic_search: Arc<SemanticSearch>) -> Self {
        Self { semantic_search, has_queued: AtomicBool::new(false) }
    }
}

#[async_trait]
impl Follower for EmbeddingFollower {
    fn name(&self) -> &'static str {
        "embeddings"
    }

    fn is_in_every_tenant(&self) -> bool {
        true
    }

    fn batch_delay(&self) -> Duration {
        // No caller waits for it, and several writes then cost one step.
        Duration::from_millis(200)
    }

    type Prepared = ();

    async fn prepare(&self, _owner_id: Uuid, events: &[EventHeader]) -> Result<((), usize)> {
        Ok(((), events.len()))
    }

    async fn take(&self, tx: &mut TenantTransaction, events: &[EventHeader], (): ()) -> Result<()> {
        let mut ids: Vec<Uuid> = events.iter().map(|event| event.breadcrumb_id).collect();
        // Always in the same order, so that there is no deadlock.
        ids.sort_unstable();
        ids.dedup();
        let wanted: Vec<Uuid> = sqlx::query_scalar(
            "SELECT id FROM breadcrumbs WHERE id = ANY($1) AND sensitivity <> 'secret'
                AND (schema_name IS NULL OR schema_name <> ALL ($2)) ORDER BY id",
        )
        .bind(&ids)
        .bind(NOT_EMBEDDED)
        .fetch_all(tx.connection())
        .await?;
        let gone: Vec<Uuid> = ids.into_iter().filter(|id| wanted.binary_search(id).is_err()).collect();
        if !gone.is_empty() {
            forget(tx, &gone).await?;
        }
        if !wanted.is_empty() {
            queue(tx, &wanted).await?;
            self.has_queued.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// The backfill reads the records in batches. Only its start is written here.
    async fn catch_up(&self, tx: &mut TenantTransaction, _: CatchUpReason) -> Result<()> {
        sqlx::query(
            "INSERT INTO embedding_backfills (owner_id, model)
             SELECT current_tenant(), id FROM embedding_models WHERE is_current
             ON CONFLICT (owner_id) DO UPDATE SET model = EXCLUDED.model, at = NULL, breadcrumb_id = NULL, is_done = false",
        )
        .execute(tx.connection())
        .await?;
        self.has_queued.store(true, Ordering::Release);
        Ok(())
    }

    fn stepped(&self, _: Uuid) {
        if self.has_queued.swap(false, Ordering::AcqRel) {
            self.semantic_search.wake.notify_one();
        }
    }
}

/// `ids` is sorted.
pub(super) async fn queue(tx: &mut TenantTransaction, ids: &[Uuid]) -> Result<()> {
    sqlx::query(
        "INSERT INTO embedding_queue AS q (owner_id, breadcrumb_id) SELECT current_tenant(), id FROM unnest($1::uuid[]) id
         ON CONFLICT (owner_id, breadcrumb_id) DO UPDATE SET change = q.change + 1, not_before = now()",
    )
    .bind(ids)
    .execute(tx.connection())
    .await?;
    Ok(())
}

pub(super) async fn forget(tx: &mut TenantTransaction, ids: &[Uuid]) -> Result<()> {
    for table in ["breadcrumb_embeddings", "embedding_queue"] {
        let sql = format!("DELETE FROM {table} WHERE owner_id = current_tenant() AND breadcrumb_id = ANY($1)");
        sqlx::query(sqlx::AssertSqlSafe(sql)).bind(ids).execute(tx.connection()).await?;
    }
    Ok(())
}
