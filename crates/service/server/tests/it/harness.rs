//! A server on its own port, and helpers for requests to it.

use std::{sync::Arc, time::Duration};

use rcrt_breadcrumb::{AgentInfo, Breadcrumbs, Identity, NewAgent, Profile, Role, Tenancy};
use rcrt_schemas::Schemas;
use rcrt_server::{AllowedOrigins, AuthMode, Server, ServerLimits, ServerOptions, StreamOptions, TokenKey};
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use reqwest::{Method, StatusCode, header::HeaderMap};
use serde_json::{Value, json};
use sqlx::Connection;
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// How long a test waits for something that must happen. Long, so that no test fails on a busy
/// machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

pub const KEY: [u8; 32] = [7; 32];

pub struct World {
    pub base: String,
    pub http: reqwest::Client,
    pub store: Arc<Store>,
    schemas: Arc<Schemas>,
    pub draining: CancellationToken,
    pub shutdown: CancellationToken,
    pub serving: JoinHandle<()>,
    database: TestDatabase,
}

pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub text: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {:?}", self.text))
    }

    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// The body of a problem response with this status and code.
    #[track_caller]
    pub fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        assert_eq!(self.header("content-type"), "application/problem+json");
        let problem = self.json();
        assert_eq!(problem["code"], code, "{problem}");
        assert_eq!(problem["status"], status);
        assert_eq!(problem["type"], format!("/docs#problem-{code}"));
        assert!(!problem["title"].as_str().unwrap().is_empty() && !problem["detail"].as_str().unwrap().is_empty());
        problem
    }

    /// The message of the violation of this field.
    #[track_caller]
    pub fn violation(&self, field: &str) -> String {
        let problem = self.problem(400, "invalid");
        let found = problem["violations"].as_array().unwrap().iter().find(|one| one["field"] == field);
        found.unwrap_or_else(|| panic!("no violation at {field}: {problem}"))["message"].as_str().unwrap().to_owned()
    }

    #[track_caller]
    pub fn ok(self) -> Self {
        assert!(self.status.is_success(), "{} {}", self.status, self.text);
        self
    }
}

impl World {
    pub async fn start() -> Self {
        Self::start_with(AuthMode::Keys).await
    }

    pub async fn start_with(auth: AuthMode) -> Self {
        Self::start_on(TestDatabase::new().await, auth, |_| {}).await
    }

    pub async fn start_streaming(auth: AuthMode, streams: StreamOptions) -> Self {
        Self::start_on(TestDatabase::new().await, auth, |options| options.streams = streams).await
    }

    /// Allows pages of these origins.
    pub async fn start_for(auth: AuthMode, origins: AllowedOrigins) -> Self {
        Self::start_on(TestDatabase::new().await, auth, |options| options.origins = origins).await
    }

    /// With these limits.
    pub async fn bounded(auth: AuthMode, limits: ServerLimits) -> Self {
        Self::start_on(TestDatabase::new().await, auth, |options| options.limits = limits).await
    }

    /// With `rcrt_compat`.
    pub async fn start_for_rcrt(auth: AuthMode) -> Self {
        Self::start_on(TestDatabase::new().await, auth, |options| options.rcrt_compat = true).await
    }

    /// A second server with its own store on the same database. It accepts the same tokens.
    pub async fn beside(&self) -> Self {
        self.beside_as(|_| {}).await
    }

    /// The same, with options that the test sets.
    pub async fn beside_as(&self, set: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start_on(self.database.clone(), AuthMode::Keys, set).await
    }

    /// Stops, and starts again on the same database.
    pub async fn restarted(self) -> Self {
        let database = self.database.clone();
        self.close().await;
        Self::start_on(database, AuthMode::Keys, |_| {}).await
    }

    /// With options that the test sets.
    pub async fn start_as(set: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start_on(TestDatabase::new().await, AuthMode::Keys, set).await
    }

    /// Listens on another address than 127.0.0.1; requests go there.
    pub async fn start_listening(listen: &str, auth: AuthMode, set: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start_at(listen, TestDatabase::new().await, auth, set).await
    }

    async fn start_on(database: TestDatabase, auth: AuthMode, set: impl FnOnce(&mut ServerOptions)) -> Self {
        Self::start_at("127.0.0.1:0", database, auth, set).await
    }

    async fn start_at(
        listen: &str,
        database: TestDatabase,
        auth: AuthMode,
        set: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        let options = store_options(&database);
        Self::start_over(listen, database, options, auth, set).await
    }

    /// With this limit of the queued calls of each agent.
    pub async fn with_queue_limit(max_queued_calls: u32) -> Self {
        let database = TestDatabase::new().await;
        let options = StoreOptions { max_queued_calls, ..store_options(&database) };
        Self::start_over("127.0.0.1:0", database, options, AuthMode::Keys, |_| {}).await
    }

    async fn start_over(
        listen: &str,
        database: TestDatabase,
        options: StoreOptions,
        auth: AuthMode,
        set: impl FnOnce(&mut ServerOptions),
    ) -> Self {
        let store = Store::open(options, &|_| {}).await.unwrap();
        let schemas = Schemas::over(store.clone());
        let listener = TcpListener::bind(listen).await.unwrap();
        let base = format!("http://127.0.0.1:{}", listener.local_addr().unwrap().port());
        let mut options = ServerOptions::new(listener, auth, key());
        // The transactions of other tests delay events, too.
        options.streams.flush_time = PATIENCE;
        options.limits.drain_time = PATIENCE;
        set(&mut options);
        let server = Server::new(options, schemas.clone()).unwrap();
        let draining = server.draining();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(server.run(shutdown.clone()));
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Self { base, http, store, schemas, draining, shutdown, serving, database }
    }

