//! A tenant with a real store, a connector, and shortcuts to call tools.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, EventStream, Identity, Profile, Role, Tenancy, ToolDefinition,
    ToolFailure, schema_names,
};
use rcrt_executors::{BuiltinExecutor, Executor, ToolCall, ToolOutput};
use rcrt_jail::command::Helper;
use rcrt_mcp::{Connector, McpExecutor, ServerConfig, Servers, Settings, Status, server_record};
use rcrt_test_servers::network::Network;
use rcrt_test_tenant::Tenant;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub const PATIENCE: Duration = rcrt_test_servers::PATIENCE;
/// The shortest pause of the connector.
pub const FIRST_PAUSE: Duration = Duration::from_millis(50);

pub struct Fixture {
    pub tenant: Tenant,
    pub servers: Arc<Servers>,
    pub folder: TempDir,
    pub runner: Arc<dyn Breadcrumbs>,
    stop: CancellationToken,
    connector: JoinHandle<()>,
}

pub fn helper() -> Helper {
    Helper { program: env!("CARGO_BIN_EXE_mcp-jail-helper").into(), arguments: Vec::new() }
}

impl Fixture {
    /// The operator allows these hosts, which are on loopback.
    pub async fn with(network: Network) -> Self {
        Self::with_settings(network, |settings| settings).await
    }

    pub async fn with_settings(network: Network, change: impl FnOnce(Settings) -> Settings) -> Self {
        let tenant = Box::pin(Tenant::new()).await;
        let runner = acting(&tenant, tenant.runner, &[Role::Runner]);
        let folder = tempfile::tempdir().unwrap();
        let settings = Settings {
            first_pause: FIRST_PAUSE,
            longest_pause: Duration::from_millis(200),
            ..Settings::new(helper(), folder.path().join("mcp"))
        };
        let servers = Servers::new(runner.clone(), Arc::new(network.egress()), change(settings));
        let stop = CancellationToken::new();
        let connector = tokio::spawn(Connector::new(servers.clone()).run(stop.clone()));
        Self { tenant, servers, folder, runner, stop, connector }
    }

    /// With a server `fix` on this port.
    pub async fn with_http(port: u16) -> Self {
        let fixture = Self::with(Network::new().inside(&format!("mcp.test:{port}"))).await;
        fixture.add(http("fix", port)).await;
        fixture
    }

    /// An agent with these roles.
    pub async fn agent(&self, roles: &[Role]) -> Arc<dyn Breadcrumbs> {
        let name = Uuid::new_v4().to_string();
        let agent = rcrt_breadcrumb::NewAgent { name, roles: roles.to_vec(), profile: Profile::Main, tools: None };
        let agent = self.tenant.store.create_agent(self.tenant.owner, None, agent).await.unwrap().agent;
        acting(&self.tenant, agent.id, roles)
    }

    /// Adds a server, and waits until it is connected.
    pub async fn add(&self, config: ServerConfig) -> Uuid {
        let mut watch = self.watch().await;
        let id = self.create(&config).await;
        watch.status(|status| status.server == config.name && status.error.is_none()).await;
        id
    }

    pub async fn create(&self, config: &ServerConfig) -> Uuid {
        self.tenant.breadcrumbs.create(server_record(config), None).await.unwrap().id
    }

    pub async fn watch(&self) -> Watch {
        Watch { events: self.tenant.breadcrumbs.events(None).await.unwrap() }
    }

    pub async fn records(&self, schema: &str) -> Vec<BreadcrumbListItem> {
        let mut items = self.tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema(schema)).await.unwrap();
        items.sort_by_key(|item| item.id);
        items
    }

    /// The record of a tool.
    pub async fn tool(&self, name: &str) -> BreadcrumbListItem {
        let tools = self.records(schema_names::TOOL_V1).await;
        let names: Vec<String> = tools.iter().map(name_of).collect();
        tools.into_iter().find(|tool| name_of(tool) == name).unwrap_or_else(|| panic!("{name} is not in {names:?}"))
    }

    pub async fn call(&self, name: &str, input: Value) -> ToolCall {
        let context = self.tool(name).await.context.unwrap();
        let definition = ToolDefinition::read(schema_names::TOOL_V1, &context, None, None).unwrap();
        self.tenant.call(definition, input)
    }

    pub async fn execute(&self, call: ToolCall) -> ToolOutput {
        McpExecutor::new(self.servers.clone()).execute(call, CancellationToken::new()).await
    }

    pub async fn run(&self, name: &str, input: Value) -> Result<Value, ToolFailure> {
        let call = self.call(name, input).await;
        self.execute(call).await.result
    }

    /// Calls one of the management tools.
    pub async fn manage(&self, name: &str, input: Value) -> Result<Value, ToolFailure> {
        let call = self.tenant.call(rcrt_test_tenant::seeded(name), input);
        self.manage_as(call).await
    }

    pub async fn manage_as(&self, call: ToolCall) -> Result<Value, ToolFailure> {
        let executor = BuiltinExecutor::new().with(rcrt_mcp::tools(&self.servers));
        executor.execute(call, CancellationToken::new()).await.result
    }

    pub async fn stop(self) {
        self.stop.cancel();
        self.connector.await.unwrap();
    }
}

fn acting(tenant: &Tenant, agent_id: Uuid, roles: &[Role]) -> Arc<dyn Breadcrumbs> {
    let identity = Identity { owner_id: tenant.owner, agent_id, roles: roles.to_vec(), profile: Profile::Main };
    tenant.store.acting_as(identity)
}

pub fn name_of(item: &BreadcrumbListItem) -> String {
    item.context.as_ref().unwrap()["name"].as_str().unwrap().to_owned()
}

pub fn config(value: Value) -> ServerConfig {
    ServerConfig::read(value.as_object().unwrap()).unwrap()
}

pub fn http(name: &str, port: u16) -> ServerConfig {
    config(json!({"name": name, "transport": {"type": "http", "url": format!("http://mcp.test:{port}/mcp")}}))
}

/// Watches what is written.
pub struct Watch {
    events: EventStream,
}

impl Watch {
    async fn until<T>(&mut self, what: &str, mut is_it: impl FnMut(rcrt_breadcrumb::Event) -> Option<T>) -> T {
        let found = tokio::time::timeout(PATIENCE, async {
            loop {
                let event = self.events.next().await.unwrap().unwrap();
                if let Some(found) = is_it(Arc::unwrap_or_clone(event)) {
                    return found;
                }
            }
        });
        found.await.unwrap_or_else(|_| panic!("never came: {what}"))
    }

    /// Waits until a state like this is written.
    pub async fn status(&mut self, is_so: impl Fn(&Status) -> bool) -> Status {
        let read = |event: rcrt_breadcrumb::Event| {
            (event.schema_name.as_deref() == Some(schema_names::MCP_STATUS)).then_some(())?;
            serde_json::from_value::<Status>(Value::Object(event.context.into())).ok().filter(|status| is_so(status))
        };
        self.until("a state", read).await
    }

    /// Waits until a record of this schema is deleted.
    pub async fn deleted(&mut self, schema: &str) {
        let is_it = |event: rcrt_breadcrumb::Event| {
            let is_deleted = event.kind == rcrt_breadcrumb::EventKind::Deleted;
            (is_deleted && event.schema_name.as_deref() == Some(schema)).then_some(())
        };
        self.until("a deletion", is_it).await;
    }
}
