//! The store across tenants.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    AgentInfo, AgentRegistration, AgentStatus, Breadcrumbs, HygieneRun, HygieneStats, Identity, NewAgent, NewAgentKey,
    PublishRule, StoreError, Tenancy, TenantCount, TenantInfo, TenantQuotas, TenantUsage, TokenInfo, TokenQuery,
    TokenRecord, TokenRevocation, UnfinishedCalls, Violations, Webhooks,
};
use serde_json::Value;
use uuid::Uuid;

use crate::Store;
use crate::calls::stats;
use crate::database::failure::{Failure, Result, retrying};
use crate::database::from_row::from_row;
use crate::database::transaction::{Durability, TenantTransaction};
use crate::records::expiry;
use crate::rights::{agents, sessions, tokens};
use crate::tenant_store::TenantStore;

/// Why the last tenant is not deleted.
pub const ONLY_TENANT: &str = "is the only tenant; create another before you delete it";

from_row! {
    struct TenantRow {
        id: Uuid,
        name: String,
        created_at: DateTime<Utc>,
        publish: String,
    }
}

from_row! {
    struct PutRow {
        is_new: bool,
        ..tenant: TenantRow,
    }
}

impl From<TenantRow> for TenantInfo {
    fn from(row: TenantRow) -> Self {
        // A rule that this version does not know: the strictest one that it knows.
        let publish = row.publish.parse().unwrap_or(PublishRule::Curator);
        Self { id: row.id, name: row.name, created_at: row.created_at, publish }
    }
}

impl Store {
    async fn in_tenant(&self, owner_id: Uuid) -> Result<TenantTransaction> {
        TenantTransaction::begin(&self.inner.database, owner_id).await
    }

    async fn try_ensure_tenant(&self, name: &str) -> Result<TenantInfo> {
        let mut tx = self.inner.database.begin("BEGIN").await?;
        let row: TenantRow = sqlx::query_as("SELECT id, name, created_at, publish FROM ensure_tenant($1, $2)")
            .bind(Uuid::now_v7())
            .bind(name)
            .fetch_one(&mut *tx)
            .await?;
        tx.commit().await?;
        Ok(row.into())
    }

    async fn try_tenant(&self, id: Uuid) -> Result<Option<TenantInfo>> {
        let mut tx = self.inner.database.begin("BEGIN").await?;
        let row: Option<TenantRow> = sqlx::query_as("SELECT id, name, created_at, publish FROM find_tenant($1)")
            .bind(id)
            .fetch_optional(&mut *tx)
            .await?;
        Ok(row.map(TenantInfo::from))
    }

    async fn try_put_tenant(&self, id: Uuid, name: &str) -> Result<(TenantInfo, bool)> {
        let mut tx = self.inner.database.begin("BEGIN").await?;
        let row: Option<PutRow> =
            sqlx::query_as("SELECT id, name, created_at, publish, is_new FROM put_tenant($1, $2)")
                .bind(id)
                .bind(name)
                .fetch_optional(&mut *tx)
                .await
                .map_err(|error| {
                    let failure = Failure::from(error);
                    if failure.violates("tenants_name_key") {
                        Violations::one("name", "is the name of another tenant").into()
                    } else {
                        failure
                    }
                })?;
        let row = row.ok_or_else(|| Violations::one("id", "is the id of a tenant that was deleted; choose another"))?;
        tx.commit().await?;
        Ok((row.tenant.into(), row.is_new))
    }

    async fn try_delete_tenant(&self, id: Uuid) -> Result<()> {
        let mut tx = self.inner.database.begin("BEGIN").await?;
        let done: String = sqlx::query_scalar("SELECT delete_tenant($1)").bind(id).fetch_one(&mut *tx).await?;
        let why = match done.as_str() {
            "deleted" => return Ok(tx.commit().await?),
            "unknown" => return Err(StoreError::NotFound { what: "tenant", id }.into()),
            "last" => ONLY_TENANT,
            _ => "is a tenant with an active runner; stop the runner, and try again three minutes later",
        };
        Err(Violations::one("id", why).into())
    }

