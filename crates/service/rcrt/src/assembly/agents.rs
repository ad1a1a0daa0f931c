//! Creates the tenant and the agents that the program itself acts as.

use rcrt_breadcrumb::{AgentInfo, Identity, NewAgent, Role, StoreError, Tenancy};
use uuid::Uuid;

/// The tenant of a new installation.
pub const DEFAULT_TENANT: &str = "default";

/// The agents that the program itself uses in a tenant.
#[derive(Debug, Clone)]
pub struct Agents {
    /// The operator's agent. The token in the data folder is for it.
    pub first: Identity,
    /// The runner of this process.
    pub runner: Identity,
    /// The author of seeded records. Records that were changed since have another author.
    pub seeder: Identity,
}

impl Agents {
    /// Returns the agents of this tenant, and creates the missing ones.
    pub async fn ensure(tenancy: &dyn Tenancy, tenant: &str) -> Result<Self, StoreError> {
        let tenant = tenancy.ensure_tenant(tenant).await?;
        let agent = |name, roles: &'static [Role]| ensure(tenancy, tenant.id, name, roles);
        Ok(Self {
            first: agent("first", &Role::ALL).await?,
            runner: agent("runner", &[Role::Runner, Role::Emitter, Role::Subscriber]).await?,
            seeder: agent("seeder", &[Role::Emitter, Role::Subscriber]).await?,
        })
    }
}

async fn ensure(tenancy: &dyn Tenancy, owner_id: Uuid, name: &str, roles: &[Role]) -> Result<Identity, StoreError> {
    let identity =
        |agent: AgentInfo| Identity { owner_id, agent_id: agent.id, roles: agent.roles, profile: agent.profile };
    let named = |agents: Vec<AgentInfo>| agents.into_iter().find(|agent| agent.name == name);
    if let Some(agent) = named(tenancy.agents(owner_id).await?) {
        return Ok(identity(agent));
    }
    let agent =
        NewAgent { name: name.to_owned(), roles: roles.to_vec(), profile: rcrt_breadcrumb::Profile::Main, tools: None };
    match tenancy.create_agent(owner_id, None, agent).await {
        Ok(created) => Ok(identity(created.agent)),
        // Another process on the same database created it first.
        Err(StoreError::Invalid(violations)) => {
            named(tenancy.agents(owner_id).await?).map(identity).ok_or(StoreError::Invalid(violations))
        }
        Err(error) => Err(error),
    }
}
