//! Brings the registry up to what the store has: which records are to be read again, and the reading of them.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use breadcrumb::{
    Breadcrumb, BreadcrumbQuery, BreadcrumbVersion, Breadcrumbs, ContextMatch, ContextPath, MatchOp, Selector,
    StoreError, schema_names,
};
use serde_json::Value;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::persist;
use crate::preparing::{Preparing, Version, is_tool};
use crate::readiness::Readiness;
use crate::registry::{Consequences, Reading, Registry, Working};
use crate::tool::Tool;
use crate::tool_errors::ToolErrors;

/// How far back a working version is looked for when the newest does not work.
const MAX_HISTORY: usize = 20;
const PAGE: u32 = 500;

pub(crate) struct Loading {
    pub store: Arc<dyn Breadcrumbs>,
    pub registry: Arc<Registry>,
    pub errors: Arc<ToolErrors>,
    readiness: Arc<Readiness>,
    preparing: Preparing,
    max_loads: usize,
    work: Mutex<Work>,
    more: Notify,
    settled: Notify,
}

/// A record is read by one task at a time; what changes meanwhile is read after.
#[derive(Default)]
struct Work {
    waiting: HashSet<Uuid>,
    reading: HashSet<Uuid>,
}

impl Loading {
    pub fn new(
        store: Arc<dyn Breadcrumbs>,
        registry: Arc<Registry>,
        errors: Arc<ToolErrors>,
        readiness: Arc<Readiness>,
        preparing: Preparing,
        max_loads: usize,
    ) -> Arc<Self> {
        let (work, more, settled) = Default::default();
        let max_loads = max_loads.max(1);
        Arc::new(Self { store, registry, errors, readiness, preparing, max_loads, work, more, settled })
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// This record was written, changed or deleted: read it soon.
    pub fn look_at(&self, id: Uuid) {
        self.work().waiting.insert(id);
        self.more.notify_one();
    }

    pub fn is_settled(&self) -> bool {
        let work = self.work();
        work.waiting.is_empty() && work.reading.is_empty()
    }

    /// Returns when everything that was to be read is read.
    pub async fn settle(&self) {
        loop {
            let settled = self.settled.notified();
            tokio::pin!(settled);
            settled.as_mut().enable();
            if self.is_settled() {
                return;
            }
            settled.await;
        }
    }

    /// Reads until stopped.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        let mut ids = HashMap::new();
        loop {
            while tasks.len() < self.max_loads
                && let Some(id) = self.next()
            {
                let loading = self.clone();
                let task = tasks.spawn(async move { loading.read(id).await });
                ids.insert(task.id(), id);
            }
            tokio::select! {
                () = stop.cancelled() => break,
                () = self.more.notified() => {}
                Some(ended) = tasks.join_next_with_id() => {
                    let task = match ended {
                        Ok((task, ())) => task,
                        Err(error) => {
                            tracing::error!(%error, "reading a tool failed");
                            error.id()
                        }
                    };
                    if let Some(id) = ids.remove(&task) {
                        self.work().reading.remove(&id);
                    }
                    if self.is_settled() {
                        self.settled.notify_waiters();
                    }
                }
            }
        }
        tasks.shutdown().await;
    }

    fn next(&self) -> Option<Uuid> {
        let mut work = self.work();
        let id = work.waiting.iter().find(|id| !work.reading.contains(id)).copied()?;
        work.waiting.remove(&id);
        work.reading.insert(id);
        Some(id)
    }

    /// Compares the list of tools with the store's, and looks at whatever differs.
    pub async fn reconcile(&self) -> Result<(), StoreError> {
        let mut gone = self.registry.known();
        for schema in [schema_names::TOOL_CODE, schema_names::TOOL_LEGACY] {
            for (id, version) in self.list_all(schema).await? {
                gone.remove(&id);
                if self.registry.version_of(id) != Some(version) {
                    self.look_at(id);
                }
            }
        }
        for id in gone {
            self.look_at(id);
        }
        Ok(())
    }

