//! Reports to a tool's author: one `tool.error.v1` for each tool record that has a problem, updated
//! when the problem changes and deleted when it is fixed. Several runners write the same report;
//! the store keeps one.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, ContextMatch, ContextPath, MatchOp, NewBreadcrumb, Records,
    Selector, StoreError, schema_names,
};
use tokio::sync::Notify;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::with_retries;
use crate::registry::{Registry, Report};

/// How long to wait for a tool to be read before the store is queried for it again.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct ToolErrors {
    store: Arc<dyn Records>,
    registry: Arc<Registry>,
    waiting: Mutex<HashSet<Uuid>>,
    /// Records whose report is not known until they are validated.
    unvalidated: Mutex<HashSet<Uuid>>,
    more: Notify,
}

impl ToolErrors {
    pub fn new(store: Arc<dyn Records>, registry: Arc<Registry>) -> Arc<Self> {
        Arc::new(Self {
            store,
            registry,
            waiting: Mutex::default(),
            unvalidated: Mutex::default(),
            more: Notify::new(),
        })
    }

    /// The report on this tool record changed: compare it with the store's.
    pub fn check_soon(&self, tool_id: Uuid) {
        self.waiting.lock().insert(tool_id);
        self.more.notify_one();
    }

    /// This tool record was validated, so its report is known.
    pub fn validated(&self, tool_id: Uuid) {
        if self.unvalidated.lock().remove(&tool_id) {
            self.check_soon(tool_id);
        }
    }

    /// Whether the report stays unchanged for now, because the record is not validated here yet.
    fn is_deferred(&self, tool_id: Uuid) -> bool {
        let mut unvalidated = self.unvalidated.lock();
        // Checked under the lock: a validation that finishes now either finds the id in the set, or
        // has already updated the registry.
        let is_deferred = self.registry.known(tool_id).is_some_and(|known| !known.is_validated);
        if is_deferred {
            unvalidated.insert(tool_id);
        }
        is_deferred
    }

    fn next(&self) -> Option<Uuid> {
        let mut waiting = self.waiting.lock();
        let id = waiting.iter().next().copied()?;
        waiting.remove(&id);
        Some(id)
    }

    /// Writes until stopped. Starts with the existing reports: their problems may be fixed.
    pub async fn run(&self, stop: CancellationToken) {
        let work = async {
            if let Err(error) = self.check_all_reports().await {
                tracing::warn!(%error, "existing tool errors cannot be listed");
            }
            loop {
                while let Some(tool_id) = self.next() {
                    if let Err(error) = self.write(tool_id).await {
                        tracing::warn!(%tool_id, %error, "a tool's error cannot be written");
                    }
                }
                self.more.notified().await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = work => {}
        }
    }

    async fn check_all_reports(&self) -> Result<(), StoreError> {
        let mut query = BreadcrumbQuery { limit: 1000, ..BreadcrumbQuery::of_schema(schema_names::TOOL_ERROR) };
        loop {
            let page = with_retries("list tool errors", || self.store.list(&query)).await?;
            for row in &page {
                if let Some(id) =
                    row.context.as_ref().and_then(|context| context.get("tool_id")?.as_str()?.parse().ok())
                {
                    self.check_soon(id);
                }
            }
            if page.len() < 1000 {
                return Ok(());
            }
            query.offset += 1000;
        }
    }

    async fn write(&self, tool_id: Uuid) -> Result<(), StoreError> {
        // Another runner may write at the same time; then read the existing reports again.
        for _ in 0..5 {
            let mut existing = with_retries("find a tool's error", || self.list(tool_id)).await?;
            // The oldest is kept. Duplicates come from runners that act as different agents.
            let kept = existing.pop();
            if let Some(kept) = &kept {
                self.catch_up(tool_id, kept).await?;
            }
            if self.is_deferred(tool_id) {
                return Ok(());
            }
            let report = self.registry.report(tool_id);
            for extra in existing {
                self.delete(extra.id).await?;
            }
            let outcome = match (kept, report) {
                (None, None) => Ok(()),
                (Some(kept), None) => self.delete(kept.id).await,
                (Some(kept), Some(report)) => self.update(tool_id, &kept, &report).await,
                (None, Some(report)) => self.create(tool_id, &report).await,
            };
            match outcome {
                Err(
                    StoreError::VersionConflict { .. } | StoreError::NotFound { .. } | StoreError::IdempotencyMismatch,
                ) => {}
                outcome => return outcome,
            }
        }
        Ok(())
    }

    /// Another runner may have reported on a version that this one has not read yet, so a problem
    /// that is unknown here is not necessarily fixed. Waits until the version is read, or the tool
    /// is deleted.
    async fn catch_up(&self, tool_id: Uuid, existing: &BreadcrumbListItem) -> Result<(), StoreError> {
        let reported =
            existing.context.as_ref().and_then(|context| context.get("version")?.as_i64()).unwrap_or_default();
        let mut changes = self.registry.changes.subscribe();
        while self.registry.version_of(tool_id).is_none_or(|known| known < reported) {
            match with_retries("look at a tool", || self.store.get(tool_id)).await {
                Ok(record) if schema_names::is_tool(record.schema_name.as_deref()) && record.version >= reported => {}
                Ok(_) | Err(StoreError::NotFound { .. }) => return Ok(()),
                Err(error) => return Err(error),
            }
            let _ = timeout(PATIENCE, changes.changed()).await;
        }
        Ok(())
    }

    /// The reports on this tool, newest first.
    async fn list(&self, tool_id: Uuid) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        let path = ContextPath::try_from("$.tool_id".to_owned()).map_err(StoreError::Internal)?;
        let of_tool = ContextMatch { path, op: MatchOp::Eq, value: tool_id.to_string().into() };
        let mut query = BreadcrumbQuery::of_schema(schema_names::TOOL_ERROR);
        query.selector = Selector { context_match: vec![of_tool], ..query.selector };
        self.store.list(&query).await
    }

