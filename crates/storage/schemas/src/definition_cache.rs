//! A cache of each tenant's definitions. They are read when first needed and then updated by the
//! tenant's events.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use futures::StreamExt;
use parking_lot::{Mutex, RwLock};
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbQuery, Breadcrumbs, EventNumber, Events, Identity, MAX_PAGE, NewBreadcrumb, Profile, Records,
    Role, Selector, StoreError, SubscribeOptions, SubscriptionItem, SubscriptionStream, Tenancy, schema_names,
};
use rcrt_json_schema::Budget;
use tokio::sync::OnceCell;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use uuid::Uuid;

use crate::definition::{Definition, not_checked};

/// The maximum number of definitions of one tenant.
pub(crate) const MAX_DEFINITIONS: usize = MAX_PAGE as usize;
/// A tenant without reads and writes for this long is no longer followed. Its definitions are read
/// again when they are needed.
const KEPT_FOR: Duration = Duration::from_mins(10);
/// The approximate maximum size of the compiled schemas of one tenant's definitions, in bytes.
const BUDGET: u64 = 64 * 1024 * 1024;
const RETRY: Duration = Duration::from_millis(500);

/// The definitions at one moment.
#[derive(Debug, Default)]
pub(crate) struct DefinitionSet {
    by_name: HashMap<String, Arc<Definition>>,
    /// The records of all definitions, including those that do not apply.
    by_record: HashMap<Uuid, (i64, Option<Arc<Definition>>)>,
}

impl DefinitionSet {
    /// The definition that applies to this name.
    pub(crate) fn of(&self, schema_name: Option<&str>) -> Option<&Arc<Definition>> {
        // Most tenants have no definitions, and most records have no defined name.
        if self.by_name.is_empty() { None } else { self.by_name.get(schema_name?) }
    }

    /// The name that a record defines. `None` if it is not a valid definition.
    pub(crate) fn defined_by(&self, record: Uuid) -> Option<&str> {
        Some(self.by_record.get(&record)?.1.as_ref()?.name.as_str())
    }

    pub(crate) fn count(&self) -> usize {
        self.by_record.len()
    }
}

/// The definitions of all tenants that this process uses.
pub(crate) struct DefinitionCache {
    tenancy: Arc<dyn Tenancy>,
    tenants: Mutex<HashMap<Uuid, Arc<Tenant>>>,
    /// The longest that a write waits for its check.
    pub(crate) check_timeout: Duration,
    pub(crate) tasks: TaskTracker,
    pub(crate) stop: CancellationToken,
}

struct Tenant {
    id: Uuid,
    /// The memory budget for the schemas of all its definitions.
    budget: Budget,
    known: RwLock<Arc<DefinitionSet>>,
    begun: OnceCell<()>,
    used_at: Mutex<Instant>,
    /// Numbers each read when it begins, so that an older read does not replace the result of a
    /// newer one.
    begins: AtomicU64,
    read: AtomicU64,
}

impl DefinitionCache {
    pub(crate) fn new(tenancy: Arc<dyn Tenancy>, check_timeout: Duration) -> Arc<Self> {
        Arc::new(Self {
            tenancy,
            tenants: Mutex::default(),
            check_timeout,
            tasks: TaskTracker::new(),
            stop: CancellationToken::new(),
        })
    }

    /// The tenant's definitions. Queries the store only the first time.
    pub(crate) async fn of(self: &Arc<Self>, owner_id: Uuid) -> Result<Arc<DefinitionSet>, StoreError> {
        let tenant = self.tenant(owner_id);
        tenant.begun.get_or_try_init(|| Box::pin(self.begin(owner_id, &tenant))).await?;
        Ok(tenant.known())
    }

    /// Reads the definitions again after a definition was written here, because its writer must see
    /// it at once. Writes of other servers arrive as events.
    pub(crate) async fn refresh(&self, owner_id: Uuid) {
        let tenant = self.tenant(owner_id);
        if tenant.begun.initialized()
            && let Err(error) = tenant.read(&*self.reader(owner_id)).await
        {
            tracing::warn!(tenant = %owner_id, %error, "definitions cannot be read again; their event will update them");
        }
    }

    /// Validates a record that is to become a definition of the tenant. Returns the name that it
    /// defines.
    pub(crate) async fn judge(&self, owner_id: Uuid, record: &NewBreadcrumb) -> Result<String, StoreError> {
        let budget = self.tenant(owner_id).budget.clone();
        let (context, tags, hints) = (record.context.clone(), record.tags.clone(), record.llm_hints.clone());
        let reading =
            move || Definition::read(&context, &tags, hints.as_ref(), &budget).map(|definition| definition.name);
        let deadline = tokio::time::Instant::now() + self.check_timeout;
        let judged = rcrt_compute::pool().run_until(owner_id, deadline, reading).await;
        judged.map_err(not_checked)?.map_err(StoreError::from)
    }

    fn tenant(&self, owner_id: Uuid) -> Arc<Tenant> {
        let mut tenants = self.tenants.lock();
        let tenant = tenants.entry(owner_id).or_insert_with(|| Arc::new(Tenant::new(owner_id))).clone();
        drop(tenants);
        *tenant.used_at.lock() = Instant::now();
        tenant
    }

    /// A store for the runtime's own reads: it sees all records, and its reads are not counted.
    fn reader(&self, owner_id: Uuid) -> Arc<dyn Breadcrumbs> {
        let roles = vec![Role::Runner, Role::Emitter, Role::Subscriber];
        self.tenancy.acting_as(Identity { owner_id, agent_id: Uuid::nil(), roles, profile: Profile::Main })
    }

