//! Finds the tool of a request and decides whether its caller's [rights](ToolRights) allow the
//! call, or says why not.

use std::sync::Arc;

use chrono::Utc;
use rcrt_breadcrumb::{ErrorCode, ToolFailure, VersionPin};
use serde_json::json;

use crate::backoff::with_retries;
use crate::coordination::peer_runners::PeerRunners;
use crate::registry::deprecated_use::DeprecatedUse;
use crate::registry::pinned_versions::PinnedVersions;
use crate::registry::readiness::Readiness;
use crate::registry::tool::{Candidate, Problem, Tool};
use crate::registry::tool_loader::ToolLoader;
use crate::registry::tool_rights::ToolRights;
use crate::registry::{Lookup, Registry};

/// The maximum number of records of one name that a call validates.
const MAX_CLAIMANTS: usize = 100;

pub(crate) struct ToolAccess {
    pub registry: Arc<Registry>,
    pub loading: Arc<ToolLoader>,
    pub readiness: Arc<Readiness>,
    pub peers: Arc<PeerRunners>,
    pub pinned: PinnedVersions,
    pub deprecated: DeprecatedUse,
}

/// Why a call does not run here.
pub(crate) enum Refusal {
    /// The call failed. `tool`: the tool of this name, if there is one, for the metrics.
    Failed { tool: Option<Arc<Candidate>>, failure: ToolFailure },
    /// Another runner has the settings for it.
    ServedByPeer,
}

impl Refusal {
    pub fn failed(failure: ToolFailure) -> Self {
        Self::Failed { tool: None, failure }
    }
}

impl ToolAccess {
    pub async fn find(&self, name: &str, rights: &ToolRights) -> Result<Arc<Tool>, Refusal> {
        if let Some(failure) = rights.profiles.name_denied_by(name).and_then(|_| rights.refusal_of_name(name)) {
            return Err(Refusal::Failed { tool: self.registry.offered(name), failure });
        }
        let found = self.find_validated(name, rights).await;
        let candidate = match &found {
            Lookup::Tool(tool) => Some(&tool.candidate),
            Lookup::Waiting(tool) => Some(tool),
            _ => None,
        };
        if let Some(tool) = candidate
            && let Some(failure) = rights.refusal(tool)
        {
            return Err(Refusal::Failed { tool: Some(tool.clone()), failure });
        }
        if let Some(tool) = candidate
            && let Some(failure) = self.deprecated.check(tool, Utc::now())
        {
            return Err(Refusal::Failed { tool: Some(tool.clone()), failure });
        }
        match found {
            Lookup::Tool(tool) if tool.executor.missing_requirements(&tool.definition).is_empty() => Ok(tool),
            Lookup::Tool(tool) => self.ready(tool.candidate.clone(), name, rights).await,
            Lookup::Waiting(tool) => self.ready(tool, name, rights).await,
            Lookup::Broken(problem) => {
                Err(Refusal::failed(rights.refusal_of_name(name).unwrap_or_else(|| broken(name, &problem))))
            }
            Lookup::Unknown { nearest } => Err(Refusal::failed(unknown(name, &nearest))),
            Lookup::Unvalidated(_) => Err(Refusal::failed(undecided(name))),
        }
    }

    /// The version that the request names, of the tool that has the name.
    pub async fn find_version(&self, name: &str, pin: &VersionPin, rights: &ToolRights) -> Result<Arc<Tool>, Refusal> {
        let current = self.find(name, rights).await?;
        if pin.matches(current.version, &current.definition_hash) {
            return Ok(current);
        }
        let failed = |tool: &Tool, failure| Refusal::Failed { tool: Some(tool.candidate.clone()), failure };
        let tool = self.pinned.find(&current, pin, rights.drafts.author()).await.map_err(Refusal::failed)?;
        // An older version can have other tags, and need other settings and secrets.
        if let Some(failure) = rights.refusal(&tool).or_else(|| self.deprecated.check(&tool, Utc::now())) {
            return Err(failed(&tool, failure));
        }
        let missing = self.readiness.of(&tool.candidate).await;
        if missing.is_empty() { Ok(tool) } else { Err(failed(&tool, missing.failure(&tool))) }
    }

