//! Identities: tenants, agents, roles; and [`Tenancy`], the trait through which a server reaches a
//! tenant's records.

use std::{collections::HashSet, sync::Arc};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::names::names;
use crate::{
    AllowedTools, AllowedToolsChange, Breadcrumbs, HygieneRun, HygieneStats, Profile, PublishRule, StoreError,
    TenantCount, TenantQuotas, TenantUsage, TokenInfo, TokenQuery, TokenRecord, ToolFailure, UnfinishedCalls, Webhooks,
};

/// With the agent's id at its end: the tag of a `memory.entry.v1` that a tool wrote for an agent
/// with the role `caller`. The store sets it. The entry counts for that agent alone.
pub const MEMORY_OF_CALLER_TAG: &str = "memory-of-caller:";

/// `triggered-by:<request>:<version>`: the call that wrote this version of a record. What the
/// version triggers counts as a call below it. The store removes the tag from what others than
/// runners write.
pub const TRIGGERED_BY_TAG: &str = "triggered-by:";

/// Which HTTP routes an agent can use. An agent can have several roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// Everything in its tenant: agents, secrets, and all that emitters and subscribers can do.
    Curator,
    /// Creates, changes and deletes records; reads them.
    Emitter,
    /// Reads records and follows events.
    Subscriber,
    /// Claims calls, writes their responses and decrypts the secrets that tools need.
    Runner,
    /// Calls the tools on its agent's allow list, and reads its own requests and their responses.
    /// RCRT has only the first three roles.
    Caller,
}

impl Role {
    /// The names of all roles, for messages.
    pub const NAMES: &str = "curator, emitter, subscriber, runner, caller";

    /// Whether agents with this role also see records that are private to other agents.
    pub fn sees_all(self) -> bool {
        matches!(self, Self::Curator | Self::Runner)
    }

    /// Whether an agent with these roles can call tools, but write nothing except requests.
    pub fn write_only_requests(roles: &[Self]) -> bool {
        let writes_more = |role| matches!(role, Self::Curator | Self::Emitter | Self::Runner);
        roles.contains(&Self::Caller) && !roles.iter().any(|role| writes_more(*role))
    }

    /// Whether an agent with these roles reads only its own requests and their responses.
    pub fn read_only_own_calls(roles: &[Self]) -> bool {
        !roles.is_empty() && roles.iter().all(|role| *role == Self::Caller)
    }
}

names!(Role, "role", {
    Curator => "curator",
    Emitter => "emitter",
    Subscriber => "subscriber",
    Runner => "runner",
    Caller => "caller",
});

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
    /// What publishes the tools that agents make.
    #[serde(default)]
    pub publish: PublishRule,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct AgentInfo {
    pub id: Uuid,
    pub owner_id: Uuid,
    pub name: String,
    pub roles: Vec<Role>,
    /// Which tools the agent can call.
    #[serde(default)]
    pub profile: Profile,
    /// The only tools that the agent can call. Absent: every offered tool that its profile allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<AllowedTools>,
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
    /// The only tools that the agent can call, for an agent with the role `caller` and without
    /// `curator`, `emitter` and `runner`. Every offered tool when absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tools: Option<AllowedTools>,
}

/// Creates an agent with a chosen id, or changes it if it exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRegistration {
    /// Replaces all roles of the agent.
    pub roles: Vec<Role>,
    /// Unique in its tenant; 1 to 200 characters. When absent, an existing agent keeps its name,
    /// and a new agent's name is its id.
    #[serde(default)]
    pub name: Option<String>,
    /// For a new agent `main` when absent; an existing agent keeps its profile. A restricted one
    /// also applies to the agent's existing tokens.
    #[serde(default)]
    pub profile: Option<Profile>,
    /// As for a new agent. When absent, an existing agent keeps its list; `null` allows every tool.
    #[serde(default, skip_serializing_if = "AllowedToolsChange::is_none")]
    #[schema(value_type = Option<AllowedTools>)]
    pub tools: AllowedToolsChange,
}

/// A new agent with its key. The key is shown only once; the store has only a hash of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NewAgentKey {
    #[serde(flatten)]
    pub agent: AgentInfo,
    pub agent_key: String,
}

