//! Reads the current version of a record, and writes the next one.

use chrono::Utc;
use rcrt_breadcrumb::{Breadcrumb, NewBreadcrumb, TtlType};
use uuid::Uuid;

use super::row::{CountedRow, RecordRow, json_text, record_columns};
use super::search_text;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// The record, unless it is deleted, expired or belongs to another tenant.
pub(crate) async fn find(tx: &mut TenantTransaction, id: Uuid) -> Result<Option<Breadcrumb>> {
    let row: Option<RecordRow> = sqlx::query_as(concat!(
        "SELECT ",
        record_columns!(),
        " FROM breadcrumbs b WHERE b.id = $1 AND (b.ttl IS NULL OR b.ttl > clock_timestamp())"
    ))
    .bind(id)
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(Breadcrumb::from))
}

/// Writes the next version of a record that is locked and was read in this transaction.
/// `resets_reads`: its read count is reset to 0.
pub(crate) async fn write_version(
    tx: &mut TenantTransaction,
    old: &Breadcrumb,
    new: &NewBreadcrumb,
    agent: Uuid,
    resets_reads: bool,
) -> Result<Breadcrumb> {
    let (checksum, size_bytes) = Breadcrumb::measure(&new.context);
    let (owner_id, event) = (tx.owner_id, tx.next_event());
    let left: Vec<&String> = old.tags.iter().filter(|tag| !new.tags.contains(tag)).collect();
    let joined: Vec<&String> = new.tags.iter().filter(|tag| !old.tags.contains(tag)).collect();
    let row: CountedRow = sqlx::query_as(concat!(
        "WITH moment AS MATERIALIZED (SELECT clock_timestamp() AS at),
        kept AS (
            INSERT INTO breadcrumb_versions (breadcrumb_id, version, owner_id, title, context, tags, schema_name,
                checksum, updated_at, updated_by, visibility, sensitivity, created_by)
            SELECT id, version, owner_id, title, context, tags, schema_name, checksum, updated_at, updated_by,
                visibility, sensitivity, created_by
            FROM breadcrumbs WHERE id = $1),
        left_tags AS (
            DELETE FROM breadcrumb_tags WHERE owner_id = $2 AND breadcrumb_id = $1 AND tag = ANY($3)),
        joined_tags AS (
            INSERT INTO breadcrumb_tags (owner_id, tag, breadcrumb_id) SELECT DISTINCT $2, t, $1 FROM unnest($4) t),
        event AS (
            INSERT INTO events (owner_id, number, kind, breadcrumb_id, version, at, size_bytes)
            SELECT $2, event_number($5), 'breadcrumb.updated', $1, $6, at, $7 FROM moment),
        uncounted AS (DELETE FROM breadcrumb_reads WHERE $24 AND breadcrumb_id = $1),
        shared AS (
            INSERT INTO shared_events (grantee_owner_id, number, owner_id, kind, breadcrumb_id, version, at, size_bytes)
            SELECT DISTINCT g.grantee_owner_id, event_number($5), $2, 'breadcrumb.updated', $1, $6, at, $7
            FROM moment, acl_grants g WHERE g.owner_id = $2 AND g.breadcrumb_id = $1 AND g.grantee_owner_id <> g.owner_id
                AND 'subscribe' = ANY (g.actions) AND NOT is_runtime_schema($13))
        UPDATE breadcrumbs b SET title = $8, description = $9, semantic_version = $10, context = $11::json, tags = $12,
            schema_name = $13, llm_hints = $14::json, visibility = $15, sensitivity = $16, version = $6,
            checksum = $17, size_bytes = $7, ttl = $18, ttl_type = $19, ttl_config = $20::json, updated_by = $21,
            updated_at = moment.at,
            words = setweight(to_tsvector('english', $8), 'A') || setweight(to_tsvector('english', $22), 'B')
                || setweight(to_tsvector('english', $23), 'C')
        FROM moment WHERE b.owner_id = $2 AND b.id = $1
        RETURNING ",
        record_columns!(),
        ", CASE WHEN b.ttl_type IN ('usage', 'hybrid') THEN
            CASE WHEN $24 THEN 0
                ELSE coalesce((SELECT r.reads FROM breadcrumb_reads r
                    WHERE r.owner_id = b.owner_id AND r.breadcrumb_id = b.id), 0) END
          END AS read_count"
    ))
    .bind(old.id)
    .bind(owner_id)
    .bind(left)
    .bind(joined)
    .bind(event)
    .bind(old.version + 1)
    .bind(size_bytes)
    .bind(&new.title)
    .bind(new.description.as_deref())
    .bind(new.semantic_version.as_deref())
    .bind(json_text(&new.context))
    .bind(&new.tags)
    .bind(new.schema_name.as_deref())
    .bind(new.llm_hints.as_ref().map(json_text))
    .bind(new.visibility.as_str())
    .bind(new.sensitivity.as_str())
    .bind(checksum)
    .bind(new.ends_at(Utc::now()))
    .bind(new.ttl_type.map(TtlType::as_str))
    .bind(new.ttl_config.as_ref().map(json_text))
    .bind(agent)
    .bind(search_text::label_words(new))
    .bind(search_text::context_words(new))
    .bind(resets_reads)
    .fetch_one(tx.connection())
    .await?;
    Ok(row.into())
}
