//! The layer as a [`Tenancy`]. Every method of the trait must be forwarded here.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    AgentInfo, AgentRegistration, AgentStatus, Breadcrumbs, HygieneRun, HygieneStats, Identity, NewAgent, NewAgentKey,
    StoreError, Tenancy, TenantCount, TenantInfo, TenantQuotas, TenantUsage, TokenRevocation, Webhooks,
};
use uuid::Uuid;

use crate::Schemas;
use crate::layer::Layer;

#[async_trait]
impl Tenancy for Schemas {
    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        let inner = self.inner.acting_as(identity.clone());
        Arc::new(Layer { inner, identity, definitions: self.definitions.clone() })
    }

    async fn ensure_tenant(&self, name: &str) -> Result<TenantInfo, StoreError> {
        self.inner.ensure_tenant(name).await
    }

    async fn tenants(&self) -> Result<Vec<TenantInfo>, StoreError> {
        self.inner.tenants().await
    }

    async fn tenant(&self, id: Uuid) -> Result<Option<TenantInfo>, StoreError> {
        self.inner.tenant(id).await
    }

    async fn put_tenant(&self, id: Uuid, name: &str) -> Result<(TenantInfo, bool), StoreError> {
        self.inner.put_tenant(id, name).await
    }

    async fn set_quotas(&self, id: Uuid, quotas: TenantQuotas) -> Result<(), StoreError> {
        self.inner.set_quotas(id, quotas).await
    }

    async fn usage(&self, id: Uuid) -> Result<TenantUsage, StoreError> {
        self.inner.usage(id).await
    }

    fn counted_tenants(&self) -> Vec<TenantCount> {
        self.inner.counted_tenants()
    }

    async fn delete_tenant(&self, id: Uuid) -> Result<(), StoreError> {
        self.inner.delete_tenant(id).await
    }

    async fn put_agent(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        agent: AgentRegistration,
    ) -> Result<(AgentInfo, Option<String>), StoreError> {
        self.inner.put_agent(owner_id, agent_id, agent).await
    }

    async fn create_agent(&self, owner_id: Uuid, agent: NewAgent) -> Result<NewAgentKey, StoreError> {
        self.inner.create_agent(owner_id, agent).await
    }

    async fn agents(&self, owner_id: Uuid) -> Result<Vec<AgentInfo>, StoreError> {
        self.inner.agents(owner_id).await
    }

    async fn delete_agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<(), StoreError> {
        self.inner.delete_agent(owner_id, agent_id).await
    }

    async fn agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Option<AgentInfo>, StoreError> {
        self.inner.agent(owner_id, agent_id).await
    }

    async fn agent_by_key(&self, owner_id: Uuid, agent_id: Uuid, key: &str) -> Result<Option<AgentInfo>, StoreError> {
        self.inner.agent_by_key(owner_id, agent_id, key).await
    }

    async fn agent_status(&self, owner_id: Uuid, agent_id: Uuid) -> Result<AgentStatus, StoreError> {
        self.inner.agent_status(owner_id, agent_id).await
    }

    async fn revoke_tokens(&self, owner_id: Uuid, by: Uuid, revocation: TokenRevocation) -> Result<(), StoreError> {
        self.inner.revoke_tokens(owner_id, by, revocation).await
    }

    async fn freshly_revoked(&self) -> Result<Vec<(Uuid, Uuid)>, StoreError> {
        self.inner.freshly_revoked().await
    }

    async fn use_ticket(&self, owner_id: Uuid, ticket: Uuid, until: DateTime<Utc>) -> Result<bool, StoreError> {
        self.inner.use_ticket(owner_id, ticket, until).await
    }

    async fn hygiene(&self, owner_id: Uuid) -> Result<HygieneStats, StoreError> {
        self.inner.hygiene(owner_id).await
    }

    async fn run_hygiene(&self, owner_id: Uuid) -> Result<HygieneRun, StoreError> {
        self.inner.run_hygiene(owner_id).await
    }

    fn webhooks(&self) -> Arc<dyn Webhooks> {
        self.inner.webhooks()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        self.inner.ping().await
    }
}
