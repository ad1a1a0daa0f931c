//! Two cells, and tenants in them.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use rcrt_breadcrumb::{Identity, NewAgent, Profile, Role, StoreError, Tenancy};
use rcrt_cells::{CellError, Cells, HOME, Moved, OpenStore, add_cell, move_tenant};
use rcrt_conformance::harness::PATIENCE;
use rcrt_conformance::{Agent, Harness};
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

/// The name of the second cell.
pub const EAST: &str = "east";

pub struct CellsHarness {
    /// The URLs of the databases, as the tables' owner.
    pub home: String,
    pub east: String,
    pub first: Arc<Store>,
    pub cells: Arc<Cells>,
}

impl CellsHarness {
    pub async fn start() -> Self {
        Self::with_east(TestDatabase::new().await.admin_url).await
    }

    pub async fn with_east(east: String) -> Self {
        let home = TestDatabase::new().await.admin_url;
        add_cell(&home, EAST, &east, &|_| {}).await.unwrap();
        let first = open_store(home.clone()).await;
        let cells = Cells::open(first.clone(), &home, opener()).await.unwrap().expect("a second cell");
        Self { home, east, first, cells }
    }

    /// Another server on the same databases.
    pub async fn another(&self) -> Self {
        let first = open_store(self.home.clone()).await;
        let cells = Cells::open(first.clone(), &self.home, opener()).await.unwrap().expect("a second cell");
        Self { home: self.home.clone(), east: self.east.clone(), first, cells }
    }

    /// A new tenant with an agent in the first cell.
    pub async fn at_home(&self) -> Agent {
        let tenant = self.cells.ensure_tenant(&format!("tenant {}", Uuid::new_v4())).await.unwrap().id;
        self.agent(tenant).await
    }

    pub async fn move_to(&self, tenant: Uuid, cell: &str) -> Result<Option<Moved>, CellError> {
        loop {
            // A move whose future was dropped holds its lock until the server has noticed.
            match move_tenant(&self.home, &tenant.to_string(), cell, &|_| {}).await {
                Err(CellError::Busy) => tokio::time::sleep(Duration::from_millis(5)).await,
                done => return done,
            }
        }
    }

    /// The same agent on this server.
    pub fn here(&self, agent: &Agent) -> Agent {
        Agent { identity: agent.identity.clone(), store: self.cells.acting_as(agent.identity.clone()) }
    }

    pub async fn admin(url: &str) -> PgConnection {
        PgConnection::connect(url).await.unwrap()
    }
}

pub fn opener() -> OpenStore {
    Box::new(|_name, url| async { Ok(open_store(url).await) }.boxed())
}

pub async fn open_store(url: String) -> Arc<Store> {
    let options = StoreOptions {
        max_connections: 6,
        acquire_timeout: PATIENCE,
        ..StoreOptions::new(url, SecretsKey::from_bytes([9; 32]))
    };
    Store::open(options, &|_| {}).await.unwrap()
}

/// Repeats what is refused while a tenant moves, or a server does not know yet that it has moved.
pub async fn available<T, F: Future<Output = Result<T, StoreError>>>(ask: impl Fn() -> F) -> Result<T, StoreError> {
    let asking = async {
        loop {
            match ask().await {
                Err(StoreError::Unavailable(_)) => tokio::time::sleep(Duration::from_millis(5)).await,
                done => return done,
            }
        }
    };
    tokio::time::timeout(PATIENCE, asking).await.expect("the tenant in time")
}

#[async_trait]
impl Harness for CellsHarness {
    /// In the second cell. Empty, so that its row and the directory are all that there is to move.
    async fn tenant(&self) -> Uuid {
        let name = format!("tenant {}", Uuid::new_v4());
        let id = self.cells.ensure_tenant(&name).await.unwrap().id;
        let (mut home, mut east) = (Self::admin(&self.home).await, Self::admin(&self.east).await);
        sqlx::query("INSERT INTO tenants (id, name) VALUES ($1, $2)")
            .bind(id)
            .bind(&name)
            .execute(&mut east)
            .await
            .unwrap();
        sqlx::query("INSERT INTO fenced_tenants VALUES ($1)").bind(id).execute(&mut home).await.unwrap();
        let entry = "WITH known AS (SELECT coalesce(max(version), 0) AS newest FROM tenant_cells)
            INSERT INTO tenant_cells (tenant, cell, version) SELECT $1, $2, newest + 1 FROM known";
        // Two tenants of a test at once would get the same version.
        let mut tx = home.begin().await.unwrap();
        sqlx::query("LOCK TABLE tenant_cells IN SHARE ROW EXCLUSIVE MODE").execute(&mut *tx).await.unwrap();
        sqlx::query(entry).bind(id).bind(EAST).execute(&mut *tx).await.unwrap();
        tx.commit().await.unwrap();
        id
    }

    async fn agent_of(&self, tenant: Uuid, roles: &[Role], profile: Profile) -> Agent {
        let agent = NewAgent { name: format!("agent {}", Uuid::new_v4()), roles: roles.to_vec(), profile, tools: None };
        let made = available(|| self.cells.create_agent(tenant, None, agent.clone())).await.unwrap().agent;
        let identity = Identity { owner_id: tenant, agent_id: made.id, roles: made.roles, profile: made.profile };
        Agent { store: self.cells.acting_as(identity.clone()), identity }
    }

    async fn close(self) {
        self.cells.close().await;
        self.first.close().await;
    }
}

/// The cell in which the operator's list has the tenant.
pub async fn cell_of(home: &str, tenant: Uuid, name: &str) -> String {
    let cells = rcrt_cells::cells(home).await.unwrap();
    let mut with = cells.into_iter().filter(|cell| cell.tenants.iter().any(|one| one == name));
    let cell = with.next().unwrap_or_else(|| panic!("{tenant} is in no cell"));
    assert!(with.next().is_none() && (cell.url.is_none() == (cell.name == HOME)));
    cell.name
}
