//! Identities: tenants, agents, roles; and [`Tenancy`], the trait through which a server reaches a
//! tenant's records.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{
    Breadcrumbs, HygieneRun, HygieneStats, Profile, StoreError, TenantCount, TenantQuotas, TenantUsage, Webhooks,
};

/// What an agent may do. Roles add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything in its tenant: agents, secrets, and all that emitters and subscribers may.
    Curator,
    /// Creates, changes and deletes records; reads them.
    Emitter,
    /// Reads records and follows events.
    Subscriber,
    /// Claims and answers calls, and decrypts the secrets that tools need. Ours, beside RCRT's three.
    Runner,
}

impl Role {
    pub const ALL: [Self; 4] = [Self::Curator, Self::Emitter, Self::Subscriber, Self::Runner];

    /// Whether who has it sees what is private to others, too.
    pub fn sees_all(self) -> bool {
        matches!(self, Self::Curator | Self::Runner)
    }

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Curator => "curator",
            Self::Emitter => "emitter",
            Self::Subscriber => "subscriber",
            Self::Runner => "runner",
        }
    }
}

impl std::str::FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| role.as_str() == text)
            .ok_or_else(|| format!("{text:?} is no role; the roles are curator, emitter, subscriber, runner"))
    }
}

/// An agent of a tenant, with the roles that its token gives it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    pub owner_id: Uuid,
    pub agent_id: Uuid,
    pub roles: Vec<Role>,
    pub profile: Profile,
}

impl Identity {
    pub fn has(&self, role: Role) -> bool {
        self.roles.contains(&role)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TenantInfo {
    pub id: Uuid,
    pub name: String,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentInfo {
    pub id: Uuid,
    pub owner_id: Uuid,
    pub name: String,
    pub roles: Vec<Role>,
    /// Which tools are kept from it; as it was made, for good.
    #[serde(default)]
    pub profile: Profile,
    pub created_at: DateTime<Utc>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewAgent {
    /// Unique in its tenant; 1 to 200 characters.
    #[schema(min_length = 1, max_length = 200, pattern = "\\S")]
    pub name: String,
    #[schema(min_items = 1)]
    pub roles: Vec<Role>,
    /// `main` when absent.
    #[serde(default)]
    pub profile: Profile,
}

/// An agent of a chosen id: made, or changed where it is there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRegistration {
    /// All that it has from now on.
    pub roles: Vec<Role>,
    /// Unique in its tenant; 1 to 200 characters. When absent it stays, and of a new agent it is the id.
    #[serde(default)]
    pub name: Option<String>,
    /// `main` when absent. Of an agent that is there it cannot be changed.
    #[serde(default)]
    pub profile: Option<Profile>,
}

/// A new agent with its key. The key is shown this once; the store keeps only a hash.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewAgentKey {
    #[serde(flatten)]
    pub agent: AgentInfo,
    pub agent_key: String,
}

/// What a server must know of an agent before it takes one of its tokens.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentStatus {
    /// `None` when it does not exist or is deleted.
    pub agent: Option<AgentInfo>,
    /// The ids (`jti`) of its revoked tokens that have not expired.
    pub revoked: HashSet<Uuid>,
    /// Tokens that were issued before this time are revoked.
    pub tokens_from: Option<DateTime<Utc>>,
}

impl AgentStatus {
    /// `issued_at` in seconds since 1970, with fractions.
    pub fn has_revoked(&self, jti: Uuid, issued_at: f64) -> bool {
        let is_too_old = |from: DateTime<Utc>| issued_at < from.timestamp_micros() as f64 / 1e6;
        self.revoked.contains(&jti) || self.tokens_from.is_some_and(is_too_old)
    }
}

/// Tokens of one agent that end before their time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRevocation {
    pub agent_id: Uuid,
    pub which: WhichTokens,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichTokens {
    /// The token with this id, which expires by itself at `until`.
    One { jti: Uuid, until: DateTime<Utc> },
    /// All that were issued before this time.
    IssuedBefore(DateTime<Utc>),
}

/// The store across tenants, as only a server and the operator's own process see it.
#[async_trait]
pub trait Tenancy: Send + Sync + 'static {
    /// The records of the identity's tenant, acting as its agent. Costs nothing; the identity must be proven before.
    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs>;

