//! A store, a server that can be stopped and started, and a proxy between client and server that
//! can misbehave.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use async_trait::async_trait;
use rcrt_breadcrumb::{Breadcrumbs, Identity, NewAgent, NewAgentKey, NewBreadcrumb, Profile, Role, Tenancy};
use rcrt_client::{Client, Credentials};
use rcrt_conformance::{Agent, Harness};
use rcrt_server::{AuthMode, Server, ServerOptions, TokenKey};
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use serde_json::json;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::proxy::Proxy;

pub struct ClientHarness {
    pub store: Arc<Store>,
    pub address: SocketAddr,
    pub key: TokenKey,
    front: Option<Front>,
    _database: TestDatabase,
}

struct Front {
    shutdown: CancellationToken,
    serving: JoinHandle<()>,
}

impl ClientHarness {
    pub async fn start() -> Self {
        let database = TestDatabase::new().await;
        let options = StoreOptions {
            app_url: Some(database.app_url.clone()),
            acquire_timeout: Duration::from_mins(2),
            max_connections: 6,
            ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
        };
        let store = Store::open(options, &|_| {}).await.unwrap();
        let key = TokenKey::from_bytes(&[1; 32]).unwrap();
        let any = "127.0.0.1:0".parse().unwrap();
        let mut harness = Self { store, address: any, key, front: None, _database: database };
        harness.start_server().await;
        harness
    }

    pub async fn start_server(&mut self) {
        let listener = TcpListener::bind(self.address).await.unwrap();
        self.address = listener.local_addr().unwrap();
        let options = ServerOptions::new(listener, AuthMode::Keys, self.key.clone());
        let server = Server::new(options, self.store.clone()).unwrap();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(server.run(shutdown.clone()));
        self.front = Some(Front { shutdown, serving });
    }

    pub async fn stop_server(&mut self) {
        if let Some(front) = self.front.take() {
            front.shutdown.cancel();
            front.serving.await.unwrap();
        }
    }

    pub async fn new_agent(&self, tenant: Uuid, roles: &[Role]) -> NewAgentKey {
        self.new_agent_of(tenant, roles, Profile::Main).await
    }

    async fn new_agent_of(&self, tenant: Uuid, roles: &[Role], profile: Profile) -> NewAgentKey {
        let agent = NewAgent { name: Uuid::new_v4().to_string(), roles: roles.to_vec(), profile, tools: None };
        self.store.create_agent(tenant, None, agent).await.unwrap()
    }

    pub fn token(&self, agent: &NewAgentKey, ttl: Duration) -> String {
        self.key.issue(&identity(agent), ttl).unwrap()
    }

    #[allow(clippy::unused_self)] // Reads better at the callers.
    pub fn client_at(&self, address: SocketAddr, agent: &NewAgentKey) -> Client {
        Client::new(format!("http://{address}").parse().unwrap(), by_key(agent))
    }

    /// A client for an agent with every role, through a proxy; and the store as this agent sees it.
    pub async fn behind_proxy(&self) -> (Client, Arc<dyn Breadcrumbs>, Proxy) {
        let agent = self.new_agent(self.tenant().await, &Role::ALL).await;
        let proxy = Proxy::start(self.address).await;
        (self.client_at(proxy.address, &agent), self.store.acting_as(identity(&agent)), proxy)
    }

    pub async fn close(mut self) {
        self.stop_server().await;
        self.store.close().await;
    }
}

pub fn identity(agent: &NewAgentKey) -> Identity {
    Identity {
        owner_id: agent.agent.owner_id,
        agent_id: agent.agent.id,
        roles: agent.agent.roles.clone(),
        profile: agent.agent.profile,
    }
}

pub fn by_key(agent: &NewAgentKey) -> Credentials {
    Credentials::AgentKey { owner_id: agent.agent.owner_id, agent_id: agent.agent.id, key: agent.agent_key.clone() }
}

pub fn note(title: impl Into<String>) -> NewBreadcrumb {
    NewBreadcrumb { title: title.into(), ..NewBreadcrumb::default() }
}

pub fn response(text: &str) -> NewBreadcrumb {
    let context = json!({"status": "success", "output": text});
    NewBreadcrumb {
        context: context.as_object().unwrap().clone(),
        schema_name: Some(rcrt_breadcrumb::schema_names::TOOL_RESPONSE.into()),
        ..note("a response")
    }
}

#[async_trait]
impl Harness for ClientHarness {
    async fn tenant(&self) -> Uuid {
        self.store.ensure_tenant(&Uuid::new_v4().to_string()).await.unwrap().id
    }

    async fn agent_of(&self, tenant: Uuid, roles: &[Role], profile: Profile) -> Agent {
        let agent = self.new_agent_of(tenant, roles, profile).await;
        Agent { identity: identity(&agent), store: Arc::new(self.client_at(self.address, &agent)) }
    }

    async fn close(self) {
        ClientHarness::close(self).await;
    }
}
