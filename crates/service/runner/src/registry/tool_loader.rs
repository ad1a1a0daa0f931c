//! Keeps the registry up to date with the store: decides which records to read again, and reads
//! them.
//!
//! A record is read in two steps. First it is *parsed*, which is cheap and is done for every tool
//! when the runner starts. Then it is *validated* by the validators and its executor, once for each
//! version: after it was written, when a call needs it, or, if it is not known to be valid, in the
//! background.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbQuery, BreadcrumbVersion, ContextMatch, ContextPath, MatchOp, Records, Selector, StoreError,
    is_draft, schema_names,
};
use serde_json::Value;
use tokio::sync::{Notify, OnceCell};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::with_retries;
use crate::registry::load_queue::{Depth, LoadQueue, Urgency};
use crate::registry::previous_catalog::PreviousCatalog;
use crate::registry::readiness::Readiness;
use crate::registry::tool::{Candidate, NamedSince, Problem, Tool};
use crate::registry::tool_errors::ToolErrors;
use crate::registry::tool_preparation::{ToolPreparer, Version};
use crate::registry::tool_records::{Draft, ToolRecord, Working};
use crate::registry::{Consequences, Known, Registry};

/// How many older versions are tried when the newest does not work.
const MAX_HISTORY: usize = 20;
/// How long the catalog waits for the validation of tools that were never validated.
const MOSTLY: Duration = Duration::from_secs(10);
/// If the catalog has many tools, reading it and listing all of them is delayed for a moment. Tools
/// that are called first are read one by one meanwhile, so a caller at startup need not wait until
/// thousands are read.
const HEAD_START: Duration = Duration::from_millis(300);
/// The maximum number of records of one name that a call reads.
const MAX_SAME_NAME: u32 = 100;

pub(crate) struct ToolLoader {
    pub store: Arc<dyn Records>,
    pub registry: Arc<Registry>,
    pub errors: Arc<ToolErrors>,
    readiness: Arc<Readiness>,
    preparer: Arc<ToolPreparer>,
    max_loads: usize,
    queue: Mutex<LoadQueue>,
    more: Notify,
    done: Notify,
    previous: OnceCell<Arc<PreviousCatalog>>,
    /// The number of its parts, if there are too many to read them before the first call.
    many_parts: OnceCell<Option<usize>>,
    /// Cancelled when every tool that existed at the start has been read.
    listed: CancellationToken,
}

impl ToolLoader {
    pub fn new(
        store: Arc<dyn Records>,
        registry: Arc<Registry>,
        errors: Arc<ToolErrors>,
        readiness: Arc<Readiness>,
        preparer: Arc<ToolPreparer>,
        max_loads: usize,
    ) -> Arc<Self> {
        Arc::new(Self {
            store,
            registry,
            errors,
            readiness,
            preparer,
            max_loads: max_loads.max(1),
            queue: Mutex::default(),
            more: Notify::new(),
            done: Notify::new(),
            previous: OnceCell::new(),
            many_parts: OnceCell::new(),
            listed: CancellationToken::new(),
        })
    }

    pub fn enqueue(&self, id: Uuid, urgency: Urgency, depth: Depth) {
        self.queue.lock().add(id, urgency, depth);
        self.more.notify_one();
    }

    /// This record was written, changed or deleted: read it soon.
    pub fn check_soon(&self, id: Uuid) {
        self.enqueue(id, Urgency::Changed, Depth::Validate);
    }

    /// Whether every known change is read. Background validation does not count.
    pub fn is_caught_up(&self) -> bool {
        self.queue.lock().is_caught_up()
    }

    /// Returns when every known change is read.
    pub async fn caught_up(&self) {
        self.until(LoadQueue::is_caught_up).await;
    }

    /// Returns when every change of a tool that is known now is read.
    pub async fn changes_read(&self) {
        let changed = self.queue.lock().changed();
        if !changed.is_empty() {
            self.until(|queue| changed.iter().all(|id| queue.is_done(*id))).await;
        }
    }

    /// Reads a record that this process has just changed, unless this version of it is in use.
    pub async fn read_changed(&self, id: Uuid, version: Option<i64>) {
        // Its event may have arrived before.
        self.until(|queue| !queue.is_under_way(id)).await;
        let known = self.registry.known(id);
        if known.is_some_and(|known| known.is_validated && version.is_some_and(|version| known.version >= version)) {
            return;
        }
        self.check_soon(id);
        self.until(|queue| queue.is_done(id)).await;
    }

