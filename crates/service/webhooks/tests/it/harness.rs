//! A store with an agent, receivers on loopback, and deliverers. Instead of waiting, tests make
//! deliveries due in the database, whose clock decides.

use std::collections::VecDeque;
use std::net::IpAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use rcrt_breadcrumb::{
    Breadcrumbs, Identity, NewAgent, NewBreadcrumb, NewWebhook, Profile, Role, Selector, Tenancy, WebhookInfo,
    WebhookSecret, Webhooks,
};
use rcrt_egress::{Egress, EgressOptions, Resolver};
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use rcrt_test_servers::PATIENCE;
use rcrt_test_servers::network::{LOOPBACK, Names, serve};
use rcrt_webhooks::{Deliverer, DeliveryOptions};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

pub const HOST: &str = "receiver.test";

pub struct World {
    pub database: TestDatabase,
    pub store: Arc<Store>,
    pub tenant: Uuid,
    pub agent: Uuid,
    pub records: Arc<dyn Breadcrumbs>,
}

impl World {
    pub async fn start() -> Self {
        let database = TestDatabase::new().await;
        let store = open(&database).await;
        let tenant = store.ensure_tenant("tenant").await.unwrap().id;
        let new = NewAgent { name: "agent".into(), roles: vec![Role::Curator], profile: Profile::Main, tools: None };
        let agent = store.create_agent(tenant, None, new).await.unwrap().agent;
        let identity = Identity { owner_id: tenant, agent_id: agent.id, roles: agent.roles, profile: agent.profile };
        let records = store.acting_as(identity);
        Self { database, store, tenant, agent: agent.id, records }
    }

    pub fn webhooks(&self) -> Arc<dyn Webhooks> {
        Tenancy::webhooks(&*self.store)
    }

    pub async fn webhook(&self, url: &str) -> WebhookInfo {
        self.webhook_for(url, None).await
    }

    pub async fn webhook_for(&self, url: &str, selector: Option<Selector>) -> WebhookInfo {
        let new = NewWebhook { url: url.to_owned(), selector, description: None };
        self.webhooks().create_webhook(self.tenant, self.agent, self.agent, new).await.unwrap()
    }

    pub async fn info(&self, id: Uuid) -> WebhookInfo {
        let all = self.webhooks().webhooks(self.tenant, self.agent).await.unwrap();
        all.into_iter().find(|webhook| webhook.id == id).unwrap()
    }

    /// Another agent of the tenant.
    pub async fn another(&self, role: Role) -> Uuid {
        let new = NewAgent { name: "another".into(), roles: vec![role], profile: Profile::Main, tools: None };
        self.store.create_agent(self.tenant, None, new).await.unwrap().agent.id
    }

    pub async fn secret(&self, secret: &str) {
        let secret = WebhookSecret { secret: secret.to_owned() };
        self.webhooks().set_webhook_secret(self.tenant, self.agent, self.agent, secret).await.unwrap();
    }

    pub async fn write(&self, title: &str) -> Uuid {
        let record = NewBreadcrumb {
            title: title.to_owned(),
            tags: vec![title.to_owned()],
            schema_name: Some("note.v1".into()),
            context: json!({"title": title}).as_object().unwrap().clone(),
            ..NewBreadcrumb::default()
        };
        self.records.create(record, None).await.unwrap().id
    }

    pub async fn sql(&self, sql: &'static str) {
        let mut admin = PgConnection::connect(&self.database.admin_url).await.unwrap();
        sqlx::query(sql).execute(&mut admin).await.unwrap();
    }

    pub async fn count(&self, sql: &'static str) -> i64 {
        let mut admin = PgConnection::connect(&self.database.admin_url).await.unwrap();
        sqlx::query_scalar(sql).fetch_one(&mut admin).await.unwrap()
    }