    /// The tenant of this name, made if it is not there.
    async fn ensure_tenant(&self, name: &str) -> Result<TenantInfo, StoreError>;

    async fn tenants(&self) -> Result<Vec<TenantInfo>, StoreError>;

    /// The tenant, if it exists and is not deleted.
    async fn tenant(&self, id: Uuid) -> Result<Option<TenantInfo>, StoreError>;

    /// Makes the tenant of this id (`true`), or renames it. [`StoreError::Invalid`] on `name` when another has it, on `id`
    /// when a deleted one had it.
    async fn put_tenant(&self, id: Uuid, name: &str) -> Result<(TenantInfo, bool), StoreError>;

    /// Bounds what the tenant may keep.
    async fn set_quotas(&self, id: Uuid, quotas: TenantQuotas) -> Result<(), StoreError>;

    /// What the tenant keeps, and how much it may.
    async fn usage(&self, id: Uuid) -> Result<TenantUsage, StoreError>;

    /// What this process counted last of the tenants that have a quota, for metrics. Costs no query; a store without quotas
    /// counts nothing.
    fn counted_tenants(&self) -> Vec<TenantCount> {
        Vec::new()
    }

    /// Deletes the tenant: its agents are refused from now on, its rows go in the background. [`StoreError::Invalid`] on
    /// `id` for the last one, and for one in which a runner is at work.
    async fn delete_tenant(&self, id: Uuid) -> Result<(), StoreError>;

    /// Makes the agent of this id, or changes it; with its key when it is new. [`StoreError::Invalid`] on `id` when
    /// another tenant has an agent of that id, or this one had.
    async fn put_agent(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        agent: AgentRegistration,
    ) -> Result<(AgentInfo, Option<String>), StoreError>;

    /// [`StoreError::Invalid`] on `name` when the tenant has an agent of that name.
    async fn create_agent(&self, owner_id: Uuid, agent: NewAgent) -> Result<NewAgentKey, StoreError>;

    async fn agents(&self, owner_id: Uuid) -> Result<Vec<AgentInfo>, StoreError>;

    async fn delete_agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<(), StoreError>;

    /// The agent, if it exists and is not deleted (tokens of a deleted agent end with it).
    async fn agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Option<AgentInfo>, StoreError>;

    /// The agent, if this is its key. `None` for a wrong key, agent or tenant alike.
    async fn agent_by_key(&self, owner_id: Uuid, agent_id: Uuid, key: &str) -> Result<Option<AgentInfo>, StoreError>;

    /// The agent, and which of its tokens are revoked.
    async fn agent_status(&self, owner_id: Uuid, agent_id: Uuid) -> Result<AgentStatus, StoreError>;

    /// Revokes tokens of an agent of the tenant, in the name of the agent `by`; the agent need not exist.
    /// [`StoreError::Invalid`] on `jti` when too many of its tokens are revoked one by one.
    async fn revoke_tokens(&self, owner_id: Uuid, by: Uuid, revocation: TokenRevocation) -> Result<(), StoreError>;

    /// The agents (tenant, agent) of which tokens were revoked within the last seconds, in all tenants.
    async fn freshly_revoked(&self) -> Result<Vec<(Uuid, Uuid)>, StoreError>;

    /// Marks a one-time ticket as used; `false` when it was used before. It is remembered until `until`.
    async fn use_ticket(&self, owner_id: Uuid, ticket: Uuid, until: DateTime<Utc>) -> Result<bool, StoreError>;

    /// What the purging of this tenant's ended records came to.
    async fn hygiene(&self, owner_id: Uuid) -> Result<HygieneStats, StoreError>;

    /// Takes out this tenant's ended records now, instead of within the next seconds.
    async fn run_hygiene(&self, owner_id: Uuid) -> Result<HygieneRun, StoreError>;

    /// The webhooks of all tenants.
    fn webhooks(&self) -> Arc<dyn Webhooks>;

    /// An answer from the database itself, for `/health`.
    async fn ping(&self) -> Result<(), StoreError>;
}
