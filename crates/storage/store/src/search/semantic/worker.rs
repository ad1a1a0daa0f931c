//! Embeds queued records in small batches. Any number of processes can do so at the same time.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{EmbedError, EmbeddingModel, StoreError};
use sqlx::postgres::PgConnectOptions;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use super::batch::{self, BatchOutcome};
use super::state::EmbeddingState;
use super::{SemanticSearch, backfill, index};
use crate::database::Database;
use crate::database::batches::tenants;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::{Durability, TenantTransaction};

/// The poll interval without a wake-up.
const POLL: Duration = Duration::from_secs(5);
/// The pause after a failure. It doubles with each consecutive failure.
const PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// The longest pause before an unavailable model is tried again.
const MAX_PREPARE_PAUSE: Duration = Duration::from_mins(10);

/// Runs until the store is closed. `admin`: connects as the owner of the tables, to build the
/// index.
pub(crate) async fn run(database: Arc<Database>, semantic_search: Arc<SemanticSearch>, admin: PgConnectOptions) {
    let stop = database.stop.clone();
    tokio::select! {
        () = stop.cancelled() => {}
        () = work(&database, &semantic_search, &admin) => {}
    }
}

async fn work(database: &Arc<Database>, semantic_search: &SemanticSearch, admin: &PgConnectOptions) {
    let model = prepare(semantic_search).await;
    let mut worker = Worker { database, semantic_search, model, trouble: None, pause: PAUSE };
    loop {
        match worker.round(admin).await {
            Ok(()) => {}
            Err(failure) => {
                worker.failed(StoreError::from(failure).to_string());
                sleep(worker.pause).await;
                worker.pause = (worker.pause * 2).min(MAX_PAUSE);
                continue;
            }
        }
        // Sleeps until there is work.
        let _ = timeout(POLL, semantic_search.wake.notified()).await;
    }
}

/// Retries until the model is ready.
async fn prepare(semantic_search: &SemanticSearch) -> EmbeddingModel {
    let mut pause = PAUSE;
    loop {
        match semantic_search.options.embedder.prepare().await {
            Ok(model) => return model,
            Err(error) => {
                if pause == PAUSE {
                    tracing::warn!(%error, "the embedding model is not ready; retrying, and searches use full text until then");
                }
                semantic_search.state.send_replace(EmbeddingState::Preparing { trouble: Some(error.to_string()) });
                sleep(pause).await;
                pause = (pause * 2).min(MAX_PREPARE_PAUSE);
            }
        }
    }
}

struct Worker<'w> {
    database: &'w Arc<Database>,
    semantic_search: &'w SemanticSearch,
    model: EmbeddingModel,
    trouble: Option<String>,
    pause: Duration,
}

from_row! {
    struct Counts {
        waiting: i64,
        walked: i64,
        embedded: i64,
    }
}

impl Worker<'_> {
    /// Embeds until nothing is left to do now.
    async fn round(&mut self, admin: &PgConnectOptions) -> Result<()> {
        let Some(number) = self.number().await? else { return Ok(()) };
        loop {
            let mut did_something = false;
            for tenant in tenants(self.database, "SELECT tenants_to_embed()").await? {
                match self.tenant(tenant, number).await {
                    Ok(did) => did_something |= did,
                    Err(failure) if failure.is_unreachable() => return Err(failure),
                    // A failure in one tenant must not stop the others.
                    Err(failure) => self.failed(StoreError::from(failure).to_string()),
                }
            }
            if !did_something {
                break;
            }
        }
        let counts = self.update_state(number).await?;
        if counts.embedded > i64::from(self.semantic_search.options.exact_up_to)
            && let Err(error) = index::ensure(admin, number, &self.model).await
        {
            self.failed(format!("the vector index was not built: {error}"));
        }
        Ok(())
    }

    /// The database's number of the model. `None` while another model is current.
    async fn number(&mut self) -> Result<Option<i32>> {
        let mut tx = self.database.begin("BEGIN").await?;
        let known = *self.semantic_search.model.borrow();
        if let Some(number) = known {
            let (current, name): (i32, String) =
                sqlx::query_as("SELECT id, name FROM embedding_models WHERE is_current").fetch_one(&mut *tx).await?;
            if current != number {
                let state = EmbeddingState::Replaced { model: name };
                if *self.semantic_search.state.borrow() != state {
                    tracing::warn!(
                        "another process embeds with another model; this process uses full-text search from now on"
                    );
                }
                self.semantic_search.state.send_replace(state);
                return Ok(None);
            }
            return Ok(known);
        }
        let number: i32 = sqlx::query_scalar("SELECT use_embedding_model($1, $2)")
            .bind(&self.model.id)
            .bind(self.model.dimensions as i32)
            .fetch_one(&mut *tx)
            .await?;
        tx.commit().await?;
        self.semantic_search.model.send_replace(Some(number));
        self.update_state(number).await?;
        Ok(Some(number))
    }

    /// Embeds one batch of the tenant, and takes a step of its backfill if the queue is short.
    /// Returns whether there was work.
    async fn tenant(&mut self, owner_id: Uuid, number: i32) -> Result<bool> {
        let outcome = batch::embed(self.database, &*self.semantic_search.options.embedder, owner_id, number).await?;
        match outcome {
            BatchOutcome::Nothing => {}
            BatchOutcome::Done => {
                self.trouble = None;
                self.pause = PAUSE;
                self.update_state(number).await?;
            }
            BatchOutcome::Failed(EmbedError::Refused(text) | EmbedError::Unavailable(text)) => {
                self.failed(text);
                self.update_state(number).await?;
                sleep(self.pause).await;
                self.pause = (self.pause * 2).min(MAX_PAUSE);
                return Ok(true);
            }
        }
        let mut tx = TenantTransaction::begin_with(self.database, owner_id, Durability::AsyncCommit).await?;
        let has_room = backfill::has_room(&mut tx).await?;
        drop(tx);
        let has_more = has_room && backfill::step(self.database, self.semantic_search, owner_id).await?;
        Ok(matches!(outcome, BatchOutcome::Done) || has_more)
    }

    fn failed(&mut self, trouble: String) {
        if self.trouble.is_none() {
            tracing::warn!(%trouble, "embedding failed; retrying, and full-text search finds records without a vector until then");
        }
        self.trouble = Some(trouble);
    }

    async fn update_state(&self, number: i32) -> Result<Counts> {
        let mut tx = self.database.begin("BEGIN").await?;
        let counts: Counts = sqlx::query_as("SELECT * FROM embedding_state($1, $2)")
            .bind(number)
            .bind(i32::try_from(self.semantic_search.options.exact_up_to).unwrap_or(i32::MAX).saturating_add(1))
            .fetch_one(&mut *tx)
            .await?;
        metrics::gauge!("rcrt_embeddings_waiting").set(counts.waiting as f64);
        metrics::gauge!("rcrt_embedding_walks").set(counts.walked as f64);
        self.semantic_search.state.send_replace(EmbeddingState::Ready {
            model: self.model.id.clone(),
            dimensions: self.model.dimensions,
            waiting: counts.waiting as u64,
            tenants_walked: counts.walked as u64,
            trouble: self.trouble.clone(),
        });
        Ok(counts)
    }
}
