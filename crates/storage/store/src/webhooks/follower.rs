//! Creates deliveries from events: a follower, in the tenants that have had a webhook.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{Event, EventNumber, Fuel, Matcher, OutOfFuel, Selector, StoreError};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::{MOST_WAITING, MOST_WAITING_BYTES, WebhookStore};
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::events::following::{CatchUpReason, EventHeader, Follower};
use crate::events::selectors::SelectorMatch;
use crate::rows::row::Context;

/// The name of its cursors.
pub(super) const FOLLOWER: &str = "webhooks";
/// The most bytes of contexts that are read at once (a larger single one is still read).
const CHUNK_BYTES: i64 = 4 * 1024 * 1024;
/// The most matching work of one step. It takes a fraction of a second, and other tenants wait for
/// it.
const STEP_FUEL: u64 = 10_000_000;
/// What a webhook can spend on an event, however many webhooks there are: enough for a text of one
/// megabyte, or tens of thousands of numbers.
const ORDINARY_FUEL: u64 = 100_000;

/// Queues webhook deliveries for events.
pub(crate) struct WebhookFollower(pub(crate) Arc<WebhookStore>);

from_row! {
    struct Hook {
        id: Uuid,
        agent_id: Uuid,
        /// If `None`, the agent's own selectors apply.
        selector: Option<String>,
        after: i64,
    }
}

/// The webhooks of a tenant, and the selectors of their agents.
struct Hooks {
    hooks: Vec<Hook>,
    selectors: Vec<(Uuid, String)>,
}

/// A webhook with the selectors that apply to it.
struct WebhookSelectors<'h> {
    hook: &'h Hook,
    /// An event must match one of them. `None` matches every event.
    selectors: Option<Arc<[Matcher]>>,
}

impl Hooks {
    /// A selector that a newer version wrote matches nothing here.
    fn with_selectors(&self) -> Vec<WebhookSelectors<'_>> {
        let read = |text: &str| serde_json::from_str(text).ok().map(|selector: Selector| Matcher::from(&selector));
        let mut of_agents: HashMap<Uuid, Vec<Matcher>> = HashMap::new();
        for (agent, text) in &self.selectors {
            of_agents.entry(*agent).or_default().extend(read(text));
        }
        let of_agents: HashMap<Uuid, Arc<[Matcher]>> =
            of_agents.into_iter().map(|(agent, selectors)| (agent, selectors.into())).collect();
        let wanting = self.hooks.iter().map(|hook| {
            let own = hook.selector.as_deref().map(|text| read(text).into_iter().collect());
            WebhookSelectors { hook, selectors: own.or_else(|| of_agents.get(&hook.agent_id).cloned()) }
        });
        wanting.collect()
    }
}

impl WebhookSelectors<'_> {
    fn matches(&self, event: &Event, fuel: &mut Fuel) -> Result<SelectorMatch, OutOfFuel> {
        match &self.selectors {
            Some(selectors) => SelectorMatch::of_any(selectors, event, fuel),
            None => Ok(SelectorMatch::Always),
        }
    }
}

from_row! {
    /// The content of an event's version.
    struct Content {
        number: i64,
        tags: Option<Vec<String>>,
        schema_name: Option<String>,
        context: Option<Context>,
        is_secret: bool,
        is_private: bool,
        /// Those of the given agents that can see it.
        viewers: Vec<Uuid>,
        /// For a response: those of the given agents that can get it by its request id.
        response_viewers: Vec<Uuid>,
    }
}