/// What a server checks before it accepts a token of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentStatus {
    /// `None` when it does not exist or is deleted.
    pub agent: Option<AgentInfo>,
    /// The ids (`jti`) of its revoked tokens that have not expired.
    pub revoked: HashSet<Uuid>,
    /// Tokens that were issued before this time are revoked.
    pub tokens_from: Option<DateTime<Utc>>,
    /// The tenant's own quota of concurrent requests.
    pub max_requests: Option<u64>,
}

impl AgentStatus {
    /// `issued_at` in seconds since 1970, with fractions.
    pub fn has_revoked(&self, jti: Uuid, issued_at: f64) -> bool {
        let is_too_old = |from: DateTime<Utc>| issued_at < from.timestamp_micros() as f64 / 1e6;
        self.revoked.contains(&jti) || self.tokens_from.is_some_and(is_too_old)
    }
}

/// Revokes tokens of one agent before they expire.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenRevocation {
    pub agent_id: Uuid,
    pub which: WhichTokens,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WhichTokens {
    /// The token with this id, which expires by itself at `until`.
    One { jti: Uuid, until: DateTime<Utc> },
    /// All tokens that were issued before this time.
    IssuedBefore(DateTime<Utc>),
}

/// The store of all tenants. Only a server and the operator's own process use it.
#[async_trait]
pub trait Tenancy: Send + Sync + 'static {
    /// The identity's tenant as its agent sees it. This does no I/O. The caller must have verified
    /// the identity.
    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs>;

    /// Returns the tenant with this name. Creates it if it does not exist.
    async fn ensure_tenant(&self, name: &str) -> Result<TenantInfo, StoreError>;

    async fn tenants(&self) -> Result<Vec<TenantInfo>, StoreError>;

    /// The tenant, if it exists and is not deleted.
    async fn tenant(&self, id: Uuid) -> Result<Option<TenantInfo>, StoreError>;

    /// Creates the tenant with this id (returns `true`), or renames it. `cell` names the database
    /// in which a new one begins, where there are several; `None`: where the operator lets them
    /// begin. [`StoreError::Invalid`] on `name` if another tenant has that name, on `id` if it
    /// belonged to a deleted tenant, on `cell` if there is none, or the tenant is in another one.
    async fn put_tenant(&self, id: Uuid, name: &str, cell: Option<&str>) -> Result<(TenantInfo, bool), StoreError>;

    /// Sets the tenant's quotas.
    async fn set_quotas(&self, id: Uuid, quotas: TenantQuotas) -> Result<(), StoreError>;

    /// Sets what publishes the tools that the tenant's agents make.
    async fn set_publish(&self, id: Uuid, publish: PublishRule) -> Result<(), StoreError>;

    /// How much the tenant stores, and its quotas.
    async fn usage(&self, id: Uuid) -> Result<TenantUsage, StoreError>;

    /// The last counts, in this process, of the tenants that have a quota, for metrics. Runs no
    /// query. Empty for a store without quotas.
    fn counted_tenants(&self) -> Vec<TenantCount> {
        Vec::new()
    }

    /// The unfinished calls of all tenants, by tool, for metrics.
    async fn unfinished_calls(&self) -> Result<Vec<UnfinishedCalls>, StoreError> {
        Ok(Vec::new())
    }

    /// Deletes the tenant. Its agents are refused from now on, and its rows are deleted in the
    /// background. [`StoreError::Invalid`] on `id` for the last tenant, and for a tenant with an
    /// active runner.
    async fn delete_tenant(&self, id: Uuid) -> Result<(), StoreError>;

    /// Creates the agent with this id, or changes it. The key is returned only for a new agent.
    /// [`StoreError::Invalid`] on `id` if another tenant has an agent with that id, or if it
    /// belonged to a deleted agent of this tenant.
    async fn put_agent(
        &self,
        owner_id: Uuid,
        by: Option<Uuid>,
        agent_id: Uuid,
        agent: AgentRegistration,
    ) -> Result<(AgentInfo, Option<String>), StoreError>;

    /// [`StoreError::Invalid`] on `name` if the tenant already has an agent with that name. `by`,
    /// here and in the next methods, is the agent that does it, for the audit log; `None`: the
    /// operator.
    async fn create_agent(&self, owner_id: Uuid, by: Option<Uuid>, agent: NewAgent) -> Result<NewAgentKey, StoreError>;

    /// Gives the agent a new key. The old one is invalid from now on; its tokens stay valid.
    async fn rotate_agent_key(
        &self,
        owner_id: Uuid,
        by: Option<Uuid>,
        agent_id: Uuid,
    ) -> Result<NewAgentKey, StoreError>;

    async fn agents(&self, owner_id: Uuid) -> Result<Vec<AgentInfo>, StoreError>;

    async fn delete_agent(&self, owner_id: Uuid, by: Option<Uuid>, agent_id: Uuid) -> Result<(), StoreError>;

    /// The agent, if it exists and is not deleted. The tokens of a deleted agent are invalid.
    async fn agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Option<AgentInfo>, StoreError>;

    /// The agent, if this is its key. `None` for a wrong key, a wrong agent and a wrong tenant
    /// alike.
    async fn agent_by_key(&self, owner_id: Uuid, agent_id: Uuid, key: &str) -> Result<Option<AgentInfo>, StoreError>;

    /// The agent, and which of its tokens are revoked.
    async fn agent_status(&self, owner_id: Uuid, agent_id: Uuid) -> Result<AgentStatus, StoreError>;

    /// Revokes tokens of an agent of the tenant. `by` is the agent that does it. The agent need not
    /// exist. [`StoreError::Invalid`] on `jti` if too many of its tokens are revoked individually.
    async fn revoke_tokens(&self, owner_id: Uuid, by: Uuid, revocation: TokenRevocation) -> Result<(), StoreError>;

    /// Records that tokens were issued or used, so that they are listed.
    async fn record_tokens(&self, tokens: Vec<TokenRecord>) -> Result<(), StoreError>;

    /// The tokens of a tenant that were recorded and have not expired, newest first.
    async fn tokens(&self, owner_id: Uuid, query: &TokenQuery) -> Result<Vec<TokenInfo>, StoreError>;

    /// The agents of all tenants that were changed or deleted within the last seconds, or whose
    /// tokens were revoked, as (tenant, agent, when).
    async fn recently_changed_agents(&self) -> Result<Vec<(Uuid, Uuid, DateTime<Utc>)>, StoreError>;

    /// Marks a one-time ticket as used. Returns `false` if it was used before. The ticket is
    /// remembered until `until`.
    async fn use_ticket(&self, owner_id: Uuid, ticket: Uuid, until: DateTime<Utc>) -> Result<bool, StoreError>;

    /// The state of a session of this agent, which a server kept. Extends its time.
    async fn kept_session(&self, owner_id: Uuid, agent_id: Uuid, id: &str) -> Result<Option<Value>, StoreError>;

    /// Keeps the state of a session for the other servers of the store, for a day after its last
    /// use of these methods. Of each agent the newest are kept.
    async fn keep_session(&self, owner_id: Uuid, agent_id: Uuid, id: &str, state: &Value) -> Result<(), StoreError>;

    /// Deletes the state of a session.
    async fn end_session(&self, owner_id: Uuid, agent_id: Uuid, id: &str) -> Result<(), StoreError>;

    /// Statistics of the deletion of this tenant's expired records.
    async fn hygiene(&self, owner_id: Uuid) -> Result<HygieneStats, StoreError>;

    /// Deletes this tenant's expired records now, instead of within the next seconds.
    async fn run_hygiene(&self, owner_id: Uuid) -> Result<HygieneRun, StoreError>;

    /// Validates a tool and runs its examples for this agent, as [`TEST_TOOL`](crate::TEST_TOOL)
    /// does, in a runner of this process. No request is written. `None` if no such runner can do it
    /// now: write a request.
    async fn test_tool(
        &self,
        _identity: Identity,
        _tool_spec: Map<String, Value>,
    ) -> Option<Result<Value, ToolFailure>> {
        None
    }

    /// The webhooks of all tenants.
    fn webhooks(&self) -> Arc<dyn Webhooks>;

    /// Checks that the database responds, for `/health`.
    async fn ping(&self) -> Result<(), StoreError>;
}
