//! The tools that other live runners of the tenant serve. Runners can have different programs and
//! settings. Each publishes its native tools in a `tool.runner.v1` record, which expires soon
//! unless it is renewed. A runner that lacks a requirement leaves the calls to a runner that has
//! it, and refuses them only if no such runner exists.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{
    BreadcrumbQuery, CatalogEntry, MAX_PAGE, NewBreadcrumb, Records, StoreError, TtlType, schema_names::TOOL_RUNNER,
};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::with_retries;
use crate::coordination::queue_hints::QueueHints;
use crate::registry::Registry;
use crate::registry::tool::Candidate;

/// How long the record of a runner is stored without being renewed. The runner itself counts as
/// live until its lease ends.
const REGISTRATION_TTL: Duration = Duration::from_mins(3);
const REGISTRATION_INTERVAL: Duration = Duration::from_mins(1);
/// After a change of the tools, the runner waits this long for more changes.
const QUIET: Duration = Duration::from_millis(500);
/// When stopping: how long a write in progress, and then the deregistration, can take.
const DEREGISTER_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct PeerRunners {
    store: Arc<dyn Records>,
    registry: Arc<Registry>,
    hints: Arc<QueueHints>,
    runner_id: Uuid,
    peers: Mutex<HashMap<Uuid, Peer>>,
    listed: OnceCell<()>,
}

struct Peer {
    runner_id: Uuid,
    since: Instant,
    serves: HashSet<String>,
    until: Instant,
}

impl PeerRunners {
    pub fn new(store: Arc<dyn Records>, registry: Arc<Registry>, hints: Arc<QueueHints>, runner_id: Uuid) -> Arc<Self> {
        Arc::new(Self { store, registry, hints, runner_id, peers: Mutex::default(), listed: OnceCell::new() })
    }

    fn is_served(&self, tool: &str) -> bool {
        let now = Instant::now();
        self.peers.lock().values().any(|peer| peer.until > now && peer.serves.contains(tool))
    }

    /// The tools that other live runners serve.
    fn served(&self) -> BTreeSet<String> {
        let now = Instant::now();
        self.peers.lock().values().filter(|peer| peer.until > now).flat_map(|peer| &peer.serves).cloned().collect()
    }

    /// Lists the other runners if that was not done before. Events keep the list up to date from
    /// then on.
    pub async fn listed(&self) {
        if let Err(error) = self.listed.get_or_try_init(|| async { self.list().await.map(drop) }).await {
            tracing::warn!(%error, "other runners cannot be listed");
        }
    }

    /// Whether another live runner serves the tool; for tools with missing requirements here.
    pub async fn serves(&self, tool: &str) -> bool {
        self.listed().await;
        self.is_served(tool)
    }

    /// The tools whose calls are to be left to peers.
    pub fn tools_of_peers(&self) -> Vec<String> {
        self.served().into_iter().filter(|tool| self.registry.lacks_settings(tool)).collect()
    }

    /// All tools that at least one runner of the tenant offers, sorted by name.
    pub fn offered(&self) -> Vec<Arc<Candidate>> {
        self.registry.all_offered(&self.served())
    }

    /// The entry for the tenant's catalog: a tool that any of the runners serves is offered.
    pub fn entry(&self, tool: &str) -> Option<CatalogEntry> {
        match self.registry.entry(tool)? {
            CatalogEntry::Waiting(waiting) if self.is_served(tool) => {
                self.registry.as_if_offered(tool).or(Some(CatalogEntry::Waiting(waiting)))
            }
            entry => Some(entry),
        }
    }

    /// A runner published what it serves.
    pub fn registered(&self, record: Uuid, context: &Map<String, Value>) {
        let Some((runner_id, serves)) = serves(context, self.runner_id) else { return };
        let names: Vec<String> = serves.iter().cloned().collect();
        let since = Instant::now();
        self.peers.lock().insert(record, Peer { runner_id, since, serves, until: since + REGISTRATION_TTL });
        self.registry.touch(names);
    }

    /// A runner's record no longer applies: the runner has written a newer one, or has stopped.
    pub fn deregistered(&self, record: Uuid) {
        let Some(peer) = self.peers.lock().remove(&record) else { return };
        self.registry.touch(peer.serves);
        self.hints.now();
    }

