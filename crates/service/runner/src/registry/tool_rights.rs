//! Which tools a call can use: the profiles of its request, and the allow list of the agent that
//! wrote it.

use rcrt_breadcrumb::{AllowedTools, Claim, ErrorCode, Profiles, ToolFailure};
use serde_json::json;

use crate::registry::tool::Candidate;

#[derive(Debug, Clone, Default)]
pub(crate) struct ToolRights {
    pub profiles: Profiles,
    /// `None`: every tool.
    pub allowed: Option<Box<AllowedTools>>,
}

impl From<&Claim> for ToolRights {
    fn from(claim: &Claim) -> Self {
        Self { profiles: claim.profiles.clone(), allowed: claim.allowed_tools.clone() }
    }
}

impl ToolRights {
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
