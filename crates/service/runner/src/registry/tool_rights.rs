//! Which tools a call can use: the profiles of its request, the allow list of the agent that wrote
//! it, and the drafts of that agent.

use rcrt_breadcrumb::{AllowedTools, Claim, ErrorCode, Profile, Profiles, ToolFailure};
use rcrt_executors::TriggerChain;
use serde_json::json;
use uuid::Uuid;

use crate::registry::tool::Candidate;

#[derive(Debug, Clone, Default)]
pub(crate) struct ToolRights {
    pub profiles: Profiles,
    /// `None`: every tool.
    pub allowed: Option<Box<AllowedTools>>,
    /// The agent whose drafts the call finds.
    pub drafts_of: Option<Uuid>,
}

impl From<&Claim> for ToolRights {
    fn from(claim: &Claim) -> Self {
        let Claim { profiles, allowed_tools, request, .. } = claim;
        Self::new(profiles.clone(), allowed_tools.clone(), request.created_by, &request.tags)
    }
}

impl ToolRights {
    /// `writer` and `tags`: of the request. What an event or a schedule starts uses the published
    /// tools, also if their author is working on a draft.
    pub fn new(profiles: Profiles, allowed: Option<Box<AllowedTools>>, writer: Option<Uuid>, tags: &[String]) -> Self {
        let is_asked_for =
            TriggerChain::of_request(tags).is_empty() && !profiles.iter().any(|profile| profile == Profile::Scheduled);
        Self { profiles, allowed, drafts_of: writer.filter(|_| is_asked_for) }
    }

    /// Why the call cannot use this tool; `None` if it can.
    pub fn refusal(&self, tool: &Candidate) -> Option<ToolFailure> {
        let (name, source) = (tool.name(), tool.source());
        if let Some(profile) = self.profiles.denied_by(name, &source) {
            return Some(denied_by_profile(profile.as_str(), name));
        }
        let is_listed = self.allowed.as_ref().is_none_or(|allowed| allowed.allows(name, &source, &tool.tags));
        (!is_listed).then(|| not_on_list(name))
    }

    /// The same for every tool with this name, whatever its source is.
    pub fn refusal_of_name(&self, name: &str) -> Option<ToolFailure> {
        if let Some(profile) = self.profiles.name_denied_by(name) {
            return Some(denied_by_profile(profile.as_str(), name));
        }
        let is_denied = self.allowed.as_ref().is_some_and(|allowed| allowed.denies_name(name));
        is_denied.then(|| not_on_list(name))
    }

    /// Whether the call can use the tool of this name, of which the record is not known yet if it
    /// is `None`.
    pub fn allows(&self, name: &str, tool: Option<&Candidate>) -> bool {
        match tool {
            Some(tool) => self.refusal(tool).is_none(),
            None => self.refusal_of_name(name).is_none(),
        }
    }
}

fn denied_by_profile(profile: &str, name: &str) -> ToolFailure {
    let message = format!(
        "the profile {profile} does not allow the tool {name}; `rcrt tool list --profile {profile}` lists those that it \
         allows"
    );
    ToolFailure::new(ErrorCode::PermissionDenied, message).with_details(json!({"profile": profile, "tool": name}))
}

fn not_on_list(name: &str) -> ToolFailure {
    let message = format!(
        "the tool {name} is not on the allow list of the agent that asked for it; a curator can add it with \
         `rcrt agent set`"
    );
    ToolFailure::new(ErrorCode::PermissionDenied, message).with_details(json!({"tool": name}))
}
