//! Reading events from the table.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Event, EventNumber};
use sqlx::PgConnection;
use uuid::Uuid;

use super::sized_event::SizedEvent;
use super::snapshot::Snapshot;
use super::visibility::{EventVisibility, SubscriberRights, VisibilityScope};
use crate::database::Database;
use crate::database::failure::{Failure, Result, is_unreachable};
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::rows::row::Context;

/// The most events of one page, and the most bytes of their contexts (a larger single event is
/// still returned).
pub(super) const PAGE_EVENTS: i64 = 256;
const PAGE_BYTES: i64 = 4 * 1024 * 1024;

pub(super) struct Page {
    pub(super) events: Vec<Arc<SizedEvent>>,
    /// There are more events. If the page has none, they are committed and wait for an older
    /// transaction to end.
    pub(super) has_more: bool,
}

from_row! {
    struct EventRow {
        /// `None` means that there are more.
        number: Option<i64>,
        kind: String,
        breadcrumb_id: Uuid,
        version: i64,
        at: DateTime<Utc>,
        size_bytes: i64,
        owner_id: Uuid,
        tags: Option<Vec<String>>,
        schema_name: Option<String>,
        context: Option<Context>,
        is_secret: bool,
        is_private: bool,
        created_by: Option<Uuid>,
        readers: Option<Vec<Uuid>>,
    }
}

/// The next complete events after this number: those below the oldest transaction that still runs.
/// Events in `fresh` (in the order of their numbers, at most a page) are not read again.
///
/// A replica counts as running every transaction that it has not applied completely, so its pages
/// are complete too.
pub(super) async fn read(
    database: &Arc<Database>,
    owner_id: Uuid,
    after: i64,
    fresh: &[Arc<SizedEvent>],
) -> Result<Page> {
    database.read(|database| async move { read_there(&database, owner_id, after, fresh).await }).await
}

/// The same, from this database.
pub(super) async fn read_there(
    database: &Arc<Database>,
    owner_id: Uuid,
    after: i64,
    fresh: &[Arc<SizedEvent>],
) -> Result<Page> {
    let known: Vec<i64> = fresh.iter().map(|fresh| fresh.event.number.0).collect();
    let mut conn = database.acquire().await?;
    let mut rows = ask(conn.connection(), owner_id, after, &known).await;
    if rows.as_ref().is_err_and(is_unreachable) {
        conn.return_after(&rows);
        conn = database.acquire_tested().await?;
        rows = ask(conn.connection(), owner_id, after, &known).await;
    }
    conn.return_after(&rows);
    let mut rows = rows?;
    if rows.iter().any(|row| row.owner_id != owner_id) {
        fill_shared(database, owner_id, &mut rows).await?;
    }
    let mut page = Page { events: Vec::new(), has_more: false };
    for row in rows {
        match row.number {
            None => page.has_more = true,
            Some(number) => page.events.push(match known.binary_search(&number) {
                Ok(index) => fresh[index].clone(),
                Err(_) => Arc::new(row.into_event(owner_id, number)?),
            }),
        }
    }
    Ok(page)
}

/// The next complete events of the tenant's own records, from the primary, and the number of the
/// page's last event. `None` if there are none.
pub(crate) async fn read_own(
    database: &Arc<Database>,
    owner_id: Uuid,
    after: i64,
) -> Result<Option<(Vec<Event>, i64)>> {
    let page = read_there(database, owner_id, after, &[]).await?;
    let Some(last) = page.events.last().map(|sized| sized.event.number.0) else { return Ok(None) };
    let events = page.events.iter().map(|sized| &*sized.event);
    Ok(Some((events.filter(|event| event.owner_id == owner_id).cloned().collect(), last)))
}