    async fn all_tenants(&self) -> Result<Vec<TenantInfo>> {
        let mut tx = self.inner.database.begin("BEGIN").await?;
        let rows: Vec<TenantRow> =
            sqlx::query_as("SELECT id, name, created_at, publish FROM all_tenants()").fetch_all(&mut *tx).await?;
        Ok(rows.into_iter().map(TenantInfo::from).collect())
    }
}

fn check_name(name: &str) -> Result<(), Violations> {
    if name.trim().is_empty() || name.chars().count() > 200 || name.contains('\0') {
        return Err(Violations::one("name", "must have 1 to 200 characters, none of them NUL"));
    }
    Ok(())
}

fn check_quotas(quotas: TenantQuotas) -> Result<(), Violations> {
    let mut found = Violations::default();
    for (field, bound) in quotas.fields() {
        if bound.is_some_and(|bound| bound > TenantQuotas::MOST) {
            found.add(format!("quotas.{field}"), format!("must be at most {}; 0 means no limit", TenantQuotas::MOST));
        }
    }
    found.into_result()
}

#[async_trait]
impl Tenancy for Store {
    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        Arc::new(TenantStore::new(self.inner.clone(), &identity))
    }

    async fn ensure_tenant(&self, name: &str) -> Result<TenantInfo, StoreError> {
        check_name(name)?;
        retrying!(self.try_ensure_tenant(name))
    }

    async fn tenant(&self, id: Uuid) -> Result<Option<TenantInfo>, StoreError> {
        Ok(self.try_tenant(id).await?)
    }

    async fn put_tenant(&self, id: Uuid, name: &str, cell: Option<&str>) -> Result<(TenantInfo, bool), StoreError> {
        check_name(name)?;
        if cell.is_some() {
            return Err(Violations::one("cell", "is for a server with several cells; leave it out").into());
        }
        retrying!(self.try_put_tenant(id, name))
    }

    async fn set_quotas(&self, id: Uuid, quotas: TenantQuotas) -> Result<(), StoreError> {
        check_quotas(quotas)?;
        retrying!(self.inner.quotas.set(&self.inner.database, id, quotas))
    }

    async fn set_publish(&self, id: Uuid, publish: PublishRule) -> Result<(), StoreError> {
        retrying!(self.inner.quotas.set_publish(&self.inner.database, id, publish))
    }

    async fn usage(&self, id: Uuid) -> Result<TenantUsage, StoreError> {
        if self.try_tenant(id).await?.is_none() {
            return Err(StoreError::NotFound { what: "tenant", id });
        }
        Ok(self.inner.quotas.usage(&self.inner.database, id).await?)
    }

    fn counted_tenants(&self) -> Vec<TenantCount> {
        self.inner.quotas.counted()
    }

    async fn unfinished_calls(&self) -> Result<Vec<UnfinishedCalls>, StoreError> {
        Ok(stats::unfinished(&self.inner.database).await?)
    }

    async fn delete_tenant(&self, id: Uuid) -> Result<(), StoreError> {
        retrying!(self.try_delete_tenant(id))?;
        self.inner.quotas.forget_deleted(|tenant| tenant != id);
        Ok(())
    }

    async fn put_agent(
        &self,
        owner_id: Uuid,
        by: Option<Uuid>,
        agent_id: Uuid,
        agent: AgentRegistration,
    ) -> Result<(AgentInfo, Option<String>), StoreError> {
        agents::check_registration(&agent)?;
        let put = retrying!(async { agents::put(self.in_tenant(owner_id).await?, by, agent_id, agent.clone()).await });
        self.inner.role_cache.forget((owner_id, agent_id));
        put
    }

    async fn tenants(&self) -> Result<Vec<TenantInfo>, StoreError> {
        Ok(self.all_tenants().await?)
    }

    async fn create_agent(&self, owner_id: Uuid, by: Option<Uuid>, agent: NewAgent) -> Result<NewAgentKey, StoreError> {
        agents::check(&agent)?;
        Ok(agents::create(self.in_tenant(owner_id).await?, by, agent).await?)
    }

    async fn rotate_agent_key(
        &self,
        owner_id: Uuid,
        by: Option<Uuid>,
        agent_id: Uuid,
    ) -> Result<NewAgentKey, StoreError> {
        Ok(agents::rotate_key(self.in_tenant(owner_id).await?, by, agent_id).await?)
    }

    async fn agents(&self, owner_id: Uuid) -> Result<Vec<AgentInfo>, StoreError> {
        Ok(agents::list(&mut self.in_tenant(owner_id).await?).await?)
    }

    async fn delete_agent(&self, owner_id: Uuid, by: Option<Uuid>, agent_id: Uuid) -> Result<(), StoreError> {
        agents::delete(self.in_tenant(owner_id).await?, by, agent_id).await?;
        self.inner.role_cache.forget((owner_id, agent_id));
        Ok(())
    }

    async fn agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Option<AgentInfo>, StoreError> {
        Ok(agents::find(&mut self.in_tenant(owner_id).await?, agent_id).await?)
    }

    async fn agent_by_key(&self, owner_id: Uuid, agent_id: Uuid, key: &str) -> Result<Option<AgentInfo>, StoreError> {
        Ok(agents::find_by_key(&mut self.in_tenant(owner_id).await?, agent_id, key).await?)
    }

    async fn agent_status(&self, owner_id: Uuid, agent_id: Uuid) -> Result<AgentStatus, StoreError> {
        Ok(tokens::agent_status(&mut self.in_tenant(owner_id).await?, agent_id).await?)
    }

    async fn revoke_tokens(&self, owner_id: Uuid, by: Uuid, revocation: TokenRevocation) -> Result<(), StoreError> {
        retrying!(async { tokens::revoke(self.in_tenant(owner_id).await?, by, revocation.clone()).await })
    }

    async fn record_tokens(&self, mut tokens: Vec<TokenRecord>) -> Result<(), StoreError> {
        tokens.sort_by_key(|token| (token.owner_id, token.id));
        for of_tenant in tokens.chunk_by(|a, b| a.owner_id == b.owner_id) {
            let Some(owner_id) = of_tenant.first().map(|token| token.owner_id) else { continue };
            let of_tenant: Vec<&TokenRecord> = of_tenant.iter().collect();
            let database = &self.inner.database;
            retrying!(async {
                let tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
                tokens::record(tx, &of_tenant).await
            })?;
        }
        Ok(())
    }

    async fn tokens(&self, owner_id: Uuid, query: &TokenQuery) -> Result<Vec<TokenInfo>, StoreError> {
        tokens::check_query(query)?;
        Ok(tokens::list(&mut self.in_tenant(owner_id).await?, query).await?)
    }

    async fn recently_changed_agents(&self) -> Result<Vec<(Uuid, Uuid, DateTime<Utc>)>, StoreError> {
        Ok(tokens::recently_changed_agents(&self.inner.database).await?)
    }

    async fn use_ticket(&self, owner_id: Uuid, ticket: Uuid, until: DateTime<Utc>) -> Result<bool, StoreError> {
        Ok(tokens::use_ticket(self.in_tenant(owner_id).await?, ticket, until).await?)
    }

    async fn kept_session(&self, owner_id: Uuid, agent_id: Uuid, id: &str) -> Result<Option<Value>, StoreError> {
        Ok(sessions::read(self.in_tenant(owner_id).await?, agent_id, id).await?)
    }

    async fn keep_session(&self, owner_id: Uuid, agent_id: Uuid, id: &str, state: &Value) -> Result<(), StoreError> {
        retrying!(async { sessions::keep(self.in_tenant(owner_id).await?, agent_id, id, state).await })
    }

    async fn end_session(&self, owner_id: Uuid, agent_id: Uuid, id: &str) -> Result<(), StoreError> {
        Ok(sessions::end(self.in_tenant(owner_id).await?, agent_id, id).await?)
    }

    async fn hygiene(&self, owner_id: Uuid) -> Result<HygieneStats, StoreError> {
        expiry::stats(&mut self.in_tenant(owner_id).await?).await
    }

    async fn run_hygiene(&self, owner_id: Uuid) -> Result<HygieneRun, StoreError> {
        Ok(expiry::run(&self.inner.database, owner_id, expiry::MANUAL_RUN_LIMIT, true).await?)
    }

    fn webhooks(&self) -> Arc<dyn Webhooks> {
        self.inner.webhooks.clone()
    }

    async fn ping(&self) -> Result<(), StoreError> {
        // A completed begin is a response of the database.
        self.inner.database.begin("BEGIN").await?;
        Ok(())
    }
}
