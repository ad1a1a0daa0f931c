//! The cells as one [`Tenancy`].

use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::future::join_all;
use rcrt_breadcrumb::{
    AgentInfo, AgentRegistration, AgentStatus, Breadcrumbs, HygieneRun, HygieneStats, Identity, NewAgent, NewAgentKey,
    PublishRule, StoreError, Tenancy, TenancyDecorator, TenantCount, TenantInfo, TenantQuotas, TenantUsage, TokenInfo,
    TokenQuery, TokenRecord, TokenRevocation, UnfinishedCalls, Violations, Webhooks,
};
use rcrt_store::{ONLY_TENANT, Store};
use serde_json::Value;
use uuid::Uuid;

use crate::in_cell::InCell;
use crate::moving::SETTLE;
use crate::webhooks::CellWebhooks;
use crate::{Cells, HOME, directory};

type Result<T> = std::result::Result<T, StoreError>;

impl Cells {
    /// The cell in which a tenant with this id would begin. `None`: in the first, or the tenant
    /// exists.
    async fn cell_of_new(&self, id: Uuid, named: Option<&str>) -> Result<Option<String>> {
        if self.routes.home.tenant(id).await?.is_some() {
            let present = self.routes.cell(id);
            return match named {
                Some(named) if named != present => {
                    let what = format!(
                        "is where a new tenant begins; this one is in {present}, and `rcrt cell move` moves it"
                    );
                    Err(Violations::one("cell", what).into())
                }
                _ => Ok(None),
            };
        }
        let cell = match named {
            Some(named) => named.to_owned(),
            None => of_directory(directory::default_cell(&self.directory).await)?,
        };
        if cell == HOME {
            return Ok(None);
        }
        let cells = of_directory(directory::cells(&self.directory).await)?;
        if !cells.iter().any(|(name, _)| *name == cell) {
            let what = format!("is {cell:?}, and there is no such cell; `rcrt cell list` shows them");
            return Err(Violations::one("cell", what).into());
        }
        self.routes.opened(&cell).await?;
        Ok(Some(cell))
    }

    /// Does something while the tenant stays where it is, and this process knows where that is.
    /// A change of `tenants` needs that, because no trigger refuses it during a move, and so does a
    /// deletion, which would miss the rows in the new cell.
    async fn settled<T: Send>(&self, id: Uuid, work: impl Future<Output = Result<T>> + Send) -> Result<T> {
        let moves = || StoreError::Unavailable("the tenant moves to another cell".into());
        let mut held = of_directory(directory::without_moves(&self.locks, id).await)?.ok_or_else(moves)?;
        let entry = of_directory(directory::entry(&mut held, id).await)?;
        // A move that was interrupted is finished or undone first.
        if entry.as_ref().is_some_and(|entry| entry.moving_to.is_some() || entry.moved_from.is_some()) {
            return Err(moves());
        }
        self.routes.entered(id, entry.as_ref().map_or(HOME, |entry| &entry.cell)).await?;
        let done = work.await;
        // Its end says only that the lock is free.
        let _ = held.rollback().await;
        done
    }

    /// Lets a tenant without records begin in this cell.
    async fn place(&self, id: Uuid, cell: &str) -> Result<()> {
        of_directory(directory::place(&self.directory, id, cell).await)?;
        // Then its first agent is known to every server.
        tokio::time::sleep(SETTLE).await;
        self.routes.entered(id, cell).await
    }

    fn store(&self, tenant: Uuid) -> Result<Arc<Store>> {
        self.routes.store(tenant)
    }

    /// The store of a tenant that is not at home.
    fn elsewhere(&self, tenant: Uuid) -> Result<Option<Arc<Store>>> {
        let store = self.store(tenant)?;
        Ok((!Arc::ptr_eq(&store, &self.routes.home)).then_some(store))
    }
}

fn of_directory<T>(answer: std::result::Result<T, sqlx::Error>) -> Result<T> {
    answer.map_err(|error| {
        tracing::warn!(%error, "the directory of cells does not respond");
        StoreError::Unavailable("the directory of cells cannot be reached".into())
    })
}

