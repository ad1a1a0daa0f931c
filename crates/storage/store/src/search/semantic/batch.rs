//! One batch: claimed, read, embedded, stored. No transaction is open while the embedder works.

use std::sync::Arc;

use rcrt_breadcrumb::{EmbedError, EmbedPriority, Embedder};
use uuid::Uuid;

use super::nearest::literal;
use super::{NOT_EMBEDDED, follower, text};
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::{Durability, TenantTransaction};
use crate::rows::row::{Context, read_sensitivity};

/// If a record's context has more bytes, only title, description and tags are embedded, so that
/// megabytes are not read for a few words.
const MAX_CONTEXT: i64 = 1 << 20;

pub(super) enum BatchOutcome {
    Nothing,
    Done,
    /// The embedder's error. The batch is back in the queue.
    Failed(EmbedError),
}

from_row! {
    struct Record {
        id: Uuid,
        version: i64,
        title: String,
        description: Option<String>,
        tags: Vec<String>,
        sensitivity: String,
        context: Option<Context>,
        /// The checksum of the text that the current vector was computed from.
        checksum: Option<Vec<u8>>,
    }
}

/// A record's text that needs a vector.
struct Wanted {
    id: Uuid,
    version: i64,
    text: String,
    checksum: Vec<u8>,
}

/// A row of the queue, and the change of the record that it stood for when it was claimed.
type Claimed = (Uuid, i64);

pub(super) async fn embed(
    database: &Arc<Database>,
    embedder: &dyn Embedder,
    owner_id: Uuid,
    model: i32,
) -> Result<BatchOutcome> {
    let claimed = claim(database, owner_id, embedder.max_batch()).await?;
    if claimed.is_empty() {
        return Ok(BatchOutcome::Nothing);
    }
    let ids: Vec<Uuid> = claimed.iter().map(|(id, _)| *id).collect();
    let outcome = embed_claimed(database, embedder, owner_id, model, &claimed, &ids).await;
    if !matches!(outcome, Ok(BatchOutcome::Done))
        && let Err(error) = requeue(database, owner_id, &ids).await
    {
        return outcome.and(Err(error));
    }
    outcome
}

async fn embed_claimed(
    database: &Arc<Database>,
    embedder: &dyn Embedder,
    owner_id: Uuid,
    model: i32,
    claimed: &[Claimed],
    ids: &[Uuid],
) -> Result<BatchOutcome> {
    let mut gone = ids.to_vec();
    let mut wanted = Vec::new();
    for record in read(database, owner_id, model, ids).await? {
        if !text::may_embed(read_sensitivity(&record.sensitivity), embedder.is_local()) {
            continue;
        }
        gone.retain(|id| *id != record.id);
        let context = record.context.as_ref().map(|json| &json.0);
        let text = text::text(&record.title, record.description.as_deref(), &record.tags, context);
        let checksum = text::checksum(&text);
        if record.checksum.as_ref() != Some(&checksum) {
            wanted.push(Wanted { id: record.id, version: record.version, text, checksum });
        }
    }
    let vectors = match vectors(embedder, &wanted).await {
        Ok(vectors) => vectors,
        Err(error) => return Ok(BatchOutcome::Failed(error)),
    };
    let kept = wanted.iter().zip(&vectors).filter_map(|(wanted, vector)| Some((wanted, vector.as_deref()?)));
    keep(database, owner_id, model, claimed, &gone, &kept.collect::<Vec<_>>()).await?;
    Ok(BatchOutcome::Done)
}

/// Claims the next records for two minutes.
async fn claim(database: &Arc<Database>, owner_id: Uuid, most: usize) -> Result<Vec<Claimed>> {
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    let claimed = sqlx::query_as(
        "UPDATE embedding_queue SET not_before = now() + interval '2 minutes'
         WHERE ctid = ANY (ARRAY(
            SELECT ctid FROM embedding_queue WHERE owner_id = current_tenant() AND not_before <= now()
            ORDER BY not_before LIMIT $1 FOR UPDATE SKIP LOCKED))
         RETURNING breadcrumb_id, change",
    )
    .bind(most as i64)
    .fetch_all(tx.connection())
    .await?;
    tx.commit().await?;
    Ok(claimed)
}