    /// The `tool.v1` that this tool replaced, for use when this tool lacks a secret.
    pub async fn replaced_tool(&self, tool: &Tool, rights: &ToolRights) -> Option<Arc<Tool>> {
        let missing = self.readiness.recheck(&tool.candidate).await;
        if missing.is_empty() || !tool.definition.is_code() {
            return None;
        }
        self.find(tool.name(), rights).await.ok().filter(|found| found.id != tool.id)
    }

    /// The tool, if it can run without further checks.
    pub fn ready_now(&self, name: &str, rights: &ToolRights) -> Option<Arc<Tool>> {
        if !self.loading.is_listed() {
            return None;
        }
        let tool = self.registry.active_version(name, rights.drafts)?;
        let is_open = rights.refusal(&tool).is_none() && self.deprecated.check(&tool, Utc::now()).is_none();
        (is_open && tool.executor.missing_requirements(&tool.definition).is_empty()).then_some(tool)
    }

    /// The owner of the name, after validation.
    async fn find_validated(&self, name: &str, rights: &ToolRights) -> Lookup {
        let find = || self.registry.find(name, rights.drafts, |name, tool| rights.allows(name, tool));
        let mut found = find();
        // The tool may have just been written: the request can overtake its event. While the list
        // of all tools is being read, an older claimant of the name may still be unread.
        let may_change = match &found {
            Lookup::Unknown { .. } | Lookup::Broken(_) => true,
            _ => !self.loading.is_listed(),
        };
        if may_change {
            if let Err(error) = with_retries("read a tool", || self.loading.load_by_name(name)).await {
                tracing::warn!(%error, "the store cannot be searched for a tool");
            }
            found = find();
        }
        if matches!(found, Lookup::Unknown { .. }) && !self.loading.is_listed() {
            // Similar names can be suggested only when all names are known.
            self.loading.listed().await;
            found = find();
        }
        for _ in 0..MAX_CLAIMANTS {
            let Lookup::Unvalidated(id) = found else { break };
            self.loading.validate_now(id).await;
            found = find();
        }
        found
    }

    /// Checks the tool's requirements again: they may have been met, or lost, since the last check.
    async fn ready(&self, tool: Arc<Candidate>, name: &str, rights: &ToolRights) -> Result<Arc<Tool>, Refusal> {
        let missing = self.readiness.recheck(&tool).await;
        // If it lacks something, the tool that it replaced may serve.
        if let Lookup::Tool(found) = self.find_validated(name, rights).await
            && (missing.is_empty() || found.id != tool.id)
            && rights.refusal(&found).is_none()
        {
            return Ok(found);
        }
        if missing.is_of_this_runner() && self.peers.serves(name).await {
            return Err(Refusal::ServedByPeer);
        }
        let failure = if missing.is_empty() { undecided(name) } else { missing.failure(&tool) };
        Err(Refusal::Failed { tool: Some(tool), failure })
    }
}

/// The tool changed during the check.
fn undecided(name: &str) -> ToolFailure {
    let message = format!("the tool {name:?} is being changed; try again");
    ToolFailure::new(ErrorCode::ExecutionFailed, message).retryable(true)
}

fn broken(name: &str, problem: &Problem) -> ToolFailure {
    let message = format!(
        "no version of the tool {name:?} works: {}; its author has to correct it (`rcrt tool show {name}` shows the errors)",
        problem.sentence()
    );
    ToolFailure::new(ErrorCode::ExecutionFailed, message).with_details(json!({"errors": problem.errors}))
}

fn unknown(name: &str, nearest: &[String]) -> ToolFailure {
    let mut message = format!("there is no tool {name:?}");
    if !nearest.is_empty() {
        message = format!("{message}; did you mean {}?", nearest.join(" or "));
    }
    ToolFailure::new(ErrorCode::ToolNotFound, message).with_details(json!({"nearest": nearest}))
}
