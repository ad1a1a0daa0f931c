//! Reading events from the table.

use std::sync::Arc;

use breadcrumb::{Event, EventKind, EventNumber};
use chrono::{DateTime, Utc};
use sqlx::PgConnection;
use uuid::Uuid;

use super::snapshot::Snapshot;
use crate::failure::{Done, Failure, is_unreachable};
use crate::from_row::from_row;
use crate::row::Context;
use crate::store::Inner;
use crate::transaction::TenantTransaction;

/// The most events of one page, and the most bytes of their contexts (a single larger one still comes).
pub(super) const PAGE_EVENTS: i64 = 256;
const PAGE_BYTES: i64 = 4 * 1024 * 1024;

/// An event, and how much memory it takes, about.
#[derive(Debug)]
pub(super) struct Weighed {
    pub(super) event: Event,
    pub(super) bytes: usize,
}

pub(super) struct Page {
    pub(super) events: Vec<Arc<Weighed>>,
    /// There are more. After a page without any they are committed and wait for an older transaction to end.
    pub(super) has_more: bool,
}

from_row! {
    struct EventRow {
        /// `None` says that there are more.
        number: Option<i64>,
        kind: String,
        breadcrumb_id: Uuid,
        version: i64,
        at: DateTime<Utc>,
        size_bytes: i64,
        tags: Option<Vec<String>>,
        schema_name: Option<String>,
        context: Option<Context>,
    }
}

/// The next events after this number that are complete: below the oldest transaction still running. Those that are
/// `fresh` (in the order of their numbers, at most a page of them) are not read again.
pub(super) async fn read(store: &Arc<Inner>, owner_id: Uuid, after: i64, fresh: &[Arc<Weighed>]) -> Done<Page> {
    let known: Vec<i64> = fresh.iter().map(|fresh| fresh.event.number.0).collect();
    let mut lent = store.lend().await?;
    let mut rows = ask(lent.connection(), owner_id, after, &known).await;
    if rows.as_ref().is_err_and(is_unreachable) {
        lent.give_back_after(&rows);
        lent = store.lend_tested().await?;
        rows = ask(lent.connection(), owner_id, after, &known).await;
    }
    lent.give_back_after(&rows);
    let mut page = Page { events: Vec::new(), has_more: false };
    for row in rows? {
        match row.number {
            None => page.has_more = true,
            Some(number) => page.events.push(match known.binary_search(&number) {
                Ok(index) => fresh[index].clone(),
                Err(_) => Arc::new(row.into_event(owner_id, number)),
            }),
        }
    }
    Ok(page)
}

async fn ask(
    connection: &mut PgConnection,
    owner_id: Uuid,
    after: i64,
    known: &[i64],
) -> Result<Vec<EventRow>, sqlx::Error> {
    sqlx::query_as("SELECT * FROM events_after($1, $2, $3, $4, $5)")
        .bind(owner_id)
        .bind(after)
        .bind(PAGE_EVENTS)
        .bind(PAGE_BYTES)
        .bind(known)
        .fetch_all(connection)
        .await
}

impl EventRow {
    fn into_event(self, owner_id: Uuid, number: i64) -> Weighed {
        let kind = EventKind::from_name(&self.kind);
        let event = Event {
            number: EventNumber(number),
            kind,
            breadcrumb_id: self.breadcrumb_id,
            owner_id,
            version: self.version,
            tags: self.tags.unwrap_or_default(),
            schema_name: self.schema_name,
            updated_at: self.at,
            context: self.context.map(|json| json.0).unwrap_or_default(),
        };
        Weighed::new(event, self.size_bytes)
    }
}

impl Weighed {
    /// `size_bytes`: of the context's text.
    pub(super) fn new(event: Event, size_bytes: i64) -> Self {
        Self { event, bytes: usize::try_from(size_bytes).unwrap_or_default() + 512 }
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
