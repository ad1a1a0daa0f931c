//! The layer over a store with its own database, and helpers that build definitions.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{Identity, NewAgent, NewBreadcrumb, Profile, Role, Tenancy};
use rcrt_conformance::harness::object;
use rcrt_conformance::{Agent, Harness};
use rcrt_schemas::Schemas;
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use serde_json::{Value, json};
use uuid::Uuid;

pub struct LayerHarness {
    pub database: TestDatabase,
    store: Arc<Store>,
    pub schemas: Arc<Schemas>,
}

impl LayerHarness {
    pub async fn start() -> Self {
        Self::on(TestDatabase::new().await).await
    }

    async fn on(database: TestDatabase) -> Self {
        let options = StoreOptions {
            app_url: Some(database.app_url.clone()),
            acquire_timeout: Duration::from_mins(2),
            max_connections: 6,
            ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
        };
        let store = Store::open(options, &|_| {}).await.unwrap();
        // Tests hold checks for as long as they need, however slow the machine is.
        let schemas = Schemas::with_check_timeout(store.clone(), Duration::from_mins(10));
        Self { database, store, schemas }
    }

    /// Another server on the same database.
    pub async fn another(&self) -> Self {
        Self::on(self.database.clone()).await
    }

    pub async fn alone(&self) -> Agent {
        self.agent(self.tenant().await).await
    }

    /// The same agent's store, below the layer.
    pub fn below(&self, agent: &Agent) -> Agent {
        Agent { identity: agent.identity.clone(), store: self.store.acting_as(agent.identity.clone()) }
    }

    /// The same agent on this server.
    pub fn here(&self, agent: &Agent) -> Agent {
        Agent { identity: agent.identity.clone(), store: self.schemas.acting_as(agent.identity.clone()) }
    }
}

#[async_trait]
impl Harness for LayerHarness {
    async fn tenant(&self) -> Uuid {
        self.schemas.ensure_tenant(&format!("tenant {}", Uuid::new_v4())).await.unwrap().id
    }

    async fn agent_of(&self, tenant: Uuid, roles: &[Role], profile: Profile) -> Agent {
        let agent = NewAgent { name: format!("agent {}", Uuid::new_v4()), roles: roles.to_vec(), profile, tools: None };
        let made = self.schemas.create_agent(tenant, None, agent).await.unwrap().agent;
        let identity = Identity { owner_id: tenant, agent_id: made.id, roles: made.roles, profile: made.profile };
        Agent { store: self.schemas.acting_as(identity.clone()), identity }
    }

    async fn close(self) {
        self.schemas.close().await;
        self.store.close().await;
    }
}

/// A definition's record with this context.
pub fn definition(context: Value) -> NewBreadcrumb {
    NewBreadcrumb {
        title: "A definition".into(),
        schema_name: Some("schema.def.v1".into()),
        context: object(context),
        ..NewBreadcrumb::default()
    }
}

/// A definition of `note.v1`: a context with a number `n` of at least 1, and the given fields.
pub fn of_notes(more: Value) -> NewBreadcrumb {
    let mut context = object(json!({
        "schema_name": "note.v1",
        "schema": {"type": "object", "properties": {"n": {"type": "integer", "minimum": 1}}, "required": ["n"]}
    }));
    context.extend(object(more));
    definition(Value::Object(context))
}
