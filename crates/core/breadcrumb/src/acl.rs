//! ACL grants: what agents and tenants can do with one record, beyond its tenant and its
//! visibility.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::Violations;
use crate::names::names;

/// What a grant permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// To read the short view, and to find the record in lists and searches.
    ReadContext,
    /// To read everything, including the history. Includes `read_context`.
    ReadFull,
    Update,
    Delete,
    /// To receive the record's events.
    Subscribe,
}

names!(Action, "action", {
    ReadContext => "read_context",
    ReadFull => "read_full",
    Update => "update",
    Delete => "delete",
    Subscribe => "subscribe",
});

/// A grant on one record to an agent of any tenant, or to all agents of a tenant. Exactly one of
/// the two grantees is set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AclEntry {
    pub id: Uuid,
    pub breadcrumb_id: Uuid,
    pub grantee_agent_id: Option<Uuid>,
    pub grantee_owner_id: Option<Uuid>,
    pub actions: Vec<Action>,
    pub created_at: DateTime<Utc>,
}

/// Actions to grant or revoke. Names exactly one grantee, and either `action` or `actions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AclChange {
    pub breadcrumb_id: Uuid,
    /// An agent, of this tenant or another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grantee_agent_id: Option<Uuid>,
    /// A tenant: all of its agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grantee_owner_id: Option<Uuid>,
    /// One action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<Action>,
    /// Several actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
}

impl AclChange {
    pub fn agent(breadcrumb_id: Uuid, agent: Uuid, actions: impl Into<Vec<Action>>) -> Self {
        let actions = actions.into();
        Self { breadcrumb_id, grantee_agent_id: Some(agent), grantee_owner_id: None, action: None, actions }
    }

    pub fn tenant(breadcrumb_id: Uuid, tenant: Uuid, actions: impl Into<Vec<Action>>) -> Self {
        let actions = actions.into();
        Self { breadcrumb_id, grantee_agent_id: None, grantee_owner_id: Some(tenant), action: None, actions }
    }

    /// The actions of both fields, without duplicates.
    pub fn all_actions(&self) -> Vec<Action> {
        let mut actions: Vec<Action> = self.actions.iter().copied().chain(self.action).collect();
        actions.sort_unstable();
        actions.dedup();
        actions
    }

    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        match (self.grantee_agent_id, self.grantee_owner_id) {
            (Some(_), Some(_)) => {
                found.add("grantee_owner_id", "cannot be combined with grantee_agent_id; name an agent or a tenant");
            }
            (None, None) => {
                found.add("grantee_agent_id", "is required: an agent here, or a tenant in grantee_owner_id");
            }
            _ => {}
        }
        if self.action.is_some() && !self.actions.is_empty() {
            found.add("action", "cannot be combined with actions; use one of the two");
        } else if self.all_actions().is_empty() {
            let names = Action::ALL.map(Action::as_str).join(", ");
            found.add("actions", format!("must name at least one of {names}"));
        }
        found.into_result()
    }
}