#[async_trait]
impl Follower for WebhookFollower {
    fn name(&self) -> &'static str {
        FOLLOWER
    }

    fn is_in_every_tenant(&self) -> bool {
        false
    }

    type Prepared = Vec<NewDelivery>;

    /// Reads the events' contents and matches them on a separate thread, at most one part of the
    /// events at a time, so that one tenant's contents and selectors delay the others for a bounded
    /// time.
    async fn prepare(&self, owner_id: Uuid, events: &[EventHeader]) -> Result<(Vec<NewDelivery>, usize)> {
        let mut tx = TenantTransaction::begin(&self.0.database, owner_id).await?;
        let hooks = hooks(&mut tx).await?;
        let Some(first_wanted) = hooks.hooks.iter().map(|hook| hook.after).min() else {
            return Ok((Vec::new(), events.len()));
        };
        let fitting_prefix = fitting_prefix(events);
        let wanted: Vec<EventHeader> =
            fitting_prefix.iter().filter(|event| event.number > first_wanted).cloned().collect();
        if wanted.is_empty() {
            return Ok((Vec::new(), fitting_prefix.len()));
        }
        let contents = contents(&mut tx, &hooks.hooks, &wanted).await?;
        drop(tx);
        let passed = fitting_prefix.len() - wanted.len();
        let matching = tokio::task::spawn_blocking(move || matching(owner_id, &hooks, &wanted, contents));
        let (queued, matched) =
            matching.await.map_err(|error| StoreError::Internal(format!("matching webhooks: {error}")))??;
        // The events to match are the last ones of the step, because numbers grow.
        Ok((queued, passed + matched))
    }

    async fn take(&self, tx: &mut TenantTransaction, _: &[EventHeader], mut prepared: Vec<NewDelivery>) -> Result<()> {
        retain_visible(tx, &mut prepared).await?;
        let filled: BTreeSet<Uuid> = prepared.iter().map(|queued| queued.webhook).collect();
        queue(tx, &prepared).await?;
        pause_overfull(tx, filled).await
    }

    /// Deleted events can no longer be posted.
    async fn catch_up(&self, tx: &mut TenantTransaction, missed: CatchUpReason) -> Result<()> {
        if missed == CatchUpReason::EventsForgotten {
            tracing::warn!(tenant = %tx.owner_id, "webhooks missed events, which were deleted before they were posted");
        }
        Ok(())
    }

    fn stepped(&self, _owner_id: Uuid) {
        self.0.deliveries_queued.notify_one();
    }
}

async fn hooks(tx: &mut TenantTransaction) -> Result<Hooks> {
    let owner_id = tx.owner_id;
    let hooks: Vec<Hook> = sqlx::query_as(
        "SELECT w.id, w.agent_id, w.after, w.selector::text AS selector
         FROM webhooks w WHERE w.owner_id = $1 AND w.state = 'active'
            AND NOT EXISTS (SELECT FROM agents a WHERE a.id = w.agent_id AND a.deleted_at IS NOT NULL)
         ORDER BY w.id",
    )
    .bind(owner_id)
    .fetch_all(tx.connection())
    .await?;
    let agents: Vec<Uuid> = hooks.iter().filter(|hook| hook.selector.is_none()).map(|hook| hook.agent_id).collect();
    let selectors =
        sqlx::query_as("SELECT agent_id, selector::text FROM selectors WHERE owner_id = $1 AND agent_id = ANY($2)")
            .bind(owner_id)
            .bind(&agents)
            .fetch_all(tx.connection())
            .await?;
    Ok(Hooks { hooks, selectors })
}

/// The first events whose contexts together fit into memory.
fn fitting_prefix(events: &[EventHeader]) -> &[EventHeader] {
    let mut bytes = 0;
    let fits = |event: &&EventHeader| {
        bytes += event.size_bytes;
        bytes <= CHUNK_BYTES
    };
    let fitting = events.iter().take_while(fits).count();
    &events[..fitting.max(1).min(events.len())]
}

/// A row to write.
pub(crate) struct NewDelivery {
    webhook: Uuid,
    /// The webhook's agent.
    agent: Uuid,
    event: i64,
    breadcrumb_id: Uuid,
    version: i64,
    payload: Arc<str>,
    /// Whether the payload leaves the context out.
    is_redacted: bool,
}

async fn contents(tx: &mut TenantTransaction, hooks: &[Hook], events: &[EventHeader]) -> Result<Vec<Content>> {
    let owner_id = tx.owner_id;
    let numbers: Vec<i64> = events.iter().map(|event| event.number).collect();
    let agents: Vec<Uuid> = hooks.iter().map(|hook| hook.agent_id).collect::<BTreeSet<_>>().into_iter().collect();
    // Older versions of a record that is secret now are no longer delivered.
    Ok(sqlx::query_as(
        "SELECT e.number, coalesce(b.tags, v.tags) AS tags, coalesce(b.schema_name, v.schema_name) AS schema_name,
            CASE WHEN s.is_secret THEN NULL ELSE coalesce(b.context, v.context) END AS context, s.is_secret,
            coalesce('private' IN (n.visibility, coalesce(b.visibility, v.visibility, 'private')), false) AS is_private,
            ARRAY(SELECT a FROM unnest($3) a WHERE agent_can_see_version(a, e.breadcrumb_id, e.version)) AS viewers,
            CASE WHEN coalesce(b.schema_name, v.schema_name) IN ('tool.response.v1', 'tool.create.response.v1')
                THEN ARRAY(SELECT a FROM unnest($3) a WHERE agent_can_get_response(a, e.breadcrumb_id))
                ELSE '{}' END AS response_viewers
         FROM events e
         LEFT JOIN breadcrumbs n ON n.owner_id = $1 AND n.id = e.breadcrumb_id
         LEFT JOIN breadcrumbs b ON b.owner_id = $1 AND b.id = e.breadcrumb_id AND b.version = e.version
         LEFT JOIN breadcrumb_versions v
            ON v.owner_id = $1 AND v.breadcrumb_id = e.breadcrumb_id AND v.version = e.version
         CROSS JOIN LATERAL (
            SELECT 'secret' IN (coalesce(n.sensitivity, ''), coalesce(v.sensitivity, '')) OR (n.id IS NULL AND EXISTS (
                SELECT FROM breadcrumb_versions l
                WHERE l.owner_id = $1 AND l.breadcrumb_id = e.breadcrumb_id AND l.version > e.version
                    AND l.sensitivity = 'secret')) AS is_secret) s
         WHERE e.owner_id = $1 AND e.number = ANY($2)",
    )
    .bind(owner_id)
    .bind(&numbers)
    .bind(&agents)
    .fetch_all(tx.connection())
    .await?)
}