    /// Waits until the count has this value.
    pub async fn until(&self, sql: &'static str, wanted: i64) {
        let mut admin = PgConnection::connect(&self.database.admin_url).await.unwrap();
        let arrived = async {
            loop {
                let count: i64 = sqlx::query_scalar(sql).fetch_one(&mut admin).await.unwrap();
                if count == wanted {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, arrived).await.unwrap_or_else(|_| panic!("never {wanted}: {sql}"));
    }

    /// Makes all waiting deliveries due.
    pub async fn time_passes(&self) {
        self.sql("UPDATE webhooks SET held_until = now() WHERE held_until IS NOT NULL").await;
        self.sql("UPDATE deliveries SET due_at = now() WHERE state = 'waiting'").await;
    }
}

pub async fn open(database: &TestDatabase) -> Arc<Store> {
    let options = StoreOptions {
        app_url: Some(database.app_url.clone()),
        acquire_timeout: Duration::from_mins(2),
        ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
    };
    Store::open(options, &|_| {}).await.unwrap()
}

pub fn options() -> DeliveryOptions {
    DeliveryOptions { poll: Duration::from_millis(20), ..DeliveryOptions::default() }
}

pub struct Delivering {
    stop: CancellationToken,
    pub task: JoinHandle<()>,
}

impl Delivering {
    /// `receiver.test` resolves to loopback and is allowed by the operator; `outside.test` resolves
    /// to it and is not allowed.
    pub fn start(store: &Store, options: DeliveryOptions) -> Self {
        Self::start_with(store, options, |_| {})
    }

    /// The same, with other options of the gate.
    pub fn start_with(store: &Store, options: DeliveryOptions, set: impl FnOnce(&mut EgressOptions)) -> Self {
        let names = Names::default();
        let loopback: IpAddr = LOOPBACK;
        names.set(HOST, vec![vec![loopback]]);
        names.set("outside.test", vec![vec![loopback]]);
        let names: Arc<dyn Resolver> = Arc::new(names);
        let mut egress = options.egress(vec![HOST.parse().unwrap()]);
        set(&mut egress);
        let gate = Egress::with_resolver(egress, &names).unwrap();
        let deliverer = Deliverer::new(store.deliveries(), Arc::new(gate), options);
        let stop = CancellationToken::new();
        let task = tokio::spawn(deliverer.run(stop.clone()));
        Self { stop, task }
    }

    pub async fn stop(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

#[derive(Debug, Clone)]
pub struct Received {
    pub headers: HeaderMap,
    pub body: String,
}

impl Received {
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    pub fn title(&self) -> String {
        self.json()["context"]["title"].as_str().unwrap_or_default().to_owned()
    }
}

/// Sends the given responses, then 200 forever.
pub struct Receiver {
    pub url: String,
    received: mpsc::UnboundedReceiver<Received>,
}

struct Desk {
    answers: Mutex<VecDeque<Response>>,
    received: mpsc::UnboundedSender<Received>,
}

impl Receiver {
    pub async fn start(answers: Vec<Response>) -> Self {
        let (sender, received) = mpsc::unbounded_channel();
        let desk = Arc::new(Desk { answers: Mutex::new(answers.into()), received: sender });
        let take = async |State(desk): State<Arc<Desk>>, headers: HeaderMap, body: String| {
            let answer = desk.answers.lock().unwrap().pop_front();
            desk.received.send(Received { headers, body }).unwrap();
            answer.unwrap_or_else(|| StatusCode::OK.into_response())
        };
        let router = Router::new().route("/hook", post(take)).route("/elsewhere", post(async || "no")).with_state(desk);
        let port = serve(router).await;
        Self { url: format!("http://{HOST}:{port}/hook"), received }
    }

    pub async fn next(&mut self) -> Received {
        tokio::time::timeout(PATIENCE, self.received.recv()).await.expect("no request arrived").unwrap()
    }

    /// Requests that arrived and were not read.
    pub fn rest(&mut self) -> Vec<Received> {
        std::iter::from_fn(|| self.received.try_recv().ok()).collect()
    }
}

/// With a body, which must appear nowhere.
pub fn status(status: u16) -> Response {
    (StatusCode::from_u16(status).unwrap(), "the receiver's own words").into_response()
}

/// A receiver that accepts a request and sends no response.
pub async fn silent() -> (String, mpsc::UnboundedReceiver<()>) {
    let (sender, came) = mpsc::unbounded_channel();
    let (port, _) = rcrt_test_servers::raw::serve(move |mut stream| {
        let sender = sender.clone();
        async move {
            rcrt_test_servers::raw::head(&mut stream).await?;
            let _ = sender.send(());
            std::future::pending::<()>().await;
            drop(stream);
            Ok(())
        }
    })
    .await;
    (format!("http://{HOST}:{port}/hook"), came)
}