    /// Pages overlap by one row: if the first row of a page was not seen, rows moved up meanwhile (one was deleted),
    /// and the list is read again.
    async fn list_all(&self, schema: &str) -> Result<HashMap<Uuid, i64>, StoreError> {
        'again: loop {
            let mut query =
                BreadcrumbQuery { limit: PAGE, include_context: false, ..BreadcrumbQuery::of_schema(schema) };
            let mut seen = HashMap::new();
            loop {
                let page = persist("list tools", || self.store.list(&query)).await?;
                if query.offset > 0 && page.first().is_some_and(|row| !seen.contains_key(&row.id)) {
                    continue 'again;
                }
                let is_last = page.len() < PAGE as usize;
                seen.extend(page.into_iter().map(|row| (row.id, row.version)));
                if is_last {
                    return Ok(seen);
                }
                query.offset += PAGE - 1;
            }
        }
    }

    /// Asks the store for a tool that is not known here: its event may be under way still.
    pub async fn look_for(&self, name: &str) -> Result<(), StoreError> {
        let Ok(path) = ContextPath::try_from("$.name".to_owned()) else { return Ok(()) };
        for schema in [schema_names::TOOL_CODE, schema_names::TOOL_LEGACY] {
            let named = ContextMatch { path: path.clone(), op: MatchOp::Eq, value: name.into() };
            let selector =
                Selector { schema_name: Some(schema.to_owned()), context_match: vec![named], ..Selector::default() };
            let query = BreadcrumbQuery { selector, limit: 10, ..BreadcrumbQuery::default() };
            for row in self.store.list(&query).await? {
                if self.registry.version_of(row.id) != Some(row.version) {
                    self.look_at(row.id);
                }
            }
        }
        self.settle().await;
        Ok(())
    }

    async fn read(&self, id: Uuid) {
        let name = match persist("read a tool", || self.store.get(id)).await {
            Ok(record) if is_tool(record.schema_name.as_deref()) => {
                if self.registry.version_of(id) == Some(record.version) {
                    return;
                }
                let reading = self.reading(&record).await;
                log(&reading);
                let name = reading.working.as_ref().map(|working| working.tool.name().to_owned());
                self.follow_up(self.registry.put(reading));
                name
            }
            Ok(_) | Err(StoreError::NotFound { .. }) => {
                self.follow_up(self.registry.remove(id));
                None
            }
            Err(error) => {
                tracing::error!(tool_id = %id, %error, "a tool cannot be read");
                None
            }
        };
        if let Some(name) = name {
            self.settle_rivals(&name).await;
        }
    }

    fn follow_up(&self, consequences: Consequences) {
        if let Some(tool) = consequences.retired {
            tool.executor.forget(tool.id, tool.version);
        }
        for id in consequences.reports {
            self.errors.look_at(id);
        }
    }

    async fn reading(&self, record: &Breadcrumb) -> Reading {
        let (tool, problem) = match self.preparing.prepare(&Version::newest(record)).await {
            Ok(tool) => (Some(Arc::new(tool)), None),
            Err(problem) => (self.last_working(record).await, Some(problem)),
        };
        let working = match tool {
            None => None,
            Some(tool) => {
                // Before it is seen: a record that takes a name must not have it for a moment.
                if self.registry.is_wanted_by_another(tool.name(), tool.id) {
                    self.date(&tool).await;
                }
                let lacks = self.readiness.of(&tool).await;
                Some(Working { tool, lacks })
            }
        };
        Reading {
            id: record.id,
            version: record.version,
            name: record.context.get("name").and_then(|name| name.as_str()).map(str::to_owned),
            workspace: record.workspace().map(str::to_owned),
            working,
            problem,
        }
    }

    /// The newest version before this one that works, where it is newer than the one that is offered: so a runner that
    /// starts now offers the same as one that was there all the time.
    async fn last_working(&self, record: &Breadcrumb) -> Option<Arc<Tool>> {
        let offered = self.registry.working_version(record.id).unwrap_or(0);
        if record.version <= offered + 1 {
            return None;
        }
        let history = self.history(record.id).await;
        let older = history.iter().filter(|one| one.version < record.version && one.version > offered);
        for one in older.take(MAX_HISTORY) {
            let version =
                Version { record, number: one.version, context: &one.context, tags: &one.tags, author: one.updated_by };
            if let Ok(tool) = self.preparing.prepare(&version).await {
                return Some(Arc::new(tool));
            }
        }
        None
    }

    async fn history(&self, id: Uuid) -> Vec<BreadcrumbVersion> {
        persist("read a tool's history", || self.store.history(id)).await.unwrap_or_else(|error| {
            tracing::warn!(tool_id = %id, %error, "a tool's history cannot be read");
            Vec::new()
        })
    }

    /// Two records want this name: looks up which had it first, where that is not known.
    async fn settle_rivals(&self, name: &str) {
        let mut learned = false;
        for tool in self.registry.rivals(name) {
            learned |= self.date(&tool).await;
        }
        if learned {
            self.follow_up(self.registry.settle_names());
        }
    }

    /// Looks up since when the tool has its name, unless that is known. A record that was renamed is not older under
    /// its new name than who had it. True when something was learned.
    async fn date(&self, tool: &Tool) -> bool {
        if tool.named_since.get().is_some() {
            return false;
        }
        let history = self.history(tool.id).await;
        let is_named = |one: &&BreadcrumbVersion| one.context.get("name").and_then(Value::as_str) == Some(tool.name());
        let since = history.iter().skip_while(|one| one.version > tool.version).take_while(is_named).last();
        since.is_some_and(|one| tool.named_since.set(one.updated_at).is_ok())
    }

    /// Reconciles now and then, until stopped.
    pub async fn keep_reconciled(&self, every: Duration, stop: CancellationToken) {
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(every) => {}
            }
            tokio::select! {
                () = stop.cancelled() => return,
                outcome = self.reconcile() => if let Err(error) = outcome {
                    tracing::warn!(%error, "the list of tools cannot be compared with the store's");
                },
            }
        }
    }
}

fn log(reading: &Reading) {
    let tool = reading.name.as_deref().unwrap_or_default();
    match &reading.problem {
        None => tracing::debug!(tool, tool_id = %reading.id, version = reading.version, "a tool is live"),
        Some(problem) => {
            let reason = problem.sentence();
            tracing::info!(tool, tool_id = %reading.id, version = reading.version, reason, "a tool is not taken");
        }
    }
}
