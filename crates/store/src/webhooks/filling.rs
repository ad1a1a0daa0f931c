//! From events to deliveries: a follower of events, in the tenants that have had a webhook.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Weak};

use async_trait::async_trait;
use breadcrumb::{Event, EventNumber, Selector, StoreError};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{MOST_WAITING, MOST_WAITING_BYTES};
use crate::failure::Done;
use crate::following::{Followed, Follower, Missed};
use crate::from_row::from_row;
use crate::row::Context;
use crate::selectors::Admission;
use crate::store::Inner;
use crate::transaction::TenantTransaction;

/// Under which its cursors are kept.
pub(super) const FOLLOWER: &str = "webhooks";
/// Bytes of the contexts that are read at once (a single larger one still is).
const CHUNK_BYTES: i64 = 4 * 1024 * 1024;

/// Queues what the events ask for.
pub(crate) struct Filling(pub(crate) Weak<Inner>);

from_row! {
    struct Hook {
        id: Uuid,
        agent_id: Uuid,
        /// Its own, else its agent's; any of them admits an event.
        selectors: Vec<String>,
        after: i64,
    }
}

/// A webhook with what it wants to hear.
struct Wanting {
    hook: Hook,
    /// Without any: everything.
    selectors: Vec<Selector>,
}

impl Wanting {
    fn wants(&self, event: &Event) -> Admission {
        if self.hook.selectors.is_empty() { Admission::Always } else { Admission::by_any(&self.selectors, event) }
    }
}

from_row! {
    /// What stands under an event's version.
    struct Content {
        number: i64,
        tags: Option<Vec<String>>,
        schema_name: Option<String>,
        context: Option<Context>,
        is_secret: bool,
        is_private: bool,
        /// Those of the asked agents that may hear of it.
        hearers: Vec<Uuid>,
        /// Of a response, those that may take it for the answer to a request id that they name.
        takers: Vec<Uuid>,
    }
}

#[async_trait]
impl Follower for Filling {
    fn name(&self) -> &'static str {
        FOLLOWER
    }

    fn is_in_every_tenant(&self) -> bool {
        false
    }

    async fn take(&self, tx: &mut TenantTransaction, events: &[Followed]) -> Done<()> {
        let hooks = hooks(tx).await?;
        let first_wanted = hooks.iter().map(|wanting| wanting.hook.after).min();
        let Some(first_wanted) = first_wanted else { return Ok(()) };
        let events: Vec<&Followed> = events.iter().filter(|event| event.number > first_wanted).collect();
        let mut filled = BTreeSet::new();
        for chunk in chunks(&events) {
            let queued = matching(tx, &hooks, chunk).await?;
            filled.extend(queued.iter().map(|queued| queued.webhook));
            queue(tx, &queued).await?;
        }
        pause_the_full(tx, filled).await
    }

    /// What was forgotten cannot be posted any more.
    async fn catch_up(&self, tx: &mut TenantTransaction, missed: Missed) -> Done<()> {
        if missed == Missed::Some {
            tracing::warn!(tenant = %tx.owner_id, "webhooks missed events: they were forgotten before anybody posted them");
        }
        Ok(())
    }

    fn stepped(&self, _owner_id: Uuid) {
        if let Some(store) = self.0.upgrade() {
            store.deliveries_queued.notify_one();
        }
    }
}

async fn hooks(tx: &mut TenantTransaction) -> Done<Vec<Wanting>> {
    let owner_id = tx.owner_id;
    let hooks: Vec<Hook> = sqlx::query_as(
        "SELECT w.id, w.agent_id, w.after, CASE WHEN w.selector IS NOT NULL THEN ARRAY[w.selector::text] ELSE
            ARRAY(SELECT s.selector::text FROM selectors s
                  WHERE s.owner_id = w.owner_id AND s.agent_id = w.agent_id) END AS selectors
         FROM webhooks w WHERE w.owner_id = $1 AND w.state = 'active'
            AND NOT EXISTS (SELECT FROM agents a WHERE a.id = w.agent_id AND a.deleted_at IS NOT NULL)
         ORDER BY w.id",
    )
    .bind(owner_id)
    .fetch_all(tx.connection())
    .await?;
    // One that a newer version wrote admits nothing here.
    let read = |hook: &Hook| hook.selectors.iter().filter_map(|text| serde_json::from_str(text).ok()).collect();
    Ok(hooks.into_iter().map(|hook| Wanting { selectors: read(&hook), hook }).collect())
}

