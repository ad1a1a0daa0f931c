//! The audit log: who changed agents, tokens, grants, secrets and tools, and who used secrets.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Violations, nearest_names};

/// The most entries in one read.
pub const MAX_AUDIT_ENTRIES: u32 = 1000;

/// Every action of the audit log. Each has a group, the word before the dot, which a filter can
/// name too. The database accepts no other groups.
pub const AUDIT_ACTIONS: [&str; 28] = [
    "agent.created",
    "agent.changed",
    "agent.key_rotated",
    "agent.deleted",
    "token.revoked",
    "token.all_revoked",
    "acl.granted",
    "acl.revoked",
    "secret.created",
    "secret.rotated",
    "secret.bound",
    "secret.made_readable",
    "secret.made_opaque",
    "secret.granted",
    "secret.revoked",
    "secret.decrypted",
    "secret.refused",
    "secret.rewrapped",
    "secret.deleted",
    "tool.created",
    "tool.changed",
    "tool.deleted",
    "tool.expired",
    "tool.imported",
    "webhook.created",
    "webhook.deleted",
    "webhook.secret_set",
    "webhook.secret_rewrapped",
];

/// Checks an action, or a group of actions, that a filter names.
pub fn check_audit_action(named: &str) -> Result<(), Violations> {
    let group = |action: &'static str| action.split_once('.').map_or(action, |(group, _)| group);
    if AUDIT_ACTIONS.into_iter().any(|action| action == named || group(action) == named) {
        return Ok(());
    }
    let mut groups: Vec<&str> = AUDIT_ACTIONS.into_iter().map(group).collect();
    groups.dedup();
    let nearest = nearest_names(named, AUDIT_ACTIONS.into_iter().chain(groups.iter().copied()));
    let hint = if nearest.is_empty() { String::new() } else { format!("; did you mean {}?", nearest.join(" or ")) };
    let message = format!("must be an action such as secret.decrypted, or a group: {}{hint}", groups.join(", "));
    Err(Violations::one("action", message))
}

/// One entry of a tenant's audit log. It was written in the transaction of the action.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AuditEntry {
    /// Later entries have larger ids.
    pub id: i64,
    pub at: DateTime<Utc>,
    /// The agent that did it. `null`: the operator, or the store itself.
    pub agent_id: Option<Uuid>,
    /// For example `agent.changed`, `acl.granted`, `secret.decrypted`, `tool.created`.
    pub action: String,
    /// The id of what was changed or used: an agent, a token, a secret, a record.
    pub subject: Uuid,
    /// Its name at that time. For a token, the id of its agent.
    pub subject_name: String,
    /// What changed, or the reason that the caller gave.
    pub reason: Option<String>,
    /// The tool for which it was done, or whose use of a secret was granted or revoked.
    pub tool_id: Option<Uuid>,
}

/// Selects entries. All conditions must match.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct AuditQuery {
    /// An action such as `secret.decrypted`, or a group such as `secret`.
    pub action: Option<String>,
    pub agent_id: Option<Uuid>,
    pub subject: Option<Uuid>,
    pub tool_id: Option<Uuid>,
    /// Entries of this time or later.
    pub since: Option<DateTime<Utc>>,
    /// Entries of before this time.
    pub until: Option<DateTime<Utc>>,
    /// Only entries with a smaller id, for paging: the last id of the previous page.
    pub before: Option<i64>,
    /// 1 to [`MAX_AUDIT_ENTRIES`].
    pub limit: u32,
}
