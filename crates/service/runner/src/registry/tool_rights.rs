//! Which tools a call can use: the profiles of its request, the allow list of the agent that wrote
//! it, and the drafts of that agent.

use rcrt_breadcrumb::{AllowedTools, Claim, ErrorCode, Profile, Profiles, Registration, ToolFailure};
use rcrt_executors::TriggerChain;
use serde_json::json;
use uuid::Uuid;

use crate::registry::tool::Candidate;

/// Which drafts a call finds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Drafts {
    #[default]
    None,
    /// Those of this agent.
    Of(Uuid),
    /// Those of this agent whose names no published tool has. For a request that a tool writes: the
    /// caller of a published tool must not replace the tools that it calls.
    OfUnpublished(Uuid),
}

impl Drafts {
    pub fn author(self) -> Option<Uuid> {
        match self {
            Self::None => None,
            Self::Of(author) | Self::OfUnpublished(author) => Some(author),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub(crate) struct ToolRights {
    pub profiles: Profiles,
    /// `None`: every tool.
    pub allowed: Option<Box<AllowedTools>>,
    pub drafts: Drafts,
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
        let chain = TriggerChain::of_request(tags);
        let is_asked_for = chain.is_empty() && !profiles.iter().any(|profile| profile == Profile::Scheduled);
        let drafts = match writer.filter(|_| is_asked_for) {
            None => Drafts::None,
            Some(writer) if chain.is_nested() => Drafts::OfUnpublished(writer),
            Some(writer) => Drafts::Of(writer),
        };
        Self { profiles, allowed, drafts }
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

    /// Whether the call can use this tool of the catalog.
    pub fn allows_offered(&self, tool: &Registration) -> bool {
        let is_listed = |allowed: &AllowedTools| allowed.allows(&tool.name, &tool.source, &tool.tags);
        self.profiles.denied_by(&tool.name, &tool.source).is_none() && self.allowed.as_deref().is_none_or(is_listed)
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
