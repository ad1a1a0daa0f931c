//! The tools that other live runners of the tenant serve. Runners can have different programs and
//! settings. Each publishes its native tools, or that it has none, in a `tool.runner.v1` record,
//! which expires soon unless it is renewed. A runner that lacks a requirement leaves the calls to a
//! runner that has it, and refuses them only if no such runner exists.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Mutex, MutexGuard};
use rcrt_breadcrumb::{
    BreadcrumbQuery, CatalogEntry, LiveRunner, MAX_PAGE, NewBreadcrumb, Records, StoreError, TtlType,
    schema_names::TOOL_RUNNER,
};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, sleep_until, timeout};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::with_retries;
use crate::coordination::queue_hints::QueueHints;
use crate::options::Protections;
use crate::registry::Registry;
use crate::registry::tool::Candidate;

/// How long the record of a runner is stored without being renewed. The runner itself counts as
/// live until its lease ends.
const REGISTRATION_TTL: Duration = Duration::from_mins(3);
const REGISTRATION_INTERVAL: Duration = Duration::from_mins(1);
/// After a change of the tools, the runner waits this long for more changes.
const QUIET: Duration = Duration::from_millis(500);
/// A longer time between two lists of live runners means that this runner was paused or cut off.
/// Then the others have this long to report.
const GRACE: Duration = Duration::from_secs(5);
/// When stopping: how long a write in progress, and then the deregistration, can take.
const DEREGISTER_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) struct PeerRunners {
    store: Arc<dyn Records>,
    registry: Arc<Registry>,
    hints: Arc<QueueHints>,
    runner_id: Uuid,
    protections: Option<Protections>,
    known: Mutex<KnownPeers>,
    listed: OnceCell<()>,
}

/// What this runner knows of the others.
#[derive(Default)]
struct KnownPeers {
    /// By the id of their record. A runner whose lease has ended can come back with the same
    /// record, for example after a pause.
    peers: HashMap<Uuid, Peer>,
    /// The live runners by the last list, with the end of their leases as far as it is known. One
    /// that is missing in a list stays until then: the database may have lost its table of runners.
    live_until: HashMap<Uuid, Instant>,
    /// When the last list was requested.
    asked: Option<Instant>,
    /// What the live ones served when this runner last looked.
    served: BTreeSet<String>,
}

struct Peer {
    runner_id: Uuid,
    since: Instant,
    serves: HashSet<String>,
    until: Instant,
}

impl KnownPeers {
    /// The live ones. A runner that registered after the last list was requested counts as live.
    fn live(&self) -> impl Iterator<Item = &Peer> {
        let now = Instant::now();
        let is_live = |peer: &Peer| self.asked.is_none_or(|asked| peer.since >= asked);
        self.peers
            .values()
            .filter(move |peer| peer.until > now && (is_live(peer) || self.live_until.contains_key(&peer.runner_id)))
    }

    fn served_now(&self) -> BTreeSet<String> {
        self.live().flat_map(|peer| &peer.serves).cloned().collect()
    }

    /// Learns from a list of live runners that was requested at `asked`.
    fn listed(&mut self, runners: &[LiveRunner], asked: Instant, now: Instant) {
        // After a pause or a lost connection of this runner, the others may have to report again
        // too.
        let was_cut_off = self.asked.is_some_and(|before| asked.duration_since(before) > GRACE);
        for until in self.live_until.values_mut().filter(|_| was_cut_off) {
            *until = (*until).max(now + GRACE);
        }
        self.live_until.retain(|_, until| *until > now);
        for runner in runners {
            self.live_until.insert(runner.runner_id, now + Duration::from_millis(runner.lease_left_ms));
        }
        self.peers.retain(|_, peer| peer.until > now);
        self.asked = Some(asked);
    }
}

impl PeerRunners {
    pub fn new(
        store: Arc<dyn Records>,
        registry: Arc<Registry>,
        hints: Arc<QueueHints>,
        runner_id: Uuid,
        protections: Option<Protections>,
    ) -> Arc<Self> {
        let (known, listed) = (Mutex::default(), OnceCell::new());
        Arc::new(Self { store, registry, hints, runner_id, protections, known, listed })
    }

