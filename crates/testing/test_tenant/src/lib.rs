//! A tenant with a real store and calls in it, a store that fails on request, work beside a test,
//! and golden files: texts that are compared with files. For tests only.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::needless_pass_by_value)]

mod background;
mod failing_store;
mod golden;

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{
    Breadcrumb, Breadcrumbs, Identity, NewAgent, Role, Tenancy, ToolDefinition, ToolRequest, schema_names,
};
use rcrt_egress::Vault;
use rcrt_executors::{ToolCall, TriggerChain};
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use serde_json::{Value, json};
use uuid::Uuid;

pub use background::Background;
pub use failing_store::{FailingStore, Gate, Stop};
pub use golden::golden;

pub struct Tenant {
    pub store: Arc<Store>,
    pub owner: Uuid,
    pub agent: Uuid,
    pub breadcrumbs: Arc<dyn Breadcrumbs>,
    /// The agent of the runner.
    pub runner: Uuid,
    /// What tools get: the runner, acting on behalf of the agent.
    for_tools: Arc<dyn Breadcrumbs>,
}

impl Tenant {
    pub async fn new() -> Self {
        let database = TestDatabase::new().await;
        let options = StoreOptions {
            app_url: Some(database.app_url.clone()),
            acquire_timeout: Duration::from_mins(2),
            ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([7; 32]))
        };
        let store = Store::open(options, &|_| {}).await.unwrap();
        let owner = store.ensure_tenant("test").await.unwrap().id;
        let profile = rcrt_breadcrumb::Profile::Main;
        let agent = NewAgent { name: "runner".into(), roles: Role::ALL.to_vec(), profile, tools: None };
        let agent = store.create_agent(owner, None, agent).await.unwrap().agent;
        let identity = Identity { owner_id: owner, agent_id: agent.id, roles: agent.roles, profile };
        let breadcrumbs = store.acting_as(identity);
        let runner = NewAgent { name: "tools".into(), roles: vec![Role::Runner], profile, tools: None };
        let runner = store.create_agent(owner, None, runner).await.unwrap().agent;
        let identity = Identity { owner_id: owner, agent_id: runner.id, roles: runner.roles, profile };
        let for_tools = store.acting_as(identity).on_behalf_of(agent.id).unwrap();
        Self { store, owner, agent: agent.id, breadcrumbs, runner: runner.id, for_tools }
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
                ..ToolRequest::default()
            },
            input,
            secrets: Arc::new(Vault::default()),
            breadcrumbs: self.for_tools.clone(),
            profiles: rcrt_breadcrumb::Profiles::default(),
            progress: Arc::new(rcrt_executors::DiscardProgress),
            deadline: None,
            child_calls: Arc::new(rcrt_executors::Unhosted),
            finder: Arc::new(rcrt_executors::FindsNothing),
            effect_gate: rcrt_executors::EffectGate::opened(),
            chain: TriggerChain::default(),
            debug: None,
        }
    }

    pub async fn get(&self, id: &Value) -> Breadcrumb {
        self.breadcrumbs.get(id.as_str().unwrap().parse().unwrap()).await.unwrap()
    }
}

/// A definition of a native tool named `web`.
pub fn native(implementation: Value, required_secrets: &[&str]) -> ToolDefinition {
    let context = json!({"name": "web", "implementation": implementation, "required_secrets": required_secrets});
    ToolDefinition::read(schema_names::TOOL_V1, context.as_object().unwrap(), None, None).unwrap()
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

/// The definition of a builtin tool, as its seed would have it.
pub fn builtin(tool: &str) -> ToolDefinition {
    let context = json!({"name": tool, "implementation": {"type": "builtin", "tool": tool}});
    ToolDefinition::read(schema_names::TOOL_V1, context.as_object().unwrap(), None, None).unwrap()
}

/// The definition of a builtin tool from its seed in `bootstrap-breadcrumbs/tools-native`.
pub fn seeded(tool: &str) -> ToolDefinition {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bootstrap-breadcrumbs/tools-native");
    let text = std::fs::read_to_string(folder.join(format!("{tool}.json"))).unwrap();
    let record: rcrt_breadcrumb::NewBreadcrumb = serde_json::from_str(&text).unwrap();
    let schema = record.schema_name.unwrap();
    ToolDefinition::read(&schema, &record.context, record.description.as_deref(), None).unwrap()
}
