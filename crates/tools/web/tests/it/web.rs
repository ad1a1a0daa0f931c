//! The tools as in a runner, with a small fake internet.

use std::sync::Arc;

use rcrt_breadcrumb::{AccessList, ToolFailure};
use rcrt_egress::{HeldSecret, Vault};
use rcrt_executors::{BuiltinExecutor, Executor, ToolCall, ToolOutput};
use rcrt_test_servers::network::Network;
use rcrt_test_servers::tls;
use rcrt_test_tenant::{Tenant, seeded};
use rcrt_web::Settings;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

pub struct Web {
    pub network: Network,
    pub settings: Settings,
    pub secrets: Vec<HeldSecret>,
    pub session: Option<String>,
    hosts: Vec<String>,
    tenant: Tenant,
}

impl Web {
    pub async fn new() -> Self {
        let mut network = Network::new();
        network.options.more_authorities = vec![tls::authority()];
        Self {
            network,
            settings: Settings::default(),
            secrets: Vec::new(),
            session: None,
            hosts: Vec::new(),
            tenant: Tenant::new().await,
        }
    }

    /// Maps a name to loopback. The operator and the tools' records allow it.
    pub fn inside(mut self, entry: &str) -> Self {
        self.network = self.network.inside(entry);
        self.hosts.push(entry.to_owned());
        self
    }

    /// The tools' records allow it, the operator does not.
    pub fn listed(mut self, entry: &str) -> Self {
        self.hosts.push(entry.to_owned());
        self
    }

    /// Maps a name to loopback. The operator allows it, the tools' records do not.
    pub fn unlisted(mut self, entry: &str) -> Self {
        self.network = self.network.inside(entry);
        self
    }

    pub fn secret(mut self, name: &str, value: &str, host: &str) -> Self {
        let hosts = vec![rcrt_breadcrumb::HostEntry::parse(host).unwrap()];
        self.secrets.push(HeldSecret { name: name.into(), value: value.into(), hosts, readable: false });
        self
    }

    pub fn store(&self) -> Arc<dyn rcrt_breadcrumb::Breadcrumbs> {
        self.tenant.breadcrumbs.clone()
    }

    pub fn executor(&self) -> BuiltinExecutor {
        BuiltinExecutor::new().with(rcrt_web::tools(Arc::new(self.network.egress()), self.settings.clone()))
    }

    pub fn call(&self, tool: &str, input: Value) -> ToolCall {
        let mut definition = seeded(tool);
        if !self.hosts.is_empty() {
            definition.permissions.net = AccessList::Listed(self.hosts.clone());
        }
        let mut call = self.tenant.call(definition, input);
        call.request.session.clone_from(&self.session);
        call.secrets = Arc::new(Vault::new(self.secrets.clone()).unwrap());
        call
    }

    pub async fn run(&self, tool: &str, input: Value) -> ToolOutput {
        self.executor().execute(self.call(tool, input), CancellationToken::new()).await
    }

    pub async fn text(&self, tool: &str, input: Value) -> String {
        match self.run(tool, input).await.result.unwrap() {
            Value::String(text) => text,
            other => panic!("{other} is not text"),
        }
    }

    pub async fn failure(&self, tool: &str, input: Value) -> ToolFailure {
        self.run(tool, input).await.result.unwrap_err()
    }
}