    pub async fn tenant(&self) -> Uuid {
        self.store.ensure_tenant(&Uuid::new_v4().to_string()).await.unwrap().id
    }

    /// The tenant's records, as a runner sees them.
    pub fn runner(&self, tenant: Uuid) -> Arc<dyn Breadcrumbs> {
        let (agent_id, roles) = (Uuid::new_v4(), vec![Role::Runner]);
        self.store.acting_as(Identity { owner_id: tenant, agent_id, roles, profile: Profile::Main })
    }

    /// A new agent with these roles, and a token of it.
    pub async fn agent(&self, tenant: Uuid, roles: &[Role]) -> (AgentInfo, String) {
        self.agent_of(tenant, roles, Profile::Main).await
    }

    /// The same, with another profile.
    pub async fn agent_of(&self, tenant: Uuid, roles: &[Role], profile: Profile) -> (AgentInfo, String) {
        let agent = NewAgent { name: Uuid::new_v4().to_string(), roles: roles.to_vec(), profile, tools: None };
        let agent = self.store.create_agent(tenant, None, agent).await.unwrap().agent;
        let identity = Identity { owner_id: tenant, agent_id: agent.id, roles: roles.to_vec(), profile };
        let token = key().issue(&identity, Duration::from_mins(10)).unwrap();
        (agent, token)
    }

    /// A token of an existing agent, with one of its roles.
    #[allow(clippy::unused_self)] // Reads better at the callers.
    pub fn token_of(&self, tenant: Uuid, agent_id: Uuid, role: Role) -> String {
        let identity = Identity { owner_id: tenant, agent_id, roles: vec![role], profile: Profile::Main };
        key().issue(&identity, Duration::from_mins(10)).unwrap()
    }

    /// An operator's token of a new agent with these roles, in a new tenant.
    pub async fn operators_token(&self, roles: &[Role]) -> String {
        let tenant = self.tenant().await;
        let (agent, _) = self.agent(tenant, roles).await;
        let identity = Identity { owner_id: tenant, agent_id: agent.id, roles: roles.to_vec(), profile: Profile::Main };
        key().issue_for_operator(&identity, Duration::from_mins(10)).unwrap()
    }

    /// A token of a new agent with these roles, in a new tenant.
    pub async fn token(&self, roles: &[Role]) -> String {
        let tenant = self.tenant().await;
        self.agent(tenant, roles).await.1
    }

    pub fn request(&self, method: &str, path: &str, token: &str) -> reqwest::RequestBuilder {
        let request = self.http.request(Method::from_bytes(method.as_bytes()).unwrap(), format!("{}{path}", self.base));
        if token.is_empty() { request } else { request.bearer_auth(token) }
    }

    pub async fn get(&self, path: &str, token: &str) -> Answer {
        answer(self.request("GET", path, token)).await
    }

    pub async fn post(&self, path: &str, token: &str, body: Value) -> Answer {
        answer(self.request("POST", path, token).json(&body)).await
    }

    /// Creates a record and returns its id.
    pub async fn create(&self, token: &str, record: Value) -> Uuid {
        let created = self.post("/breadcrumbs", token, record).await.ok().json();
        created["id"].as_str().unwrap().parse().unwrap()
    }

    /// A connection to the database as the superuser.
    pub async fn admin(&self) -> sqlx::PgConnection {
        sqlx::PgConnection::connect(&self.database.admin_url).await.unwrap()
    }

    /// Makes all events eight days older and deletes old ones.
    pub async fn forget_events(&self) {
        let mut admin = self.admin().await;
        sqlx::query("UPDATE events SET at = at - interval '8 days'").execute(&mut admin).await.unwrap();
        self.store.prune().await.unwrap();
    }

    pub async fn close(self) {
        self.shutdown.cancel();
        self.serving.await.unwrap();
        self.schemas.close().await;
        self.store.close().await;
    }
}

pub fn key() -> TokenKey {
    TokenKey::from_bytes(&KEY).unwrap()
}

pub async fn answer(request: reqwest::RequestBuilder) -> Answer {
    let response = request.send().await.unwrap();
    let (status, headers) = (response.status(), response.headers().clone());
    Answer { status, headers, text: response.text().await.unwrap() }
}

fn store_options(database: &TestDatabase) -> StoreOptions {
    StoreOptions {
        app_url: Some(database.app_url.clone()),
        acquire_timeout: PATIENCE,
        max_connections: 4,
        ..StoreOptions::new(database.admin_url.clone(), SecretsKey::from_bytes([3; 32]))
    }
}

pub fn note(title: &str) -> Value {
    json!({"title": title, "tags": ["note"], "schema_name": "note.v1", "context": {"text": title}})
}

pub fn request_for(tool: &str) -> Value {
    json!({"title": "a call", "schema_name": "tool.request.v1", "tags": ["tool:request"], "context": {"tool": tool, "input": {}}})
}

pub fn response() -> Value {
    json!({"title": "a response", "schema_name": "tool.response.v1", "tags": ["tool:response"], "context": {"status": "success"}})
}
