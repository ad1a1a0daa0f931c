//! A tenant with a real store, and calls in it.

use std::collections::BTreeMap;
use std::sync::Arc;

use breadcrumb::{
    Breadcrumb, Breadcrumbs, Identity, NewAgent, Role, Tenancy, ToolDefinition, ToolRequest, schema_names,
};
use executors::{Chain, ToolCall};
use serde_json::{Value, json};
use store::{SecretsKey, Store, StoreOptions};
use test_database::TestDatabase;
use uuid::Uuid;

pub struct Tenant {
    pub store: Arc<Store>,
    pub owner: Uuid,
    pub agent: Uuid,
    pub breadcrumbs: Arc<dyn Breadcrumbs>,
}

impl Tenant {
    pub async fn new() -> Self {
        let database = TestDatabase::new().await;
        let options = StoreOptions {
            app_url: Some(database.app_url.clone()),
            ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([7; 32]))
        };
        let store = Store::open(options, &|_| {}).await.unwrap();
        let owner = store.ensure_tenant("test").await.unwrap().id;
        let agent = NewAgent { name: "runner".into(), roles: Role::ALL.to_vec() };
        let agent = store.create_agent(owner, agent).await.unwrap().agent;
        let identity = Identity { owner_id: owner, agent_id: agent.id, roles: agent.roles };
        let breadcrumbs = store.acting_as(identity);
        Self { store, owner, agent: agent.id, breadcrumbs }
    }

    pub fn call(&self, definition: ToolDefinition, input: Value) -> ToolCall {
        ToolCall {
            owner_id: self.owner,
            tool_id: Uuid::new_v4(),
            tool_version: 1,
            limits: definition.limits,
            definition: Arc::new(definition),
            request: ToolRequest {
                id: Uuid::new_v4(),
                request_id: "r1".into(),
                tool: "tool".into(),
                input: input.clone(),
                workspace: None,
                agent_id: None,
                trigger_event: None,
            },
            input,
            secrets: BTreeMap::new(),
            breadcrumbs: self.breadcrumbs.clone(),
            chain: Chain::default(),
        }
    }

    pub async fn get(&self, id: &Value) -> Breadcrumb {
        self.breadcrumbs.get(id.as_str().unwrap().parse().unwrap()).await.unwrap()
    }
}

/// A tool's definition; what is given stands beside a name.
pub fn native(implementation: Value, required_secrets: &[&str]) -> ToolDefinition {
    let context = json!({"name": "web", "implementation": implementation, "required_secrets": required_secrets});
    ToolDefinition::read(schema_names::TOOL_LEGACY, context.as_object().unwrap(), None, None).unwrap()
}

pub fn code(permissions: Value, required_secrets: &[&str]) -> ToolDefinition {
    let context = json!({
        "name": "coded",
        "code": {"language": "javascript", "source": ""},
        "permissions": permissions,
        "required_secrets": required_secrets,
    });
    ToolDefinition::read(schema_names::TOOL_CODE, context.as_object().unwrap(), None, None).unwrap()
}