/// The number up to which the tenant's events are deleted. Read it after a page: it says whether
/// the page may have gaps.
pub(super) async fn forgotten(database: &Arc<Database>, owner_id: Uuid) -> Result<i64> {
    let mut conn = database.acquire().await?;
    let mut number = query_deleted_until(conn.connection(), owner_id).await;
    if number.as_ref().is_err_and(is_unreachable) {
        conn.return_after(&number);
        conn = database.acquire_tested().await?;
        number = query_deleted_until(conn.connection(), owner_id).await;
    }
    conn.return_after(&number);
    Ok(number?)
}

async fn query_deleted_until(connection: &mut PgConnection, owner_id: Uuid) -> Result<i64, sqlx::Error> {
    sqlx::query_scalar("SELECT pruned_up_to($1)").bind(owner_id).fetch_one(connection).await
}

async fn ask(
    connection: &mut PgConnection,
    owner_id: Uuid,
    after: i64,
    known: &[i64],
) -> Result<Vec<EventRow>, sqlx::Error> {
    sqlx::query_as("SELECT * FROM read_events($1, $2, $3, $4, $5)")
        .bind(owner_id)
        .bind(after)
        .bind(PAGE_EVENTS)
        .bind(PAGE_BYTES)
        .bind(known)
        .fetch_all(connection)
        .await
}

from_row! {
    struct SharedRow {
        breadcrumb_id: Uuid,
        version: i64,
        tags: Option<Vec<String>>,
        schema_name: Option<String>,
        context: Option<Context>,
        is_secret: bool,
        readers: Option<Vec<Uuid>>,
    }
}

/// Reads the contents of events of other tenants' records, for a whole page at once. Those that the
/// subscriber can no longer see stay empty: they only advance the cursor.
async fn fill_shared(database: &Arc<Database>, owner_id: Uuid, rows: &mut [EventRow]) -> Result<()> {
    let shared = rows.iter().filter(|row| row.owner_id != owner_id);
    let (records, versions): (Vec<Uuid>, Vec<i64>) = shared.map(|row| (row.breadcrumb_id, row.version)).unzip();
    let mut tx = TenantTransaction::begin(database, owner_id).await?;
    let shared: Vec<SharedRow> = sqlx::query_as("SELECT * FROM shared_event_contents($1, $2)")
        .bind(records)
        .bind(versions)
        .fetch_all(tx.connection())
        .await?;
    let mut shared: HashMap<_, _> = shared.into_iter().map(|row| ((row.breadcrumb_id, row.version), row)).collect();
    for row in rows.iter_mut().filter(|row| row.owner_id != owner_id) {
        if let Some(shared) = shared.remove(&(row.breadcrumb_id, row.version)) {
            row.tags = shared.tags;
            row.schema_name = shared.schema_name;
            row.context = shared.context;
            row.is_secret = shared.is_secret;
            row.readers = shared.readers;
        }
    }
    Ok(())
}

/// Whether a grant still lets the subscriber see the record.
pub(super) async fn is_granted(database: &Arc<Database>, rights: SubscriberRights, event: &Event) -> Result<bool> {
    let mut tx = TenantTransaction::begin(database, rights.tenant).await?;
    let readers: Option<Vec<Uuid>> = if event.owner_id == rights.tenant {
        sqlx::query_scalar("SELECT grant_subscribers($1)").bind(event.breadcrumb_id).fetch_one(tx.connection()).await?
    } else {
        sqlx::query_scalar("SELECT readers FROM shared_event_contents(ARRAY[$1], ARRAY[$2])")
            .bind(event.breadcrumb_id)
            .bind(event.version)
            .fetch_optional(tx.connection())
            .await?
            .flatten()
    };
    Ok(readers
        .is_some_and(|readers| readers.iter().any(|reader| *reader == rights.agent() || *reader == rights.tenant)))
}

/// Whether the subscriber wrote the request that this response answers.
pub(super) async fn is_requester(database: &Arc<Database>, rights: SubscriberRights, event: &Event) -> Result<bool> {
    let mut tx = TenantTransaction::begin(database, rights.tenant).await?;
    Ok(sqlx::query_scalar("SELECT coalesce(requester_of($1) = $2, false)")
        .bind(event.breadcrumb_id)
        .bind(rights.agent())
        .fetch_one(tx.connection())
        .await?)
}