    async fn begin(self: &Arc<Self>, owner_id: Uuid, tenant: &Arc<Tenant>) -> Result<(), StoreError> {
        let reader = self.reader(owner_id);
        // What is written after this number arrives as an event.
        let after = reader.latest_event().await?;
        tenant.read(&*reader).await?;
        let (definitions, tenant) = (self.clone(), tenant.clone());
        self.tasks.spawn(async move {
            let stop = definitions.stop.clone();
            tokio::select! {
                () = stop.cancelled() => {}
                () = tenant.follow(&*reader, after) => {
                    definitions.tenants.lock().remove(&owner_id);
                }
            }
        });
        Ok(())
    }
}

impl Tenant {
    fn new(id: Uuid) -> Self {
        Self {
            id,
            budget: Budget::new(BUDGET),
            known: RwLock::default(),
            begun: OnceCell::new(),
            used_at: Mutex::new(Instant::now()),
            begins: AtomicU64::new(1),
            read: AtomicU64::new(0),
        }
    }

    fn known(&self) -> Arc<DefinitionSet> {
        self.known.read().clone()
    }

    fn idle_for(&self) -> Duration {
        self.used_at.lock().elapsed()
    }

    /// Follows the tenant's events until the tenant is no longer used.
    async fn follow(&self, reader: &(impl Records + Events + ?Sized), mut after: EventNumber) {
        loop {
            let options = SubscribeOptions { after: Some(after), filters: vec![definitions()], by_selectors: false };
            match reader.subscribe(options).await {
                Ok(events) => {
                    if self.apply_events(reader, events, &mut after).await.is_break() {
                        return;
                    }
                }
                Err(StoreError::Invalid(_)) => after = EventNumber(0),
                Err(_) => {}
            }
            // The stream broke: read what was missed.
            tokio::time::sleep(RETRY).await;
            if let Ok(newest) = reader.latest_event().await
                && self.read(reader).await.is_ok()
            {
                after = newest;
            }
        }
    }

    async fn apply_events(
        &self,
        reader: &(impl Records + ?Sized),
        mut events: SubscriptionStream,
        after: &mut EventNumber,
    ) -> std::ops::ControlFlow<()> {
        let mut looks = tokio::time::interval(KEPT_FOR / 10);
        loop {
            let event = tokio::select! {
                event = events.next() => event,
                _ = looks.tick() => {
                    if self.idle_for() > KEPT_FOR { return std::ops::ControlFlow::Break(()) }
                    continue;
                }
            };
            let number = match event {
                Some(Ok(SubscriptionItem::Skipped(number))) => {
                    *after = number;
                    continue;
                }
                Some(Ok(SubscriptionItem::Event(event))) => event.number,
                Some(Ok(SubscriptionItem::Missed { first })) => EventNumber(first.0 - 1),
                Some(Err(_)) | None => return std::ops::ControlFlow::Continue(()),
            };
            while let Err(error) = self.read(reader).await {
                tracing::warn!(%error, "definitions cannot be read again; retrying");
                tokio::time::sleep(RETRY).await;
            }
            *after = number;
        }
    }

    /// Reads the definitions that are not in the cache yet.
    async fn read(&self, reader: &(impl Records + ?Sized)) -> Result<(), StoreError> {
        let begin = self.begins.fetch_add(1, Ordering::Relaxed);
        let before = self.known();
        let query = BreadcrumbQuery { selector: definitions(), limit: MAX_PAGE, ..BreadcrumbQuery::default() };
        let mut known = DefinitionSet::default();
        let mut oldest: HashMap<String, Uuid> = HashMap::new();
        let mut items = reader.list(&query).await?;
        // If there are too many, the oldest apply, so that all servers agree.
        items.sort_unstable_by_key(|item| item.id);
        for item in items {
            let (version, definition) = match before.by_record.get(&item.id) {
                Some((version, definition)) if *version == item.version => (*version, definition.clone()),
                _ => match reader.get(item.id).await {
                    Ok(record) => (record.version, self.judge(record).await),
                    // Deleted meanwhile: its event will arrive.
                    Err(StoreError::NotFound { .. }) => continue,
                    Err(error) => return Err(error),
                },
            };
            if let Some(definition) = &definition {
                // Ids grow with time.
                let first = oldest.entry(definition.name.clone()).or_insert(item.id);
                if item.id <= *first {
                    *first = item.id;
                    known.by_name.insert(definition.name.clone(), definition.clone());
                }
            }
            known.by_record.insert(item.id, (version, definition));
        }
        let mut there = self.known.write();
        if self.read.load(Ordering::Relaxed) < begin {
            self.read.store(begin, Ordering::Relaxed);
            *there = Arc::new(known);
        }
        Ok(())
    }

    /// `None` for an invalid definition: it was written before definitions were checked, or there
    /// are too many.
    async fn judge(&self, record: Breadcrumb) -> Option<Arc<Definition>> {
        let (id, budget) = (record.id, self.budget.clone());
        let reading = move || Definition::read(&record.context, &record.tags, record.llm_hints.as_ref(), &budget);
        match rcrt_compute::pool().run(self.id, reading).await {
            Ok(Ok(definition)) => Some(Arc::new(definition)),
            Ok(Err(violations)) => {
                tracing::warn!(record = %id, %violations, "this definition is invalid and does not apply");
                None
            }
            Err(error) => {
                tracing::error!(record = %id, %error, "a definition cannot be read");
                None
            }
        }
    }
}

fn definitions() -> Selector {
    Selector { schema_name: Some(schema_names::SCHEMA_DEFINITION.into()), ..Selector::default() }
}