/// Returns the deliveries to queue, and how many of the events they cover: matching stops when
/// [`STEP_FUEL`] is used up.
fn matching(
    owner_id: Uuid,
    hooks: &Hooks,
    events: &[EventHeader],
    contents: Vec<Content>,
) -> Result<(Vec<NewDelivery>, usize), StoreError> {
    let hooks = hooks.with_selectors();
    let mut contents: HashMap<i64, Content> = contents.into_iter().map(|content| (content.number, content)).collect();
    let mut queued = Vec::new();
    let mut spent = 0;
    // A webhook whose selectors cost more than its part does not get the event. Most selectors
    // reject an event at once, so each gets at least [`ORDINARY_FUEL`] until the event has cost one
    // step's work. An event is not divided between steps.
    let part = STEP_FUEL / hooks.len().max(1) as u64;
    for (index, followed) in events.iter().enumerate() {
        if spent > STEP_FUEL {
            return Ok((queued, index));
        }
        // Deleted meanwhile.
        let Some(content) = contents.remove(&followed.number) else { continue };
        let event = Event {
            number: EventNumber(followed.number),
            kind: followed.kind()?,
            breadcrumb_id: followed.breadcrumb_id,
            owner_id,
            version: followed.version,
            tags: content.tags.unwrap_or_default(),
            schema_name: content.schema_name,
            updated_at: followed.at,
            context: content.context.map(|json| json.0).unwrap_or_default().into(),
            redacted: content.is_secret,
            private: content.is_private,
        };
        let viewers: HashSet<Uuid> = content.viewers.into_iter().collect();
        let mut payload: Option<Arc<str>> = None;
        let spent_before = spent;
        for wanting in &hooks {
            let hook = wanting.hook;
            if hook.after >= followed.number || !viewers.contains(&hook.agent_id) {
                continue;
            }
            let allowed = if spent - spent_before < STEP_FUEL { part.max(ORDINARY_FUEL) } else { part };
            let mut fuel = Fuel::steps(allowed);
            let wants = wanting.matches(&event, &mut fuel);
            spent += allowed - fuel.left();
            match wants {
                Ok(SelectorMatch::Always) => {}
                Ok(SelectorMatch::RequesterOnly) if content.response_viewers.contains(&hook.agent_id) => {}
                Ok(SelectorMatch::RequesterOnly | SelectorMatch::Never) => continue,
                Err(OutOfFuel) => {
                    metrics::counter!("rcrt_matches_refused_total", "where" => "webhook").increment(1);
                    continue;
                }
            }
            let payload = match &payload {
                Some(payload) => payload.clone(),
                None => {
                    let text = serde_json::to_string(&event)
                        .map_err(|error| StoreError::Internal(format!("an event cannot be written: {error}")))?;
                    payload.insert(text.into()).clone()
                }
            };
            queued.push(NewDelivery {
                webhook: hook.id,
                agent: hook.agent_id,
                event: followed.number,
                breadcrumb_id: followed.breadcrumb_id,
                version: followed.version,
                payload,
                is_redacted: event.redacted,
            });
        }
    }
    Ok((queued, events.len()))
}