/// In pieces whose contexts fit into memory together.
fn chunks<'e>(events: &'e [&'e Followed]) -> Vec<&'e [&'e Followed]> {
    let mut pieces = Vec::new();
    let (mut from, mut bytes) = (0, 0);
    for (index, event) in events.iter().enumerate() {
        if index > from && bytes + event.size_bytes > CHUNK_BYTES {
            pieces.push(&events[from..index]);
            (from, bytes) = (index, 0);
        }
        bytes += event.size_bytes;
    }
    if from < events.len() {
        pieces.push(&events[from..]);
    }
    pieces
}

/// A row that is to be written.
struct Queued {
    webhook: Uuid,
    event: i64,
    breadcrumb_id: Uuid,
    version: i64,
    payload: Arc<str>,
}

async fn matching(tx: &mut TenantTransaction, hooks: &[Wanting], events: &[&Followed]) -> Done<Vec<Queued>> {
    let owner_id = tx.owner_id;
    let numbers: Vec<i64> = events.iter().map(|event| event.number).collect();
    let agents: Vec<Uuid> =
        hooks.iter().map(|wanting| wanting.hook.agent_id).collect::<BTreeSet<_>>().into_iter().collect();
    // A record that is secret now was not always, and its older versions are not told any more.
    let contents: Vec<Content> = sqlx::query_as(
        "SELECT e.number, coalesce(b.tags, v.tags) AS tags, coalesce(b.schema_name, v.schema_name) AS schema_name,
            CASE WHEN s.is_secret THEN NULL ELSE coalesce(b.context, v.context) END AS context, s.is_secret,
            coalesce(b.visibility, v.visibility, 'private') = 'private' AS is_private,
            ARRAY(SELECT a FROM unnest($3) a WHERE hears(a, e.breadcrumb_id, e.version)) AS hearers,
            CASE WHEN coalesce(b.schema_name, v.schema_name) = 'tool.response.v1'
                THEN ARRAY(SELECT a FROM unnest($3) a WHERE hears_response(a, e.breadcrumb_id)) ELSE '{}' END AS takers
         FROM events e
         LEFT JOIN breadcrumbs n ON n.id = e.breadcrumb_id
         LEFT JOIN breadcrumbs b ON b.id = e.breadcrumb_id AND b.version = e.version
         LEFT JOIN breadcrumb_versions v ON v.breadcrumb_id = e.breadcrumb_id AND v.version = e.version
         CROSS JOIN LATERAL (
            SELECT 'secret' IN (coalesce(n.sensitivity, ''), coalesce(v.sensitivity, '')) OR (n.id IS NULL AND EXISTS (
                SELECT FROM breadcrumb_versions l WHERE l.breadcrumb_id = e.breadcrumb_id AND l.version > e.version
                    AND l.sensitivity = 'secret')) AS is_secret) s
         WHERE e.owner_id = $1 AND e.number = ANY($2)",
    )
    .bind(owner_id)
    .bind(&numbers)
    .bind(&agents)
    .fetch_all(tx.connection())
    .await?;
    let mut contents: HashMap<i64, Content> = contents.into_iter().map(|content| (content.number, content)).collect();
    let mut queued = Vec::new();
    for followed in events {
        // Forgotten since.
        let Some(content) = contents.remove(&followed.number) else { continue };
        let event = Event {
            number: EventNumber(followed.number),
            kind: followed.kind(),
            breadcrumb_id: followed.breadcrumb_id,
            owner_id,
            version: followed.version,
            tags: content.tags.unwrap_or_default(),
            schema_name: content.schema_name,
            updated_at: followed.at,
            context: content.context.map(|json| json.0).unwrap_or_default(),
            redacted: content.is_secret,
            private: content.is_private,
        };
        let mut payload: Option<Arc<str>> = None;
        for wanting in hooks {
            let hook = &wanting.hook;
            if hook.after >= followed.number || !content.hearers.contains(&hook.agent_id) {
                continue;
            }
            match wanting.wants(&event) {
                Admission::Always => {}
                Admission::ToAsker if content.takers.contains(&hook.agent_id) => {}
                Admission::ToAsker | Admission::Never => continue,
            }
            let payload = match &payload {
                Some(payload) => payload.clone(),
                None => {
                    let text = serde_json::to_string(&event)
                        .map_err(|error| StoreError::Internal(format!("an event cannot be written: {error}")))?;
                    payload.insert(text.into()).clone()
                }
            };
            let (breadcrumb_id, version) = (followed.breadcrumb_id, followed.version);
            queued.push(Queued { webhook: hook.id, event: followed.number, breadcrumb_id, version, payload });
        }
    }
    Ok(queued)
}

async fn queue(tx: &mut TenantTransaction, queued: &[Queued]) -> Done<()> {
    if queued.is_empty() {
        return Ok(());
    }
    let owner_id = tx.owner_id;
    let ids: Vec<Uuid> = queued.iter().map(|queued| delivery_id(queued.webhook, queued.event)).collect();
    let webhooks: Vec<Uuid> = queued.iter().map(|queued| queued.webhook).collect();
    let events: Vec<i64> = queued.iter().map(|queued| queued.event).collect();
    // One event that goes to many webhooks is sent to the database once.
    let mut payloads: Vec<&str> = Vec::new();
    let mut places: Vec<i32> = Vec::with_capacity(queued.len());
    let mut last: Option<i64> = None;
    for one in queued {
        if last != Some(one.event) {
            payloads.push(&one.payload);
            last = Some(one.event);
        }
        places.push(payloads.len() as i32);
    }
    // A webhook that was deleted meanwhile gets nothing.
    sqlx::query(
        "INSERT INTO deliveries (id, owner_id, webhook_id, event, breadcrumb_id, version, payload, size_bytes)
         SELECT q.id, $1, q.webhook, q.event, q.breadcrumb_id, q.version, p.payload::json, octet_length(p.payload)
         FROM unnest($2, $3, $4, $5, $7, $8) AS q (id, webhook, event, place, breadcrumb_id, version)
         JOIN unnest($6) WITH ORDINALITY AS p (payload, place) ON p.place = q.place
         WHERE EXISTS (SELECT FROM webhooks w WHERE w.id = q.webhook FOR KEY SHARE)
         ON CONFLICT DO NOTHING",
    )
    .bind(owner_id)
    .bind(&ids)
    .bind(&webhooks)
    .bind(&events)
    .bind(&places)
    .bind(&payloads)
    .bind(queued.iter().map(|queued| queued.breadcrumb_id).collect::<Vec<_>>())
    .bind(queued.iter().map(|queued| queued.version).collect::<Vec<_>>())
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A receiver that is so far behind gets nothing more until somebody looks at it.
async fn pause_the_full(tx: &mut TenantTransaction, filled: BTreeSet<Uuid>) -> Done<()> {
    if filled.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = filled.into_iter().collect();
    let paused: Vec<Uuid> = sqlx::query_scalar(
        "UPDATE webhooks w SET state = 'paused', paused_because = concat('more than ', $2, ' deliveries, or ', $3 / 1048576, ' MiB of them, wait')
         WHERE w.id = ANY($1) AND w.state = 'active' AND (
            SELECT count(*) > $2 OR sum(size_bytes) > $3
            FROM (SELECT d.size_bytes FROM deliveries d WHERE d.webhook_id = w.id AND d.state = 'waiting'
                  LIMIT $2 + 1) counted)
         RETURNING w.id",
    )
    .bind(&ids)
    .bind(MOST_WAITING)
    .bind(MOST_WAITING_BYTES)
    .fetch_all(tx.connection())
    .await?;
    for webhook in paused {
        tracing::warn!(%webhook, "a webhook is paused: its receiver does not keep up");
    }
    Ok(())
}

/// The same for the same event, also when a crash of the database lost the row and it is queued again: who receives it twice
/// knows it by this.
fn delivery_id(webhook: Uuid, event: i64) -> Uuid {
    let digest = Sha256::new()
        .chain_update(b"rcrt delivery\0")
        .chain_update(webhook.as_bytes())
        .chain_update(event.to_be_bytes())
        .finalize();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}
