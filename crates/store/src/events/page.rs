//! Reading events from the table.

use std::sync::Arc;

use breadcrumb::{Event, EventKind, EventNumber};
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::snapshot::Snapshot;
use crate::failure::{Done, Failure};
use crate::row::Context;
use crate::store::Inner;
use crate::transaction::TenantTransaction;

/// The most events of one page, and the most bytes of their contexts (a single larger one still comes).
const PAGE_EVENTS: i64 = 256;
const PAGE_BYTES: i64 = 4 * 1024 * 1024;

/// An event, and how much memory it takes, about.
#[derive(Debug)]
pub(super) struct Weighed {
    pub(super) event: Event,
    pub(super) bytes: usize,
}

pub(super) struct Page {
    pub(super) events: Vec<Arc<Weighed>>,
    /// Committed events wait behind the horizon for an older transaction to end: look again soon.
    pub(super) is_waiting: bool,
}

#[derive(sqlx::FromRow)]
struct EventRow {
    number: i64,
    kind: String,
    breadcrumb_id: Uuid,
    owner_id: Uuid,
    version: i64,
    at: DateTime<Utc>,
    size_bytes: i64,
    tags: Option<Vec<String>>,
    schema_name: Option<String>,
    context: Option<Context>,
}

/// The next events after this number that are complete: below the oldest transaction still running.
pub(super) async fn read(store: &Arc<Inner>, owner_id: Uuid, after: i64) -> Done<Page> {
    let mut tx = TenantTransaction::begin(store, owner_id).await?;
    let rows: Vec<EventRow> = sqlx::query_as(
        "WITH next AS MATERIALIZED (
            SELECT e.*, sum(e.size_bytes) OVER (ORDER BY e.number) - e.size_bytes AS bytes_before
            FROM (SELECT * FROM events WHERE owner_id = current_tenant() AND number > $1 AND number < event_horizon()
                  ORDER BY number LIMIT $2) e)
        SELECT n.number, n.kind, n.breadcrumb_id, n.owner_id, n.version, n.at, n.size_bytes,
            coalesce(b.tags, v.tags) AS tags, coalesce(b.schema_name, v.schema_name) AS schema_name,
            coalesce(b.context, v.context) AS context
        FROM next n
        LEFT JOIN breadcrumbs b ON b.id = n.breadcrumb_id AND b.version = n.version
        LEFT JOIN breadcrumb_versions v ON v.breadcrumb_id = n.breadcrumb_id AND v.version = n.version
        WHERE n.bytes_before < $3
        ORDER BY n.number",
    )
    .bind(after)
    .bind(PAGE_EVENTS)
    .bind(PAGE_BYTES)
    .fetch_all(tx.connection())
    .await?;
    // Asked afterwards and without the horizon: what moved below it in between must count too.
    let is_waiting = rows.is_empty()
        && sqlx::query_scalar("SELECT EXISTS (SELECT FROM events WHERE owner_id = current_tenant() AND number > $1)")
            .bind(after)
            .fetch_one(tx.connection())
            .await?;
    tx.commit().await?;
    Ok(Page { events: rows.into_iter().map(|row| Arc::new(row.into())).collect(), is_waiting })
}

impl From<EventRow> for Weighed {
    fn from(row: EventRow) -> Self {
        let kind = match row.kind.as_str() {
            "breadcrumb.created" => EventKind::Created,
            "breadcrumb.updated" => EventKind::Updated,
            // The column's CHECK admits no other text.
            _ => EventKind::Deleted,
        };
        let event = Event {
            number: EventNumber(row.number),
            kind,
            breadcrumb_id: row.breadcrumb_id,
            owner_id: row.owner_id,
            version: row.version,
            tags: row.tags.unwrap_or_default(),
            schema_name: row.schema_name,
            updated_at: row.at,
            context: row.context.map(|json| json.0).unwrap_or_default(),
        };
        Self { event, bytes: usize::try_from(row.size_bytes).unwrap_or_default() + 512 }
    }
}

/// The newest event that a subscriber could have seen.
pub(crate) async fn latest(tx: &mut TenantTransaction) -> Done<EventNumber> {
    let newest: Option<i64> = sqlx::query_scalar(
        "SELECT max(number) FROM events WHERE owner_id = current_tenant() AND number < event_horizon()",
    )
    .fetch_one(tx.connection())
    .await?;
    Ok(EventNumber(newest.unwrap_or_default()))
}

/// What has been committed by now.
pub(super) async fn present(tx: &mut TenantTransaction) -> Done<Snapshot> {
    let text: String = sqlx::query_scalar("SELECT pg_current_snapshot()::text").fetch_one(tx.connection()).await?;
    Snapshot::parse(&text).ok_or_else(|| {
        Failure::Store(breadcrumb::StoreError::Internal(format!("the database gave the snapshot {text:?}")))
    })
}
