//! Versions of tools that requests name and that are not offered: they are read from the history,
//! validated like the newest one, and kept while they are used.

use std::sync::Arc;

use parking_lot::Mutex;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbVersion, ErrorCode, Records, StoreError, ToolFailure, VersionPin, is_draft,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::backoff::with_retries;
use crate::registry::Registry;
use crate::registry::tool::{Candidate, Tool};
use crate::registry::tool_preparation::{ToolPreparer, Version};

/// The most versions that are kept. The one that was not used for longest is dropped.
const MAX_KEPT: usize = 64;
/// The most versions that an error lists, newest first.
const MAX_LISTED: usize = 20;

pub(crate) struct PinnedVersions {
    store: Arc<dyn Records>,
    registry: Arc<Registry>,
    preparer: Arc<ToolPreparer>,
    /// The versions that were used last, the newest use at the end.
    kept: Mutex<Vec<Arc<Tool>>>,
}

impl PinnedVersions {
    pub fn new(store: Arc<dyn Records>, registry: Arc<Registry>, preparer: Arc<ToolPreparer>) -> Self {
        Self { store, registry, preparer, kept: Mutex::default() }
    }

    fn kept(&self, record: Uuid, pin: &VersionPin) -> Option<Arc<Tool>> {
        let mut kept = self.kept.lock();
        let is_it = |tool: &Arc<Tool>| tool.id == record && pin.matches(tool.version, &tool.definition_hash);
        let at = kept.iter().position(is_it)?;
        let tool = kept.remove(at);
        kept.push(tool.clone());
        Some(tool)
    }

    /// Returns the version that was dropped for this one.
    fn keep(&self, tool: Arc<Tool>) -> Option<Arc<Tool>> {
        let mut kept = self.kept.lock();
        // Another call has loaded the same one meanwhile.
        kept.retain(|other| (other.id, other.version) != (tool.id, tool.version));
        kept.push(tool);
        (kept.len() > MAX_KEPT).then(|| kept.remove(0))
    }

    /// The version that the request names, of the record that has the tool's name now. Drafts of
    /// another agent than `author` do not exist for the request.
    pub async fn find(
        &self,
        current: &Candidate,
        pin: &VersionPin,
        author: Option<Uuid>,
    ) -> Result<Arc<Tool>, ToolFailure> {
        let is_known = |is_draft: bool, of: Option<Uuid>| !is_draft || (author.is_some() && of == author);
        if let Some(tool) = self.kept(current.id, pin).filter(|tool| is_known(tool.is_draft, tool.author)) {
            return Ok(tool);
        }
        let read = || async { Ok((self.store.get(current.id).await?, self.store.history(current.id).await?)) };
        let (record, history) = with_retries("read a version", read)
            .await
            .map_err(|error: StoreError| unreadable(current.name(), pin, &error))?;
        // Versions with another schema were not checked or tagged as this kind of tool.
        let is_of_tool = |one: &&BreadcrumbVersion| {
            one.schema_name.as_deref() == Some(current.schema_name())
                && one.context.get("name").and_then(Value::as_str) == Some(current.name())
                && is_known(is_draft(&one.tags), one.updated_by)
        };
        let versions: Vec<&BreadcrumbVersion> = history.iter().filter(is_of_tool).collect();
        let is_it = |one: &&&BreadcrumbVersion| pin.matches(one.version, &Breadcrumb::definition_hash(&one.checksum));
        let Some(found) = versions.iter().find(is_it) else { return Err(unknown(current.name(), pin, &versions)) };
        let tool = self.preparer.prepare(&Version::older(&record, found)).await;
        let tool = Arc::new(tool.map_err(|problem| {
            let message = format!("{pin} of the tool {:?} does not work: {}", current.name(), problem.sentence());
            ToolFailure::new(ErrorCode::ExecutionFailed, message).with_details(json!({"errors": problem.errors}))
        })?);
        if let Some(dropped) = self.keep(tool.clone())
            && self.registry.version_in_use(dropped.id) != Some(dropped.version)
        {
            dropped.executor.forget(dropped.id, dropped.version);
        }
        Ok(tool)
    }
}

fn unreadable(name: &str, pin: &VersionPin, error: &StoreError) -> ToolFailure {
    tracing::warn!(tool = name, %pin, %error, "a version of a tool cannot be read");
    let message = format!("{pin} of the tool {name:?} cannot be read");
    ToolFailure::new(ErrorCode::ExecutionFailed, message).retryable(true)
}

fn unknown(name: &str, pin: &VersionPin, versions: &[&BreadcrumbVersion]) -> ToolFailure {
    let listed: Vec<&&BreadcrumbVersion> = versions.iter().take(MAX_LISTED).collect();
    let numbers: Vec<String> = listed.iter().map(|one| one.version.to_string()).collect();
    let more = if versions.len() > MAX_LISTED { " and older ones" } else { "" };
    let message = format!("the tool {name:?} has no {pin}; existing versions: {}{more}", numbers.join(", "));
    let versions: Vec<Value> = listed
        .iter()
        .map(|one| json!({"version": one.version, "definition_hash": Breadcrumb::definition_hash(&one.checksum)}))
        .collect();
    ToolFailure::new(ErrorCode::ToolNotFound, message).with_details(json!({"versions": versions}))
}