/// Drops deliveries whose agent can no longer see the record, or whose record became secret during
/// matching.
async fn retain_visible(tx: &mut TenantTransaction, queued: &mut Vec<NewDelivery>) -> Result<()> {
    if queued.is_empty() {
        return Ok(());
    }
    let (owner_id, mut asked) = (tx.owner_id, HashSet::new());
    let (mut agents, mut records, mut versions) = (Vec::new(), Vec::new(), Vec::new());
    for one in queued.iter() {
        if asked.insert((one.agent, one.breadcrumb_id, one.version)) {
            agents.push(one.agent);
            records.push(one.breadcrumb_id);
            versions.push(one.version);
        }
    }
    let rows: Vec<(Uuid, Uuid, i64, bool)> = sqlx::query_as(
        "SELECT q.agent, q.record, q.version, coalesce(
            (SELECT b.sensitivity = 'secret' FROM breadcrumbs b WHERE b.owner_id = $1 AND b.id = q.record),
            EXISTS (SELECT FROM breadcrumb_versions l WHERE l.owner_id = $1 AND l.breadcrumb_id = q.record
                AND l.version > q.version AND l.sensitivity = 'secret')) AS is_secret
         FROM unnest($2, $3, $4) AS q (agent, record, version) WHERE agent_can_see_version(q.agent, q.record, q.version)",
    )
    .bind(owner_id)
    .bind(&agents)
    .bind(&records)
    .bind(&versions)
    .fetch_all(tx.connection())
    .await?;
    let visible: HashMap<(Uuid, Uuid, i64), bool> =
        rows.into_iter().map(|(agent, record, version, is_secret)| ((agent, record, version), is_secret)).collect();
    queued.retain(|one| {
        let is_secret = visible.get(&(one.agent, one.breadcrumb_id, one.version));
        is_secret.is_some_and(|is_secret| one.is_redacted || !is_secret)
    });
    Ok(())
}

async fn queue(tx: &mut TenantTransaction, queued: &[NewDelivery]) -> Result<()> {
    if queued.is_empty() {
        return Ok(());
    }
    let owner_id = tx.owner_id;
    let ids: Vec<Uuid> = queued.iter().map(|queued| delivery_id(queued.webhook, queued.event)).collect();
    let webhooks: Vec<Uuid> = queued.iter().map(|queued| queued.webhook).collect();
    let events: Vec<i64> = queued.iter().map(|queued| queued.event).collect();
    // An event for many webhooks is sent to the database once.
    let mut payloads: Vec<&str> = Vec::new();
    let mut payload_indexes: Vec<i32> = Vec::with_capacity(queued.len());
    let mut last: Option<i64> = None;
    for one in queued {
        if last != Some(one.event) {
            payloads.push(&one.payload);
            last = Some(one.event);
        }
        payload_indexes.push(payloads.len() as i32);
    }
    // A webhook that was deleted meanwhile gets nothing.
    sqlx::query(
        "INSERT INTO deliveries (id, owner_id, webhook_id, event, breadcrumb_id, version, payload, size_bytes)
         SELECT q.id, $1, q.webhook, q.event, q.breadcrumb_id, q.version, p.payload::json, octet_length(p.payload)
         FROM unnest($2, $3, $4, $5, $7, $8) AS q (id, webhook, event, payload_index, breadcrumb_id, version)
         JOIN unnest($6) WITH ORDINALITY AS p (payload, payload_index) ON p.payload_index = q.payload_index
         WHERE EXISTS (SELECT FROM webhooks w WHERE w.owner_id = $1 AND w.id = q.webhook FOR KEY SHARE)
         ON CONFLICT DO NOTHING",
    )
    .bind(owner_id)
    .bind(&ids)
    .bind(&webhooks)
    .bind(&events)
    .bind(&payload_indexes)
    .bind(&payloads)
    .bind(queued.iter().map(|queued| queued.breadcrumb_id).collect::<Vec<_>>())
    .bind(queued.iter().map(|queued| queued.version).collect::<Vec<_>>())
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// A receiver that is this far behind gets nothing more until its webhook is resumed.
async fn pause_overfull(tx: &mut TenantTransaction, filled: BTreeSet<Uuid>) -> Result<()> {
    if filled.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = filled.into_iter().collect();
    let paused: Vec<Uuid> = sqlx::query_scalar(
        "UPDATE webhooks w SET state = 'paused', paused_because = concat('more than ', $2, ' deliveries, or ', $3 / 1048576, ' MiB of them, wait')
         WHERE w.id = ANY($1) AND w.state = 'active' AND (
            SELECT count(*) > $2 OR sum(size_bytes) > $3
            FROM (SELECT d.size_bytes FROM deliveries d
                  WHERE d.owner_id = w.owner_id AND d.webhook_id = w.id AND d.state = 'waiting'
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

/// The same id for the same event, even if a crash of the database lost the row and it is queued
/// again. A receiver recognizes duplicates by it.
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