/// Whether the subscriber can get this response by its request id: it wrote the request, is a
/// curator or runner, or has a grant.
pub(super) async fn can_get_response(
    database: &Arc<Database>,
    rights: SubscriberRights,
    event: &Event,
) -> Result<bool> {
    let mut tx = TenantTransaction::begin(database, rights.tenant).await?;
    Ok(sqlx::query_scalar("SELECT agent_can_get_response($1, $2)")
        .bind(rights.agent())
        .bind(event.breadcrumb_id)
        .fetch_one(tx.connection())
        .await?)
}

impl EventRow {
    fn into_event(self, tenant: Uuid, number: i64) -> Result<SizedEvent> {
        let kind = self.kind.parse().map_err(|_| Failure::unknown_event_kind(number, &self.kind))?;
        let event = Event {
            number: EventNumber(number),
            kind,
            breadcrumb_id: self.breadcrumb_id,
            owner_id: self.owner_id,
            version: self.version,
            tags: self.tags.unwrap_or_default(),
            schema_name: self.schema_name,
            updated_at: self.at,
            context: self.context.map(|json| json.0).unwrap_or_default().into(),
            redacted: self.is_secret,
            private: self.is_private,
        };
        let scope = match (self.owner_id == tenant, self.is_private) {
            (false, _) => VisibilityScope::OtherTenant,
            (true, true) => VisibilityScope::Private,
            (true, false) => VisibilityScope::Team,
        };
        let readers = self.readers.unwrap_or_default();
        let visibility = EventVisibility { scope, created_by: self.created_by, readers, read_at: Instant::now() };
        Ok(SizedEvent::new(event, visibility, self.size_bytes))
    }
}

/// The newest event that a subscriber could have seen.
pub(crate) async fn latest(tx: &mut TenantTransaction) -> Result<EventNumber> {
    newest_below(tx, None).await
}

/// The newest event, also if it still waits for an older transaction to end.
pub(crate) async fn newest_committed(tx: &mut TenantTransaction) -> Result<EventNumber> {
    newest_below(tx, Some(i64::MAX)).await
}

/// `None`: below the oldest transaction that still runs.
async fn newest_below(tx: &mut TenantTransaction, limit: Option<i64>) -> Result<EventNumber> {
    let newest: Option<i64> = sqlx::query_scalar(
        // Events of shared records and deleted events count too: a subscriber that starts now has
        // missed none of them.
        "SELECT greatest(
            (SELECT max(number) FROM events
             WHERE owner_id = current_tenant() AND number < coalesce($1, event_horizon())),
            (SELECT max(number) FROM shared_events
             WHERE grantee_owner_id = current_tenant() AND number < coalesce($1, event_horizon())),
            (SELECT number FROM pruned_events WHERE owner_id = current_tenant()))",
    )
    .bind(limit)
    .fetch_one(tx.connection())
    .await?;
    Ok(EventNumber(newest.unwrap_or_default()))
}

/// What has been committed so far.
pub(super) async fn current_snapshot(tx: &mut TenantTransaction) -> Result<Snapshot> {
    let text: String = sqlx::query_scalar("SELECT event_snapshot()").fetch_one(tx.connection()).await?;
    Snapshot::parse(&text).ok_or_else(|| {
        Failure::Store(rcrt_breadcrumb::StoreError::Internal(format!(
            "the database returned the invalid snapshot {text:?}"
        )))
    })
}

/// Whether this number belongs to the range that a restore skipped.
pub(super) async fn is_lost(tx: &mut TenantTransaction, number: EventNumber) -> Result<bool> {
    Ok(sqlx::query_scalar("SELECT event_was_lost($1)").bind(number.0).fetch_one(tx.connection()).await?)
}
