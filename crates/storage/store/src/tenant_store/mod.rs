//! The store as one agent of one tenant sees it: validates the input, opens the tenant's
//! transaction, and calls the module that does the work. Each part of [`Breadcrumbs`] has a file.

mod call_queue;
mod events;
mod logs;
mod records;
mod rights;
mod secrets;

use std::sync::Arc;
use std::time::Instant;

use rcrt_breadcrumb::{Breadcrumbs, Identity, Role, StoreError};
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::row_access::{Principal, RequiredPermission, RowAccess};
use crate::database::transaction::{Durability, TenantTransaction};
use crate::records::context_reads::Reader;
use crate::rights::actor::Actor;
use crate::rights::agents;
use crate::rights::role_cache::AgentRights;
use crate::store::Inner;
use crate::writing::QueueWaiter;

pub(crate) struct TenantStore {
    store: Arc<Inner>,
    owner_id: Uuid,
    actor: Actor,
    queue_waiter: QueueWaiter,
}

impl TenantStore {
    pub(crate) fn new(store: Arc<Inner>, identity: &Identity) -> Self {
        Self::of(store, identity.owner_id, Actor::of(identity))
    }

    fn of(store: Arc<Inner>, owner_id: Uuid, actor: Actor) -> Self {
        Self { store, owner_id, actor, queue_waiter: QueueWaiter::default() }
    }

    /// Sees all records of the tenant. For operations that do not depend on the agent's rights.
    async fn begin(&self) -> Result<TenantTransaction> {
        TenantTransaction::begin(&self.store.database, self.owner_id).await
    }

    /// Sees what the agent sees.
    async fn begin_for(&self, permission: RequiredPermission) -> Result<TenantTransaction> {
        TenantTransaction::begin_as(&self.store.database, self.row_access(permission).await?).await
    }

    async fn row_access(&self, permission: RequiredPermission) -> Result<RowAccess> {
        let actor = self.actor().await?;
        let principal = if actor.reads_only_own_calls && actor.is_acting_for_another() {
            Principal::ToolOfCaller(actor.on_behalf_of)
        } else if actor.reads_only_own_calls {
            Principal::Caller(actor.on_behalf_of)
        } else if self.sees_all().await? {
            Principal::Unrestricted
        } else {
            Principal::Agent(self.actor.on_behalf_of)
        };
        Ok(RowAccess { owner_id: self.owner_id, principal, permission })
    }

    async fn sees_all(&self) -> Result<bool> {
        if self.actor.is_acting_for_another() {
            return Ok(self.rights_of_agent().await?.sees_all);
        }
        Ok(self.actor.sees_all())
    }

    /// The actor with the limits of the agent on whose behalf it acts.
    async fn actor(&self) -> Result<Actor> {
        if self.actor.is_acting_for_another() {
            return Ok(self.actor.limited_by(&self.rights_of_agent().await?));
        }
        Ok(self.actor)
    }

    /// The rights of the agent for which this acts, from its row: an agent on whose behalf a runner
    /// acts has sent no token, and no token has an allow list.
    async fn rights_of_agent(&self) -> Result<AgentRights> {
        let key = (self.owner_id, self.actor.on_behalf_of);
        if let Some(rights) = self.store.role_cache.get(key) {
            return Ok(rights);
        }
        let asked = Instant::now();
        let agent = agents::find(&mut self.begin().await?, self.actor.on_behalf_of).await?;
        let rights = agent.map_or_else(AgentRights::default, |agent| AgentRights {
            sees_all: agent.roles.iter().any(|role| role.sees_all()),
            is_curator: agent.roles.contains(&Role::Curator),
            writes_only_requests: Role::write_only_requests(&agent.roles),
            reads_only_own_calls: Role::read_only_own_calls(&agent.roles),
            allowed_tools: agent.tools,
        });
        self.store.role_cache.insert(key, asked, rights.clone());
        Ok(rights)
    }

    /// The agent whose rights limit what it sees. `None` if it sees the whole tenant.
    async fn restricted_agent(&self) -> Result<Option<Uuid>> {
        Ok((!self.sees_all().await?).then_some(self.actor.on_behalf_of))
    }

    /// The access to the other tenant's record, if that tenant has granted this permission.
    async fn find_shared_tenant(&self, id: Uuid, permission: RequiredPermission) -> Result<Option<RowAccess>> {
        if self.actor().await?.reads_only_own_calls {
            return Ok(None);
        }
        let home: Option<Uuid> = sqlx::query_scalar("SELECT find_shared_tenant($1, $2, $3)")
            .bind(id)
            .bind(self.actor.on_behalf_of)
            .bind(permission.actions())
            .fetch_one(self.begin().await?.connection())
            .await?;
        // The write counts toward the quota of the record's tenant.
        if let (RequiredPermission::Update, Some(home)) = (permission, home) {
            self.load_quotas(home).await?;
        }
        let principal = Principal::Guest { agent: self.actor.on_behalf_of, tenant: self.owner_id };
        Ok(home.map(|owner_id| RowAccess { owner_id, principal, permission }))
    }

    /// The agent whose shared records are in lists. `None` for a runner: it acts on what it reads,
    /// and only in its own tenant.
    async fn shared_with(&self) -> Result<Option<Uuid>> {
        let reads_others = !self.actor.is_plain_runner() && !self.actor().await?.reads_only_own_calls;
        Ok((reads_others && self.store.shares.reach(self.owner_id)).then_some(self.actor.on_behalf_of))
    }

    fn context_reader(&self) -> Reader {
        Reader { tenant: self.owner_id, is_runner: self.actor.is_plain_runner() }
    }

    /// A request that the agent cannot see does not exist for it, even if the queue has it.
    async fn refuse_hidden(&self, request: Uuid) -> Result<()> {
        if self.sees_all().await? {
            return Ok(());
        }
        let mut tx = self.begin_for(RequiredPermission::Read).await?;
        let is_hidden: bool = sqlx::query_scalar("SELECT record_exists($1) AND NOT can_see_record($1)")
            .bind(request)
            .fetch_one(tx.connection())
            .await?;
        let is_own = !self.actor().await?.reads_only_own_calls || self.has_asked_for(request).await?;
        if is_hidden || !is_own { Err(StoreError::NotFound { what: "request", id: request }.into()) } else { Ok(()) }
    }

    /// Whether the call is one of the agent's own. Its request's record may be gone.
    async fn has_asked_for(&self, request: Uuid) -> Result<bool> {
        Ok(sqlx::query_scalar("SELECT EXISTS (SELECT FROM calls WHERE request = $1 AND agent_id = $2)")
            .bind(request)
            .bind(self.actor.on_behalf_of)
            .fetch_one(self.begin().await?.connection())
            .await?)
    }

    async fn load_quotas(&self, owner_id: Uuid) -> Result<()> {
        self.store.quotas.load(&self.store.database, owner_id).await
    }

    async fn begin_async_commit(&self) -> Result<TenantTransaction> {
        TenantTransaction::begin_with(&self.store.database, self.owner_id, Durability::AsyncCommit).await
    }
}

impl Breadcrumbs for TenantStore {
    fn on_behalf_of(&self, agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        if !self.actor.is_runner() {
            return Err(StoreError::Forbidden("only a runner can act on behalf of another agent".into()));
        }
        Ok(Arc::new(Self::of(self.store.clone(), self.owner_id, self.actor.on_behalf_of(agent))))
    }
}
