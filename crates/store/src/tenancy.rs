//! The store across tenants.

use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::{
    AgentInfo, Breadcrumbs, HygieneRun, HygieneStats, Identity, NewAgent, NewAgentKey, StoreError, Tenancy, TenantInfo,
    Violations, Webhooks,
};
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::Store;
use crate::agents;
use crate::expiry;
use crate::failure::{Done, retrying};
use crate::from_row::from_row;
use crate::tenant_store::TenantStore;
use crate::transaction::TenantTransaction;
use crate::webhooks::WebhookStore;

from_row! {
    struct TenantRow {
        id: Uuid,
        name: String,
        created_at: DateTime<Utc>,
    }
}

impl From<TenantRow> for TenantInfo {
    fn from(row: TenantRow) -> Self {
        Self { id: row.id, name: row.name, created_at: row.created_at }
    }
}

impl Store {
    async fn in_tenant(&self, owner_id: Uuid) -> Done<TenantTransaction> {
        TenantTransaction::begin(&self.inner, owner_id).await
    }

    async fn try_ensure_tenant(&self, name: &str) -> Done<TenantInfo> {
        let mut tx = self.inner.begin("BEGIN").await?;
        let row: TenantRow = sqlx::query_as("SELECT id, name, created_at FROM ensure_tenant($1, $2)")
            .bind(Uuid::now_v7())
            .bind(name)
            .fetch_one(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(row.into())
    }

    async fn all_tenants(&self) -> Done<Vec<TenantInfo>> {
        let mut tx = self.inner.begin("BEGIN").await?;
        let rows: Vec<TenantRow> =
            sqlx::query_as("SELECT id, name, created_at FROM all_tenants()").fetch_all(&mut *tx).await?;
        Ok(rows.into_iter().map(TenantInfo::from).collect())
    }
}

#[async_trait]
impl Tenancy for Store {
    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        Arc::new(TenantStore::new(self.inner.clone(), &identity))
    }

    async fn ensure_tenant(&self, name: &str) -> Result<TenantInfo, StoreError> {
        if name.trim().is_empty() || name.chars().count() > 200 || name.contains('\0') {
            return Err(Violations::one("name", "must have 1 to 200 characters, none of them NUL").into());
        }
        retrying!(self.try_ensure_tenant(name))
    }

    async fn tenants(&self) -> Result<Vec<TenantInfo>, StoreError> {
        Ok(self.all_tenants().await?)
    }

    async fn create_agent(&self, owner_id: Uuid, agent: NewAgent) -> Result<NewAgentKey, StoreError> {
        agents::check(&agent)?;
        Ok(agents::create(self.in_tenant(owner_id).await?, agent).await?)
    }

    async fn agents(&self, owner_id: Uuid) -> Result<Vec<AgentInfo>, StoreError> {
        Ok(agents::list(&mut self.in_tenant(owner_id).await?).await?)
    }

    async fn delete_agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<(), StoreError> {
        Ok(agents::delete(self.in_tenant(owner_id).await?, agent_id).await?)
    }

    async fn agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Option<AgentInfo>, StoreError> {
        Ok(agents::find(&mut self.in_tenant(owner_id).await?, agent_id).await?)
    }

    async fn agent_by_key(&self, owner_id: Uuid, agent_id: Uuid, key: &str) -> Result<Option<AgentInfo>, StoreError> {
        Ok(agents::find_by_key(&mut self.in_tenant(owner_id).await?, agent_id, key).await?)
    }

    async fn hygiene(&self, owner_id: Uuid) -> Result<HygieneStats, StoreError> {
        expiry::stats(&mut self.in_tenant(owner_id).await?).await
    }

    async fn run_hygiene(&self, owner_id: Uuid) -> Result<HygieneRun, StoreError> {
        Ok(expiry::run(&self.inner, owner_id, expiry::BY_HAND, true).await?)
    }

    fn webhooks(&self) -> Arc<dyn Webhooks> {
        Arc::new(WebhookStore(self.inner.clone()))
    }

    async fn ping(&self) -> Result<(), StoreError> {
        // The begin is an answer from the database.
        self.inner.begin("BEGIN").await?;
        Ok(())
    }
}
