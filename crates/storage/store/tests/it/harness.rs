//! A store on its own database.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{Breadcrumbs, Identity, NewAgent, Profile, Role, Tenancy};
use rcrt_conformance::harness::PATIENCE;
use rcrt_conformance::{Agent, Harness};
use rcrt_store::{ContextReadLimits, SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

pub struct StoreHarness {
    pub database: TestDatabase,
    pub store: Arc<Store>,
}

impl StoreHarness {
    pub async fn start() -> Self {
        Self::with(|options| options).await
    }

    /// Reads with conditions on the context have these limits.
    pub async fn with_connections(max_connections: u32, context_reads: ContextReadLimits) -> Self {
        Self::with(|options| StoreOptions { max_connections, context_reads, ..options }).await
    }

    /// A store that sweeps only when asked. A sweep skips what another one has locked, so a test
    /// that asks for a sweep must be the only one.
    pub async fn without_sweeps() -> Self {
        Self::with(|options| StoreOptions { sweeps: false, ..options }).await
    }

    pub async fn with(set: impl FnOnce(StoreOptions) -> StoreOptions) -> Self {
        let database = TestDatabase::new().await;
        let store = open_with(&database, set).await;
        Self { database, store }
    }

    /// The owner of the tables, who sees every tenant's rows.
    pub async fn admin(&self) -> PgConnection {
        PgConnection::connect(&self.database.admin_url).await.unwrap()
    }

    /// An agent in its own tenant.
    pub async fn alone(&self) -> Agent {
        self.agent(self.tenant().await).await
    }
}

pub async fn open(database: &TestDatabase) -> Arc<Store> {
    open_with(database, |options| options).await
}

pub async fn open_with(database: &TestDatabase, set: impl FnOnce(StoreOptions) -> StoreOptions) -> Arc<Store> {
    let options = StoreOptions {
        app_url: Some(database.app_url.clone()),
        acquire_timeout: PATIENCE,
        ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
    };
    Store::open(set(options), &|_| {}).await.unwrap()
}

#[async_trait]
impl Harness for StoreHarness {
    async fn tenant(&self) -> Uuid {
        self.store.ensure_tenant(&format!("tenant {}", Uuid::new_v4())).await.unwrap().id
    }

    async fn agent_of(&self, tenant: Uuid, roles: &[Role], profile: Profile) -> Agent {
        let agent = NewAgent { name: format!("agent {}", Uuid::new_v4()), roles: roles.to_vec(), profile, tools: None };
        let made = self.store.create_agent(tenant, None, agent).await.unwrap().agent;
        let identity = Identity { owner_id: tenant, agent_id: made.id, roles: made.roles, profile: made.profile };
        let store: Arc<dyn Breadcrumbs> = self.store.acting_as(identity.clone());
        Agent { identity, store }
    }

    async fn close(self) {
        self.store.close().await;
    }
}