/// What all cells that respond have. A cell that does not respond is missing, and logged. An error
/// if none responds.
fn joined<T>(answers: Vec<Result<Vec<T>>>) -> Result<Vec<T>> {
    let mut all = Vec::new();
    let (mut failed, mut has_one) = (None, false);
    for answer in answers {
        match answer {
            Ok(some) => {
                has_one = true;
                all.extend(some);
            }
            Err(error) => {
                tracing::warn!(%error, "a cell does not respond");
                failed = Some(error);
            }
        }
    }
    failed.filter(|_| !has_one).map_or(Ok(all), Err)
}

/// Names and ids of tenants are those of the first cell, which has all of them.
#[async_trait]
impl TenancyDecorator for Cells {
    fn inner(&self) -> &dyn Tenancy {
        &*self.routes.home
    }

    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        Arc::new(InCell::new(self.routes.clone(), identity))
    }

    async fn tenant(&self, id: Uuid) -> Result<Option<TenantInfo>> {
        self.store(id)?.tenant(id).await
    }

    async fn put_tenant(&self, id: Uuid, name: &str, cell: Option<&str>) -> Result<(TenantInfo, bool)> {
        let cell = self.cell_of_new(id, cell).await?;
        let putting = async {
            let put = self.routes.home.put_tenant(id, name, None).await?;
            if let Some(cell) = cell
                && put.1
            {
                self.place(id, &cell).await?;
            }
            match self.elsewhere(id)? {
                Some(store) => store.put_tenant(id, name, None).await,
                None => Ok(put),
            }
        };
        self.settled(id, Box::pin(putting)).await
    }

    async fn set_quotas(&self, id: Uuid, quotas: TenantQuotas) -> Result<()> {
        self.settled(id, async { self.store(id)?.set_quotas(id, quotas).await }).await
    }

    async fn set_publish(&self, id: Uuid, publish: PublishRule) -> Result<()> {
        self.settled(id, async {
            if let Some(store) = self.elsewhere(id)? {
                store.set_publish(id, publish).await?;
            }
            // The list of tenants shows this one.
            self.routes.home.set_publish(id, publish).await
        })
        .await
    }

    async fn usage(&self, id: Uuid) -> Result<TenantUsage> {
        self.store(id)?.usage(id).await
    }

    async fn delete_tenant(&self, id: Uuid) -> Result<()> {
        self.settled(id, async {
            if let Some(store) = self.elsewhere(id)? {
                // Only the first cell knows of the others, and it is asked last.
                if self.routes.home.tenants().await?.iter().all(|tenant| tenant.id == id) {
                    return Err(Violations::one("id", ONLY_TENANT).into());
                }
                match store.delete_tenant(id).await {
                    // A repetition after it was interrupted here, or refused in the first cell:
                    // another deletion had left this tenant as the only one.
                    Ok(()) | Err(StoreError::NotFound { .. }) => {}
                    Err(error) => return Err(error),
                }
            }
            self.routes.home.delete_tenant(id).await
        })
        .await
    }

    async fn put_agent(
        &self,
        owner_id: Uuid,
        by: Option<Uuid>,
        agent_id: Uuid,
        agent: AgentRegistration,
    ) -> Result<(AgentInfo, Option<String>)> {
        self.store(owner_id)?.put_agent(owner_id, by, agent_id, agent).await
    }

    async fn create_agent(&self, owner_id: Uuid, by: Option<Uuid>, agent: NewAgent) -> Result<NewAgentKey> {
        self.store(owner_id)?.create_agent(owner_id, by, agent).await
    }

    async fn agents(&self, owner_id: Uuid) -> Result<Vec<AgentInfo>> {
        self.store(owner_id)?.agents(owner_id).await
    }

    async fn rotate_agent_key(&self, owner_id: Uuid, by: Option<Uuid>, agent_id: Uuid) -> Result<NewAgentKey> {
        self.store(owner_id)?.rotate_agent_key(owner_id, by, agent_id).await
    }

    async fn delete_agent(&self, owner_id: Uuid, by: Option<Uuid>, agent_id: Uuid) -> Result<()> {
        self.store(owner_id)?.delete_agent(owner_id, by, agent_id).await
    }

    async fn agent(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Option<AgentInfo>> {
        self.store(owner_id)?.agent(owner_id, agent_id).await
    }

    async fn agent_by_key(&self, owner_id: Uuid, agent_id: Uuid, key: &str) -> Result<Option<AgentInfo>> {
        self.store(owner_id)?.agent_by_key(owner_id, agent_id, key).await
    }

    async fn agent_status(&self, owner_id: Uuid, agent_id: Uuid) -> Result<AgentStatus> {
        self.store(owner_id)?.agent_status(owner_id, agent_id).await
    }

    async fn revoke_tokens(&self, owner_id: Uuid, by: Uuid, revocation: TokenRevocation) -> Result<()> {
        self.store(owner_id)?.revoke_tokens(owner_id, by, revocation).await
    }

    async fn record_tokens(&self, mut tokens: Vec<TokenRecord>) -> Result<()> {
        tokens.sort_by_key(|token| token.owner_id);
        let mut recorded = Ok(());
        for of_tenant in tokens.chunk_by(|a, b| a.owner_id == b.owner_id) {
            let Some(first) = of_tenant.first() else { continue };
            // The others are recorded even if this cell does not respond.
            let done = match self.store(first.owner_id) {
                Ok(store) => store.record_tokens(of_tenant.to_vec()).await,
                Err(error) => Err(error),
            };
            recorded = recorded.and(done);
        }
        recorded
    }

    async fn tokens(&self, owner_id: Uuid, query: &TokenQuery) -> Result<Vec<TokenInfo>> {
        self.store(owner_id)?.tokens(owner_id, query).await
    }

    async fn recently_changed_agents(&self) -> Result<Vec<(Uuid, Uuid, DateTime<Utc>)>> {
        let stores = self.routes.all();
        joined(join_all(stores.iter().map(|store| store.recently_changed_agents())).await)
    }

    async fn use_ticket(&self, owner_id: Uuid, ticket: Uuid, until: DateTime<Utc>) -> Result<bool> {
        self.store(owner_id)?.use_ticket(owner_id, ticket, until).await
    }

    async fn kept_session(&self, owner_id: Uuid, agent_id: Uuid, id: &str) -> Result<Option<Value>> {
        self.store(owner_id)?.kept_session(owner_id, agent_id, id).await
    }

    async fn keep_session(&self, owner_id: Uuid, agent_id: Uuid, id: &str, state: &Value) -> Result<()> {
        self.store(owner_id)?.keep_session(owner_id, agent_id, id, state).await
    }

    async fn end_session(&self, owner_id: Uuid, agent_id: Uuid, id: &str) -> Result<()> {
        self.store(owner_id)?.end_session(owner_id, agent_id, id).await
    }

    async fn hygiene(&self, owner_id: Uuid) -> Result<HygieneStats> {
        self.store(owner_id)?.hygiene(owner_id).await
    }

    async fn run_hygiene(&self, owner_id: Uuid) -> Result<HygieneRun> {
        self.store(owner_id)?.run_hygiene(owner_id).await
    }

    async fn unfinished_calls(&self) -> Result<Vec<UnfinishedCalls>> {
        let stores = self.routes.all();
        joined(join_all(stores.iter().map(|store| store.unfinished_calls())).await)
    }

    /// A server is ready while one cell responds: the tenants of the others get errors of their
    /// own.
    async fn ping(&self) -> Result<()> {
        let stores = self.routes.all();
        let answers =
            join_all(stores.iter().map(|store| async move { store.ping().await.map(|()| Vec::<()>::new()) })).await;
        joined(answers).map(|_| ())
    }

    fn counted_tenants(&self) -> Vec<TenantCount> {
        self.routes.all().iter().flat_map(|store| store.counted_tenants()).collect()
    }

    fn webhooks(&self) -> Arc<dyn Webhooks> {
        Arc::new(CellWebhooks::new(self.routes.clone()))
    }
}