    async fn until(&self, holds: impl Fn(&LoadQueue) -> bool) {
        loop {
            let done = self.done.notified();
            tokio::pin!(done);
            done.as_mut().enable();
            if holds(&self.queue.lock()) {
                return;
            }
            done.await;
        }
    }

    /// Returns when every tool that existed when the runner started has been read.
    pub async fn listed(&self) {
        self.listed.cancelled().await;
    }

    pub fn is_listed(&self) -> bool {
        self.listed.is_cancelled()
    }

    /// Returns when the tools that existed at the start are validated, or after a limited time. In
    /// the second case only tools that are known to be valid are published.
    pub async fn mostly_validated(&self) {
        self.listed().await;
        if tokio::time::timeout(MOSTLY, self.until(LoadQueue::is_idle)).await.is_err() {
            tracing::info!("there are many new tools; the catalog grows while they are validated");
        }
    }

    /// Reads all existing tools. Those that are not known to be valid are validated in the
    /// background.
    pub async fn begin(&self) -> Result<(), StoreError> {
        if self.many_parts().await?.is_some() {
            tokio::time::sleep(HEAD_START).await;
        }
        self.previous().await?;
        self.reconcile().await?;
        self.caught_up().await;
        self.listed.cancel();
        Ok(())
    }

    async fn previous(&self) -> Result<Arc<PreviousCatalog>, StoreError> {
        let read = || async { PreviousCatalog::read(&*self.store).await.map(Arc::new) };
        self.previous.get_or_try_init(read).await.cloned()
    }

    async fn many_parts(&self) -> Result<Option<usize>, StoreError> {
        self.many_parts.get_or_try_init(|| PreviousCatalog::many_parts(&*self.store)).await.copied()
    }

    /// The catalog, or of a large one that is not read yet the part of this name, if that `says`
    /// enough.
    async fn previous_for(
        &self,
        name: &str,
        says: impl Fn(&PreviousCatalog) -> bool,
    ) -> Result<Arc<PreviousCatalog>, StoreError> {
        if !self.previous.initialized()
            && let Some(parts) = self.many_parts().await?
        {
            let part = PreviousCatalog::read_part(&*self.store, name, parts).await?;
            if says(&part) {
                return Ok(Arc::new(part));
            }
        }
        self.previous().await
    }