async fn read(database: &Arc<Database>, owner_id: Uuid, model: i32, ids: &[Uuid]) -> Result<Vec<Record>> {
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    Ok(sqlx::query_as(
        "SELECT b.id, b.version, b.title, b.description, b.tags, b.sensitivity,
            CASE WHEN b.size_bytes <= $3 THEN b.context END AS context, e.checksum
         FROM breadcrumbs b LEFT JOIN breadcrumb_embeddings e
            ON e.owner_id = b.owner_id AND e.breadcrumb_id = b.id AND e.model = $2
         WHERE b.owner_id = current_tenant() AND b.id = ANY($1) AND (b.ttl IS NULL OR b.ttl > now())
            AND (b.schema_name IS NULL OR b.schema_name <> ALL ($4))",
    )
    .bind(ids)
    .bind(model)
    .bind(MAX_CONTEXT)
    .bind(NOT_EMBEDDED)
    .fetch_all(tx.connection())
    .await?)
}

/// `None` for a text that the embedder refuses: the record has no vector until it changes.
async fn vectors(embedder: &dyn Embedder, wanted: &[Wanted]) -> Result<Vec<Option<Vec<f32>>>, EmbedError> {
    let texts = |some: &[Wanted]| some.iter().map(|one| one.text.clone()).collect::<Vec<_>>();
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    match embedder.embed(texts(wanted), EmbedPriority::Records).await {
        Ok(vectors) => Ok(vectors.into_iter().map(Some).collect()),
        Err(EmbedError::Refused(_)) => {
            // At least one text is refused. The others must not wait for it.
            let mut vectors = Vec::with_capacity(wanted.len());
            for one in wanted {
                match embedder.embed(texts(std::slice::from_ref(one)), EmbedPriority::Records).await {
                    Ok(mut vector) => vectors.push(vector.pop()),
                    Err(EmbedError::Refused(reason)) => {
                        tracing::warn!(record = %one.id, %reason, "the embedder refused a record's text");
                        vectors.push(None);
                    }
                    Err(error) => return Err(error),
                }
            }
            Ok(vectors)
        }
        Err(error) => Err(error),
    }
}

async fn requeue(database: &Arc<Database>, owner_id: Uuid, ids: &[Uuid]) -> Result<()> {
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    sqlx::query(
        "UPDATE embedding_queue SET not_before = now() WHERE owner_id = current_tenant() AND breadcrumb_id = ANY($1)",
    )
    .bind(ids)
    .execute(tx.connection())
    .await?;
    tx.commit().await
}

/// Stores the vectors of records that are unchanged since they were read. A record that changed
/// meanwhile is still in the queue.
async fn keep(
    database: &Arc<Database>,
    owner_id: Uuid,
    model: i32,
    claimed: &[Claimed],
    gone: &[Uuid],
    kept: &[(&Wanted, &[f32])],
) -> Result<()> {
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    if !gone.is_empty() {
        follower::forget(&mut tx, gone).await?;
    }
    sqlx::query(
        "INSERT INTO breadcrumb_embeddings AS e (owner_id, breadcrumb_id, model, checksum, embedding)
         SELECT b.owner_id, b.id, $1, v.checksum, v.embedding::vector
         FROM unnest($2::uuid[], $3::bigint[], $4::bytea[], $5::text[]) v (id, version, checksum, embedding)
         JOIN breadcrumbs b ON b.owner_id = current_tenant() AND b.id = v.id AND b.version = v.version
            AND b.sensitivity <> 'secret'
         ORDER BY b.id
         ON CONFLICT (owner_id, breadcrumb_id, model)
            DO UPDATE SET checksum = EXCLUDED.checksum, embedding = EXCLUDED.embedding",
    )
    .bind(model)
    .bind(kept.iter().map(|(wanted, _)| wanted.id).collect::<Vec<_>>())
    .bind(kept.iter().map(|(wanted, _)| wanted.version).collect::<Vec<_>>())
    .bind(kept.iter().map(|(wanted, _)| wanted.checksum.clone()).collect::<Vec<_>>())
    .bind(kept.iter().map(|(_, vector)| literal(vector)).collect::<Vec<_>>())
    .execute(tx.connection())
    .await?;
    sqlx::query(
        "DELETE FROM embedding_queue q USING unnest($1::uuid[], $2::bigint[]) c (id, change)
         WHERE q.owner_id = current_tenant() AND q.breadcrumb_id = c.id AND q.change = c.change",
    )
    .bind(claimed.iter().map(|(id, _)| *id).collect::<Vec<_>>())
    .bind(claimed.iter().map(|(_, change)| *change).collect::<Vec<_>>())
    .execute(tx.connection())
    .await?;
    tx.commit().await
}