    fn known(&self) -> MutexGuard<'_, KnownPeers> {
        self.known.lock()
    }

    fn is_served(&self, tool: &str) -> bool {
        self.known().live().any(|peer| peer.serves.contains(tool))
    }

    /// The tools that other live runners serve.
    fn served(&self) -> BTreeSet<String> {
        self.known().served_now()
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
        let since = Instant::now();
        self.change(|known| {
            known.peers.insert(record, Peer { runner_id, since, serves, until: since + REGISTRATION_TTL });
        });
    }

    /// A runner's record no longer applies: the runner has written a newer one, or has stopped.
    pub fn deregistered(&self, record: Uuid) {
        self.change(|known| {
            known.peers.remove(&record);
        });
    }

    /// The live runners, by a list that was requested at `asked`.
    pub fn live(&self, runners: &[LiveRunner], asked: Instant) {
        self.change(|known| known.listed(runners, asked, Instant::now()));
    }

    /// Makes a change, and looks again at the tools that are now served by others or no longer are.
    fn change(&self, change: impl FnOnce(&mut KnownPeers)) {
        let (changed, has_lost) = {
            let mut known = self.known();
            change(&mut known);
            let now = known.served_now();
            let before = std::mem::replace(&mut known.served, now);
            let changed: Vec<String> = before.symmetric_difference(&known.served).cloned().collect();
            (changed, before.difference(&known.served).next().is_some())
        };
        if !changed.is_empty() {
            self.registry.touch(changed);
        }
        if has_lost {
            self.hints.now();
        }
    }

    /// After a gap in the events: finds runners that started or stopped meanwhile.
    pub async fn list_again(&self) {
        let before: HashSet<Uuid> = self.known().peers.keys().copied().collect();
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
            let is_news = published.as_ref().is_none_or(|(_, before)| *before != serves);
            if is_news || is_due {
                let record = record(self.runner_id, &serves, self.protections.as_ref());
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

fn record(runner_id: Uuid, serves: &BTreeSet<String>, protections: Option<&Protections>) -> NewBreadcrumb {
    let mut context = Map::new();
    context.insert("runner_id".into(), runner_id.to_string().into());
    context.insert("serves".into(), serves.iter().cloned().collect());
    if let Some(protections) = protections {
        let absent = protections.absent.iter().map(|one| json!({"name": one.name, "reason": one.reason}));
        let (level, in_force) = (&protections.level, &protections.in_force);
        let described = json!({"level": level, "in_force": in_force, "absent": absent.collect::<Vec<Value>>()});
        context.insert("protections".into(), described);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    const LEASE: Duration = Duration::from_secs(15);

    fn live(runners: &[u128]) -> Vec<LiveRunner> {
        let runner = |id: &u128| LiveRunner {
            runner_id: Uuid::from_u128(*id),
            host: "host".into(),
            working_folder: None,
            lease_left_ms: LEASE.as_millis() as u64,
        };
        runners.iter().map(runner).collect()
    }

    /// Whether the peer counts after each of these lists. Each comes `after` the one before.
    fn counts(lists: &[(Duration, &[u128])]) -> Vec<bool> {
        let (mut known, mut now) = (KnownPeers::default(), Instant::now());
        let mut seen = Vec::new();
        for (after, runners) in lists {
            now += *after;
            known.listed(&live(runners), now, now);
            seen.push(known.live_until.contains_key(&Uuid::from_u128(1)));
        }
        seen
    }

    #[test]
    fn a_runner_counts_until_the_lease_that_was_last_known_ends() {
        let soon = Duration::from_millis(500);
        // Missing in one list: the table was emptied.
        assert_eq!(counts(&[(soon, &[1]), (soon, &[]), (soon, &[1])]), [true; 3]);
        let mut lists: Vec<(Duration, &[u128])> = vec![(soon, &[1])];
        lists.extend([(soon, [].as_slice()); 31]);
        let seen = counts(&lists);
        assert_eq!((seen[29], seen[31]), (true, false));
        // It comes back.
        lists.push((soon, &[1]));
        assert_eq!(counts(&lists).last(), Some(&true));
    }

    #[test]
    fn after_a_pause_of_this_runner_the_others_have_time_to_report() {
        let (soon, pause) = (Duration::from_millis(500), Duration::from_mins(1));
        assert_eq!(
            counts(&[(soon, &[1]), (pause, &[]), (GRACE.saturating_sub(soon), &[]), (soon, &[])]),
            [true, true, true, false]
        );
    }
}