    /// Reads until stopped.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        let mut tasks = JoinSet::new();
        let mut ids = HashMap::new();
        loop {
            while let Some((id, depth)) = self.next() {
                let loading = self.clone();
                let task = tasks.spawn(async move { loading.read(id, depth).await });
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
                        self.queue.lock().done(id);
                    }
                    self.done.notify_waiters();
                }
            }
        }
        tasks.shutdown().await;
    }

    fn next(&self) -> Option<(Uuid, Depth)> {
        self.queue.lock().take(self.max_loads)
    }

    /// Validates this record before others, and returns when that is done.
    pub async fn validate_now(&self, id: Uuid) {
        self.enqueue(id, Urgency::Call, Depth::Validate);
        self.until(|queue| queue.is_done(id)).await;
    }

    /// Queries the store for an unknown tool, whose event might not have arrived, or which the list
    /// of all tools might not have reached yet.
    pub async fn load_by_name(&self, name: &str) -> Result<(), StoreError> {
        let mut ids = Vec::new();
        if !self.is_listed() {
            // A record may still serve an older version with another name.
            let previous = self.previous_for(name, |part| part.owner_of(name).is_some()).await?;
            ids.extend(previous.owner_of(name).filter(|id| self.registry.known(*id).is_none()));
        }
        let Ok(path) = ContextPath::try_from("$.name".to_owned()) else { return Ok(()) };
        for schema in [schema_names::TOOL_CODE, schema_names::TOOL_V1] {
            let named = ContextMatch { path: path.clone(), op: MatchOp::Eq, value: name.into() };
            let selector =
                Selector { schema_name: Some(schema.to_owned()), context_match: vec![named], ..Selector::default() };
            let query = BreadcrumbQuery { selector, limit: MAX_SAME_NAME, ..BreadcrumbQuery::default() };
            let rows = self.store.list(&query).await?;
            ids.extend(
                rows.iter().filter(|row| self.registry.version_of(row.id) != Some(row.version)).map(|row| row.id),
            );
        }
        for id in &ids {
            let depth = if self.registry.known(*id).is_some() { Depth::Validate } else { Depth::Parse };
            self.enqueue(*id, Urgency::Call, depth);
        }
        self.until(|queue| ids.iter().all(|id| queue.is_done(*id))).await;
        Ok(())
    }

    async fn read(&self, id: Uuid, depth: Depth) {
        match with_retries("read a tool", || self.store.get(id)).await {
            Ok(record) if schema_names::is_tool(record.schema_name.as_deref()) => match self.registry.known(id) {
                Some(Known { version, is_validated })
                    if version == record.version && (is_validated || depth == Depth::Parse) => {}
                None if depth == Depth::Parse => self.parse(&record).await,
                _ => self.validate(&record).await,
            },
            Ok(_) | Err(StoreError::NotFound { .. }) => self.follow_up(self.registry.remove(id)),
            Err(error) => tracing::error!(tool_id = %id, %error, "a tool cannot be read"),
        }
    }

    fn follow_up(&self, consequences: Consequences) {
        for tool in consequences.retired {
            tool.executor.forget(tool.id, tool.version);
        }
        for id in consequences.reports {
            self.errors.check_soon(id);
        }
    }

    /// Reads the record without validating it.
    async fn parse(&self, record: &Breadcrumb) {
        // Its own name, as long as the catalog had it under no other one.
        let previous = match name_in_context(record) {
            Some(name) => self.previous_for(name, |part| part.name_of(record.id) == Some(name)).await,
            None => self.previous().await,
        };
        let previous = match previous {
            Ok(previous) => previous,
            Err(error) => return tracing::error!(tool_id = %record.id, %error, "the catalog of tools cannot be read"),
        };
        let parsed = self.preparer.candidate(&Version::newest(record)).ok().map(Arc::new);
        // A draft has no name before it is published.
        let parsed = parsed.filter(|parsed| !parsed.is_draft);
        let name = parsed.as_ref().map(|parsed| parsed.name().to_owned());
        let good = parsed.clone().filter(|one| previous.was_offered(record.id, record.version, one.name()));
        let later = match &parsed {
            _ if good.is_some() => None,
            Some(parsed) if parsed.is_system => Some(Urgency::SystemBackground),
            _ => Some(Urgency::Background),
        };
        if let Some(parsed) = &parsed {
            self.date_before_it_is_seen(parsed).await;
        }
        let working = match good {
            Some(candidate) => {
                Some(Working { missing: self.readiness.check_cached(&candidate).await, candidate, tool: None })
            }
            None => None,
        };
        // An older version may serve under its name in the catalog, or under the newest version's
        // name. A first version that is a draft has no published one before it.
        let own_name = name_in_context(record).filter(|_| record.version > 1 || !is_draft(&record.tags));
        let names = own_name.into_iter().chain(previous.name_of(record.id));
        let may_claim = names.map(str::to_owned).collect();
        let draft = is_draft(&record.tags).then_some(Draft { author: record.updated_by, working: None });
        let reading = ToolRecord { may_claim, parsed, draft, ..read_of(record, working, None, false) };
        self.follow_up(self.registry.put(reading));
        if let Some(later) = later {
            self.enqueue(record.id, later, Depth::Validate);
        }
        if let Some(name) = name {
            self.resolve_name_conflict(&name).await;
        }
    }

    async fn validate(&self, record: &Breadcrumb) {
        let is_draft = is_draft(&record.tags);
        let (newest, problem) = match self.preparer.prepare(&Version::newest(record)).await {
            Ok(tool) => (Some(Arc::new(tool)), None),
            Err(problem) => (None, Some(problem)),
        };
        let (tool, draft) = match newest {
            Some(newest) if !is_draft => (Some(newest), None),
            draft => (self.last_working(record).await, draft),
        };
        let working = match tool {
            Some(tool) => {
                self.date_before_it_is_seen(&tool).await;
                Some(self.working(tool).await)
            }
            None => None,
        };
        let draft = match draft {
            Some(draft) => Some(self.working(draft).await),
            None => None,
        };
        let draft = is_draft.then_some(Draft { author: record.updated_by, working: draft });
        let name = working.as_ref().map(|working| working.candidate.name().to_owned());
        let reading = ToolRecord { draft, ..read_of(record, working, problem, true) };
        log(&reading);
        self.follow_up(self.registry.put(reading));
        self.errors.validated(record.id);
        if let Some(name) = name {
            self.resolve_name_conflict(&name).await;
        }
    }

    async fn working(&self, tool: Arc<Tool>) -> Working {
        Working { candidate: tool.candidate.clone(), missing: self.readiness.of(&tool).await, tool: Some(tool) }
    }

    /// Looks up since when the record has its name, if another record claims that name. Done before
    /// the registry gets the record, so that it does not own the name too early.
    async fn date_before_it_is_seen(&self, candidate: &Candidate) {
        if self.registry.is_claimed_by_another(candidate.name(), candidate.id) {
            self.date(candidate).await;
        }
    }

    /// The newest working version before this one that is no draft, if it is newer than the
    /// validated version that is offered. So a runner that starts now offers the same version as
    /// one that has run all the time.
    async fn last_working(&self, record: &Breadcrumb) -> Option<Arc<Tool>> {
        let offered = self.registry.validated_version(record.id, is_code(record)).unwrap_or(0);
        if record.version <= offered + 1 {
            return None;
        }
        let history = self.history(record.id).await;
        let older = history.iter().filter(|one| one.version < record.version && one.version > offered);
        // Skip versions with another schema: they were not checked or tagged as a tool.
        let older = older.filter(|one| one.schema_name == record.schema_name && !is_draft(&one.tags));
        for one in older.take(MAX_HISTORY) {
            if let Ok(tool) = self.preparer.prepare(&Version::older(record, one)).await {
                return Some(Arc::new(tool));
            }
        }
        None
    }

    async fn history(&self, id: Uuid) -> Vec<BreadcrumbVersion> {
        with_retries("read a tool's history", || self.store.history(id)).await.unwrap_or_else(|error| {
            tracing::warn!(tool_id = %id, %error, "a tool's history cannot be read");
            Vec::new()
        })
    }

    /// If several records claim this name, looks up which had it first.
    async fn resolve_name_conflict(&self, name: &str) {
        let mut learned = false;
        for tool in self.registry.same_name(name) {
            learned |= self.date(&tool).await;
        }
        if learned {
            self.follow_up(self.registry.resolve_name(name));
        }
    }

    /// Looks up since when the tool has its name, unless that is known. A renamed record counts
    /// from the renaming, so that it does not precede the name's owner. True if something was
    /// learned.
    async fn date(&self, tool: &Candidate) -> bool {
        if tool.named_since.get().is_some() {
            return false;
        }
        let mut history = self.history(tool.id).await;
        // A draft does not reserve its name.
        history.retain(|one| !is_draft(&one.tags));
        let is_named = |one: &&BreadcrumbVersion| {
            schema_names::is_tool(one.schema_name.as_deref())
                && one.context.get("name").and_then(Value::as_str) == Some(tool.name())
        };
        let is_of_own_schema = |one: &&BreadcrumbVersion| one.schema_name.as_deref() == Some(tool.schema_name());
        let named = || history.iter().skip_while(|one| one.version > tool.version).take_while(is_named);
        match (named().last(), named().take_while(is_of_own_schema).last()) {
            (Some(any), Some(own)) => {
                let since = NamedSince { any_schema: any.updated_at, own_schema: own.updated_at };
                tool.named_since.set(since).is_ok()
            }
            _ => false,
        }
    }
}

/// The name in the record's context.
fn name_in_context(record: &Breadcrumb) -> Option<&str> {
    record.context.get("name").and_then(Value::as_str)
}

fn is_code(record: &Breadcrumb) -> bool {
    record.schema_name.as_deref() == Some(schema_names::TOOL_CODE)
}

fn read_of(record: &Breadcrumb, working: Option<Working>, problem: Option<Problem>, is_validated: bool) -> ToolRecord {
    ToolRecord {
        id: record.id,
        version: record.version,
        created_at: record.created_at,
        created_by: record.created_by,
        is_code: is_code(record),
        name: name_in_context(record).map(str::to_owned),
        workspace: record.workspace().map(str::to_owned),
        is_validated,
        may_claim: Vec::new(),
        parsed: None,
        working,
        draft: None,
        problem,
        taken: None,
    }
}

fn log(reading: &ToolRecord) {
    let tool = reading.name.as_deref().unwrap_or_default();
    match &reading.problem {
        None => tracing::debug!(tool, tool_id = %reading.id, version = reading.version, "a tool is live"),
        Some(problem) => {
            let reason = problem.sentence();
            tracing::info!(tool, tool_id = %reading.id, version = reading.version, reason, "a tool version is invalid");
        }
    }
}