    async fn delete(&self, id: Uuid) -> Result<(), StoreError> {
        match with_retries("delete a tool's error", || self.store.delete(id, None)).await {
            Err(StoreError::NotFound { .. }) => Ok(()),
            outcome => outcome,
        }
    }

    async fn update(&self, tool_id: Uuid, existing: &BreadcrumbListItem, report: &Report) -> Result<(), StoreError> {
        let record = record(tool_id, report);
        if existing.context.as_ref() == Some(&record.context) && existing.tags == record.tags {
            return Ok(());
        }
        let changes = BreadcrumbChanges {
            title: Some(record.title),
            context: Some(record.context),
            tags: Some(record.tags),
            ..BreadcrumbChanges::default()
        };
        with_retries("change a tool's error", || self.store.update(existing.id, existing.version, changes.clone()))
            .await
            .map(|_| ())
    }

    async fn create(&self, tool_id: Uuid, report: &Report) -> Result<(), StoreError> {
        let record = record(tool_id, report);
        // The same report has the same key on every runner.
        let key = format!("tool.error:{tool_id}:{}", &record.fingerprint()[..32]);
        let create = |key| with_retries("write a tool's error", move || self.store.create(record.clone(), key));
        let created = create.clone()(Some(&key)).await?;
        // The same problem existed before, was fixed, and is back: write it again.
        if created.replayed && matches!(self.store.get(created.id).await, Err(StoreError::NotFound { .. })) {
            create(None).await?;
        }
        Ok(())
    }
}

fn record(tool_id: Uuid, report: &Report) -> NewBreadcrumb {
    let name: Option<String> = report.name.as_ref().map(|name| name.chars().take(100).collect());
    let mut tags = vec!["tool:error".to_owned()];
    tags.extend(name.as_ref().map(|name| format!("tool:{name}")));
    tags.extend(report.workspace.clone());
    NewBreadcrumb {
        title: format!(
            "Version {} of the tool {} is not run",
            report.version,
            name.as_deref().unwrap_or("without a name")
        ),
        context: report.context(tool_id),
        tags,
        schema_name: Some(schema_names::TOOL_ERROR.into()),
        ..NewBreadcrumb::default()
    }
}
