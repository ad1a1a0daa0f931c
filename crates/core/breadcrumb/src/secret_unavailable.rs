//! Why a tool cannot have a secret that it needs, and the command that fixes it: the same text
//! everywhere.

use uuid::Uuid;

use crate::{SecretInfo, ToolDefinition, ToolSource, schema_names};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SecretUnavailable {
    Missing,
    /// It exists, but without a grant to this tool.
    NotGranted,
    /// It is granted to a newer version than the one that runs.
    NewerOnly,
    /// The tool cannot read it and it is bound to no host, so it cannot be used.
    Unbound,
}

impl SecretUnavailable {
    /// Why a version of a tool's record cannot have the secret; the first reason that applies.
    /// `None` for `tool` means that the record is not written yet, and so has no grant.
    pub fn check(tool: Option<(Uuid, i64)>, secret: Option<&SecretInfo>) -> Option<Self> {
        let Some(secret) = secret else { return Some(Self::Missing) };
        let Some((grant, version)) = tool.and_then(|(id, version)| Some((secret.grant_of(id)?, version))) else {
            return Some(Self::NotGranted);
        };
        if version < grant.tool_version {
            return Some(Self::NewerOnly);
        }
        (secret.hosts.is_empty() && !secret.readable).then_some(Self::Unbound)
    }

    /// The reason as a code: `missing`, `not_granted`, `newer_only`, `unbound`.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Missing => "missing",
            Self::NotGranted => "not_granted",
            Self::NewerOnly => "newer_only",
            Self::Unbound => "unbound",
        }
    }

    pub fn sentence(self, name: &str) -> String {
        match self {
            Self::Missing => format!("the secret {name:?} does not exist"),
            Self::NotGranted => format!("the secret {name:?} is not granted to this tool"),
            Self::NewerOnly => {
                format!("the secret {name:?} is granted to a newer version of this tool, which does not work yet")
            }
            Self::Unbound => format!("the secret {name:?} is bound to no host and not readable, so it cannot be used"),
        }
    }

    /// The command for people: for code with network access, with the alternative for code that
    /// computes with the value, such as an HMAC.
    pub fn fix(self, name: &str, tool: &str, definition: &ToolDefinition) -> String {
        let command = self.fix_command(name, tool, definition);
        let is_code = definition.implementation.source() == ToolSource::Sandbox;
        if is_code && command.contains("--host HOST") {
            format!("`{command}` (with --readable in place of --host HOST if its code computes with the value)")
        } else {
            format!("`{command}`")
        }
    }

    /// The command with which a curator fixes it. `tool` is the record's id or the tool's name. A
    /// tool without the network, such as one that computes an HMAC, can use only a readable secret.
    pub fn fix_command(self, name: &str, tool: &str, definition: &ToolDefinition) -> String {
        let is_code = definition.implementation.source() == ToolSource::Sandbox;
        let is_offline = is_code && !definition.permissions.net.is_granted();
        let access = if is_offline { "--readable" } else { "--host HOST" };
        match self {
            Self::Missing => format!("rcrt secret set {name} {access} && rcrt secret grant {name} {tool}"),
            Self::NotGranted => format!("rcrt secret grant {name} {tool}"),
            // These records say why the newer version does not work.
            Self::NewerOnly => format!("rcrt crumb list --schema {}", schema_names::TOOL_ERROR),
            Self::Unbound => format!("rcrt secret set {name} --keep-value {access}"),
        }
    }
}
