//! The missing requirements that keep a tool from being offered.

use rcrt_breadcrumb::{ErrorCode, SecretInfo, SecretUnavailable, ToolFailure, Waiting};
use serde_json::{Value, json};

use crate::registry::tool::Candidate;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MissingRequirements {
    /// The executor's messages about a missing setting or program. Another runner may have it.
    settings: Vec<String>,
    sentences: Vec<String>,
    secrets: Vec<(String, SecretUnavailable)>,
}

impl MissingRequirements {
    /// `known`: the tenant's secrets.
    pub fn of(tool: &Candidate, known: &[SecretInfo]) -> Self {
        let lack = |name: String| {
            let secret = known.iter().find(|secret| secret.name == name);
            SecretUnavailable::check(Some((tool.id, tool.version)), secret).map(|lack| (name, lack))
        };
        let is_granted =
            |secret: &SecretInfo| SecretUnavailable::check(Some((tool.id, tool.version)), Some(secret)).is_none();
        // The tool's configuration names its secret by id, so any granted one may be the required.
        let names = if tool.gets_all_granted && known.iter().any(is_granted) {
            Vec::new()
        } else {
            tool.executor.required_secrets(&tool.definition)
        };
        let closed = tool
            .closed_hosts
            .iter()
            .map(|host| format!("its host is private; the operator can allow it with --allow-private-host {host}"));
        Self {
            settings: tool.executor.missing_requirements(&tool.definition).into_iter().chain(closed).collect(),
            sentences: Vec::new(),
            secrets: names.into_iter().filter_map(lack).collect(),
        }
    }

    pub fn sentence(sentence: impl Into<String>) -> Self {
        Self { sentences: vec![sentence.into()], ..Self::default() }
    }

    pub fn secret(name: &str, lack: SecretUnavailable) -> Self {
        Self { secrets: vec![(name.to_owned(), lack)], ..Self::default() }
    }

    pub fn is_empty(&self) -> bool {
        self.settings.is_empty() && self.sentences.is_empty() && self.secrets.is_empty()
    }

    /// Whether this runner lacks a setting or a program that another runner may have.
    pub fn is_of_this_runner(&self) -> bool {
        !self.settings.is_empty()
    }

    /// Whether a runner with other settings can offer the tool.
    pub fn is_only_of_this_runner(&self) -> bool {
        self.is_of_this_runner() && self.sentences.is_empty() && self.secrets.is_empty()
    }

    /// Everything that is missing, one sentence each, so that all of it can be fixed at once.
    fn missing_requirements(&self, tool: &Candidate) -> Vec<String> {
        let id = tool.id.to_string();
        let secrets = self.secrets.iter().map(|(name, lack)| {
            format!("{}; a curator can fix it with {}", lack.sentence(name), lack.fix(name, &id, &tool.definition))
        });
        self.settings.iter().chain(&self.sentences).cloned().chain(secrets).collect()
    }

    pub fn waiting(&self, tool: &Candidate) -> Waiting {
        Waiting {
            name: tool.name().to_owned(),
            source: tool.source(),
            tags: tool.tags.clone(),
            tool_id: tool.id,
            missing_requirements: self.missing_requirements(tool),
        }
    }

    /// The error of a call to a tool that is not offered yet.
    pub fn failure(&self, tool: &Candidate) -> ToolFailure {
        let sentences = self.missing_requirements(tool);
        let trimmed: Vec<&str> = sentences.iter().map(|sentence| sentence.trim_end_matches('.')).collect();
        let message = format!("the tool {:?} has missing requirements: {}", tool.name(), trimmed.join(". "));
        let mut details = json!({"tool_id": tool.id, "missing_requirements": sentences});
        if !self.secrets.is_empty() {
            let id = tool.id.to_string();
            let secrets = self.secrets.iter().map(
                |(name, lack)| json!({"secret": name, "problem": lack.as_str(), "fix": lack.fix_command(name, &id, &tool.definition)}),
            );
            details["secrets"] = Value::Array(secrets.collect());
        }
        ToolFailure::new(ErrorCode::PermissionDenied, message).with_details(details)
    }
}