    /// Forgets runners whose lease has ended. `asked`: when the list of live runners was requested.
    /// A runner that registered later may be missing in it.
    pub fn only_live(&self, live: &HashSet<Uuid>, asked: Instant) {
        let ended = |peer: &Peer| !live.contains(&peer.runner_id) && peer.since < asked;
        let gone: Vec<Uuid> =
            self.peers.lock().iter().filter(|(_, peer)| ended(peer)).map(|(record, _)| *record).collect();
        for record in gone {
            self.deregistered(record);
        }
    }

    /// After a gap in the events: finds runners that started or stopped meanwhile.
    pub async fn list_again(&self) {
        let before: HashSet<Uuid> = self.peers.lock().keys().copied().collect();
        match self.list().await {
            Ok(listed) if listed.len() < MAX_PAGE as usize => {
                for gone in before.difference(&listed) {
                    self.deregistered(*gone);
                }
            }
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "other runners cannot be listed"),
        }
    }

    /// Reads the records of all runners. Returns their ids.
    async fn list(&self) -> Result<HashSet<Uuid>, StoreError> {
        let query = BreadcrumbQuery { limit: MAX_PAGE, ..BreadcrumbQuery::of_schema(TOOL_RUNNER) };
        let rows = with_retries("list runners", || self.store.list(&query)).await?;
        for row in &rows {
            if let Some(context) = &row.context {
                self.registered(row.id, context);
            }
        }
        Ok(rows.into_iter().map(|row| row.id).collect())
    }

    /// Publishes what this runner serves, until stopped.
    pub async fn run(&self, stop: CancellationToken) {
        let mut published: Option<(Uuid, BTreeSet<String>)> = None;
        tokio::select! {
            // Let a write in progress finish, so that no record is left behind.
            () = async { stop.cancelled().await; sleep(DEREGISTER_TIMEOUT).await } => {}
            () = self.publish(&mut published, &stop) => {}
        }
        if let Some((record, _)) = published {
            // Delete it, so that other runners need not wait until it expires.
            let _ = timeout(DEREGISTER_TIMEOUT, self.store.delete(record, None)).await;
        }
    }

    async fn publish(&self, published: &mut Option<(Uuid, BTreeSet<String>)>, stop: &CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => return,
            () = self.listed() => {}
        }
        let mut changes = self.registry.changes.subscribe();
        let mut renew = Instant::now();
        while !stop.is_cancelled() {
            changes.mark_unchanged();
            let serves = self.registry.served_by_settings();
            let is_due = renew <= Instant::now();
            let is_news = published.as_ref().map_or(!serves.is_empty(), |(_, before)| *before != serves);
            if is_news || (is_due && published.is_some()) {
                let record = record(self.runner_id, &serves);
                match with_retries("publish what this runner serves", || self.store.create(record.clone(), None)).await
                {
                    Ok(created) => {
                        // Delete after creating, so that a record exists at all times.
                        if let Some((old, _)) = published.replace((created.id, serves)) {
                            let _ = self.store.delete(old, None).await;
                        }
                    }
                    Err(error) => tracing::warn!(%error, "what this runner serves cannot be published"),
                }
            }
            if is_news || is_due {
                renew = Instant::now() + REGISTRATION_INTERVAL;
            }
            tokio::select! {
                () = stop.cancelled() => {}
                () = async { let _ = changes.changed().await; sleep(QUIET).await } => {}
                () = sleep_until(renew.max(Instant::now() + QUIET)) => {}
            }
        }
    }
}

/// `None` for this runner's own record, and for a malformed one.
fn serves(context: &Map<String, Value>, own: Uuid) -> Option<(Uuid, HashSet<String>)> {
    let runner_id = context.get("runner_id")?.as_str()?.parse::<Uuid>().ok().filter(|id| *id != own)?;
    let names = context.get("serves")?.as_array()?;
    Some((runner_id, names.iter().filter_map(|name| Some(name.as_str()?.to_owned())).collect()))
}

fn record(runner_id: Uuid, serves: &BTreeSet<String>) -> NewBreadcrumb {
    let mut context = Map::new();
    context.insert("runner_id".into(), runner_id.to_string().into());
    context.insert("serves".into(), serves.iter().cloned().collect());
    NewBreadcrumb {
        title: "Live runner".into(),
        context,
        tags: vec!["tool:runner".into()],
        schema_name: Some(TOOL_RUNNER.into()),
        ttl_type: Some(TtlType::Duration),
        ttl_config: Some(json!({"duration": REGISTRATION_TTL.as_secs()})),
        ..NewBreadcrumb::default()
    }
}
