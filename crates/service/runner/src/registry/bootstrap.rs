//! Runs tools whose definition asks for it: `once` for each version, or `continuous`ly, one request
//! after the other. The requests themselves are the state, and they are in the store. So several
//! runners, and a restarted runner, agree.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    Bootstrap, BootstrapMode, BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, CallState, NewBreadcrumb,
    ResponseStatus, StoreError, ToolRequest, ToolResponse,
};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::backoff::{doubled, with_retries};
use crate::on_behalf_of::on_behalf_of;
use crate::registry::Registry;
use crate::registry::tool::Candidate;

/// The longest pause after failures in a row.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// How often a request without a response is checked, if no event reports the response.
const POLL_INTERVAL: Duration = Duration::from_secs(5);

/// Hints that a bootstrapped call has its response.
#[derive(Default)]
pub(crate) struct BootstrapHints(Notify);

impl BootstrapHints {
    pub fn check_soon(&self) {
        self.0.notify_one();
    }
}

pub(crate) struct Bootstrapping {
    pub store: Arc<dyn Breadcrumbs>,
    pub registry: Arc<Registry>,
    pub hints: Arc<BootstrapHints>,
    pub pause: Duration,
    /// What is known about each tool version; saves queries to the store.
    pub known: HashMap<(Uuid, i64), BootstrapState>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BootstrapState {
    Asked(Uuid),
    /// Finished; continuous tools continue from here.
    Succeeded,
    Failed,
}

/// How a bootstrap request finished.
struct Ended {
    succeeded: bool,
    at: DateTime<Utc>,
}

impl Bootstrapping {
    pub async fn run(mut self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.work() => {}
        }
    }

    async fn work(&mut self) {
        let mut changes = self.registry.changes.subscribe();
        loop {
            let next = self.pass().await;
            tokio::select! {
                _ = changes.changed() => {}
                () = self.hints.0.notified() => {}
                () = async { match next {
                    Some(next) => sleep_until(next).await,
                    None => std::future::pending().await,
                } } => {}
            }
        }
    }

    /// Does what is due now. Returns the time of the next check.
    async fn pass(&mut self) -> Option<Instant> {
        let mut tools = self.registry.bootstrapped();
        self.known.retain(|(id, version), _| tools.iter().any(|tool| tool.id == *id && tool.version == *version));
        tools.sort_by_key(|tool| (tool.bootstrap().map(|settings| Reverse(settings.priority)), tool.name().to_owned()));
        let mut next: Option<Instant> = None;
        for tool in tools {
            let Some(settings) = tool.bootstrap() else { continue };
            let step = match settings.mode {
                _ if !self.may_begin(&tool, settings) => Ok(None),
                BootstrapMode::Once => self.once(&tool, settings).await,
                BootstrapMode::Continuous => self.continuous(&tool, settings).await,
                BootstrapMode::Disabled => Ok(None),
            };
            let again = step.unwrap_or_else(|error| {
                tracing::warn!(tool = tool.name(), %error, "a tool cannot be bootstrapped now");
                Some(Instant::now() + POLL_INTERVAL)
            });
            next = match (next, again) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            };
        }
        next
    }

    /// Whether every tool that this one waits for has succeeded, or is offered and does not
    /// bootstrap.
    fn may_begin(&self, tool: &Candidate, settings: &Bootstrap) -> bool {
        self.known.contains_key(&(tool.id, tool.version))
            || settings.wait_for.iter().all(|name| match self.registry.offered(name) {
                None => false,
                Some(other) if other.bootstrap().is_none() => true,
                Some(other) => self.known.get(&(other.id, other.version)) == Some(&BootstrapState::Succeeded),
            })
    }

    async fn once(&mut self, tool: &Candidate, settings: &Bootstrap) -> Result<Option<Instant>, StoreError> {
        let version = (tool.id, tool.version);
        let request = match self.known.get(&version) {
            Some(BootstrapState::Succeeded | BootstrapState::Failed) => return Ok(None),
            Some(BootstrapState::Asked(request)) => *request,
            None => {
                let tag = format!("bootstrap:{}:{}", tool.id, tool.version);
                match self.requests(&tag).await?.into_iter().next() {
                    Some(there) => there.id,
                    None => match self.ask(tool, settings, &tag, None).await? {
                        Some(request) => request,
                        None => return Ok(Some(Instant::now() + POLL_INTERVAL)),
                    },
                }
            }
        };
        let progress = match self.ended(request).await? {
            None => BootstrapState::Asked(request),
            Some(Ended { succeeded: true, .. }) => BootstrapState::Succeeded,
            Some(_) => {
                tracing::warn!(tool = tool.name(), %request, "the tool's bootstrap failed; it is repeated only for the next version");
                BootstrapState::Failed
            }
        };
        self.record_state(version, progress);
        Ok(matches!(progress, BootstrapState::Asked(_)).then(|| Instant::now() + POLL_INTERVAL))
    }

    async fn continuous(&mut self, tool: &Candidate, settings: &Bootstrap) -> Result<Option<Instant>, StoreError> {
        let version = (tool.id, tool.version);
        let tag = format!("bootstrap:{}", tool.id);
        // Across versions, so that a new version waits for the old one's last run.
        let last = self.requests(&tag).await?.into_iter().max_by_key(|row| run_of(row).0);
        let (run, failures) = match &last {
            None => (0, 0),
            Some(last) => {
                let (run, failures) = run_of(last);
                let Some(ended) = self.ended(last.id).await? else {
                    // Until the response exists, this version has neither succeeded nor failed,
                    // unless it did before.
                    self.known.entry(version).or_insert(BootstrapState::Asked(last.id));
                    return Ok(Some(Instant::now() + POLL_INTERVAL));
                };
                let of_this_version = last.tags.contains(&format!("{tag}:{}", tool.version));
                if of_this_version {
                    self.record_state(
                        version,
                        if ended.succeeded { BootstrapState::Succeeded } else { BootstrapState::Failed },
                    );
                }
                let failures = if ended.succeeded || !of_this_version { 0 } else { failures + 1 };
                let pause = doubled(self.pause, failures, LONGEST_PAUSE);
                let rest = pause.saturating_sub((Utc::now() - ended.at).to_std().unwrap_or_default());
                if !rest.is_zero() {
                    return Ok(Some(Instant::now() + rest));
                }
                (run, failures)
            }
        };
        self.ask(tool, settings, &format!("{tag}:{}", tool.version), Some((run + 1, failures))).await?;
        Ok(Some(Instant::now() + POLL_INTERVAL))
    }

    /// Records the state. After a success, tools that depend on this one are checked again at once.
    fn record_state(&mut self, version: (Uuid, i64), progress: BootstrapState) {
        if self.known.insert(version, progress) != Some(progress) && progress == BootstrapState::Succeeded {
            self.hints.check_soon();
        }
    }

    /// The newest requests with this tag.
    async fn requests(&self, tag: &str) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        let query = BreadcrumbQuery { limit: 20, ..BreadcrumbQuery::tagged(tag) };
        with_retries("find bootstrap requests", || self.store.list(&query)).await
    }

    /// Writes the request, which is the same on every runner. `None` if another runner wrote a
    /// different one.
    async fn ask(
        &self,
        tool: &Candidate,
        settings: &Bootstrap,
        version_tag: &str,
        run: Option<(u64, u32)>,
    ) -> Result<Option<Uuid>, StoreError> {
        let record = request(tool, settings, version_tag, run);
        let key = match run {
            None => version_tag.to_owned(),
            Some((run, _)) => format!("bootstrap:{}:run:{run}", tool.id),
        };
        let store = on_behalf_of(&self.store, tool.author)?;
        match with_retries("bootstrap a tool", || store.create(record.clone(), Some(&key))).await {
            Ok(created) => {
                tracing::debug!(tool = tool.name(), request = %created.id, "bootstrapped");
                Ok(Some(created.id))
            }
            Err(StoreError::IdempotencyMismatch) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// How the request finished. `None` while it waits or runs. A deleted request counts as failed.
    async fn ended(&self, request: Uuid) -> Result<Option<Ended>, StoreError> {
        let failed = || Ok(Some(Ended { succeeded: false, at: Utc::now() }));
        let call = match with_retries("look at a bootstrap request", || self.store.call(request)).await {
            Ok(call) => call,
            Err(StoreError::NotFound { .. }) => return failed(),
            Err(error) => return Err(error),
        };
        let Some(response) = call.response.filter(|_| call.state == CallState::Finished) else { return Ok(None) };
        match with_retries("read a bootstrap response", || self.store.get(response)).await {
            Ok(record) => {
                let succeeded = ToolResponse::from_context(&record.context)
                    .is_ok_and(|response| response.status == ResponseStatus::Success);
                Ok(Some(Ended { succeeded, at: record.created_at }))
            }
            Err(StoreError::NotFound { .. }) => failed(),
            Err(error) => Err(error),
        }
    }
}

fn request(tool: &Candidate, settings: &Bootstrap, version_tag: &str, run: Option<(u64, u32)>) -> NewBreadcrumb {
    let input = Value::Object(settings.input.clone());
    let mut record = ToolRequest::record(tool.name(), input, None, tool.workspace.as_deref());
    record.tags.push(format!("bootstrap:{}", tool.id));
    record.tags.push(version_tag.to_owned());
    record.tags.extend(tool.profiles.tags());
    if let Some((run, failures)) = run {
        record.context.insert("bootstrap".into(), json!({"run": run, "failures": failures}));
    }
    record
}

/// A continuous request's number, and the failures in a row before it.
fn run_of(row: &BreadcrumbListItem) -> (u64, u32) {
    let number = |key: &str| row.context.as_ref().and_then(|context| context.get("bootstrap")?.get(key)?.as_u64());
    (number("run").unwrap_or(0), number("failures").unwrap_or(0) as u32)
}
