//! A tenant, a runner's tools and followers, and an agent on loopback.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use rcrt_a2a::{A2a, Settings, Status, TASK_SCHEMA, TaskRecord};
use rcrt_breadcrumb::{
    AccessList, BreadcrumbQuery, Breadcrumbs, EventStream, Identity, NewAgent, Profile, Role, Tenancy, ToolFailure,
};
use rcrt_executors::{BuiltinExecutor, Executor, ToolCall};
use rcrt_test_servers::PATIENCE;
use rcrt_test_servers::network::Network;
use rcrt_test_servers::service::{Seen, Service};
use rcrt_test_tenant::{Background, Tenant, seeded};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The name that leads to the agent.
pub const HOST: &str = "agent.example";

/// An agent: its card, and what it answers to messages and questions for tasks.
#[derive(Default)]
pub struct Script {
    /// What is changed in its card.
    pub card: Value,
    /// The answers to `SendMessage`, each once; the last one repeats.
    pub sent: VecDeque<Value>,
    /// The same for `GetTask`.
    pub tasks: VecDeque<Value>,
    /// The updates of the next `SendStreamingMessage`. Without them it is not supported.
    pub updates: Option<Vec<Value>>,
    /// The header `Cache-Control` of the card.
    pub cache_control: Option<&'static str>,
}

pub struct Agent {
    pub service: Service,
    pub script: Arc<Mutex<Script>>,
}

impl Agent {
    pub async fn start() -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let shared = script.clone();
        let service = Service::new(move |seen: Seen| answer(&mut shared.lock().unwrap(), &seen)).await;
        Self { service, script }
    }

    /// Sets the answers to `SendMessage` and `GetTask`.
    pub fn plays(&self, sent: Vec<Value>, tasks: Vec<Value>) {
        let mut script = self.script.lock().unwrap();
        (script.sent, script.tasks) = (sent.into(), tasks.into());
    }

    /// The params of each call of this method.
    pub fn calls(&self, method: &str) -> Vec<Value> {
        let bodies = self.service.seen().into_iter().filter_map(|seen| serde_json::from_str::<Value>(&seen.body).ok());
        bodies.filter(|body| body["method"] == method).map(|body| body["params"].clone()).collect()
    }
}

fn answer(script: &mut Script, seen: &Seen) -> Response {
    if seen.uri.path().ends_with("agent-card.json") {
        let port = seen.header("host").unwrap().rsplit(':').next().unwrap().to_owned();
        let mut card = json!({
            "name": "Research", "description": "Finds\u{202e} things out.\u{7}", "version": "1.0.0",
            "supportedInterfaces": [{"url": format!("http://{HOST}:{port}/rpc"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}],
            "capabilities": {}, "defaultInputModes": [], "defaultOutputModes": [],
            "skills": [{"id": "sum", "name": "Sum", "description": "Adds numbers.", "tags": ["math"]}],
        });
        if let Some(changes) = script.card.as_object() {
            card.as_object_mut().unwrap().extend(changes.clone());
        }
        let headers = script.cache_control.map(|value| [(header::CACHE_CONTROL, value)]);
        return (headers.unwrap_or([(header::CACHE_CONTROL, "")]), card.to_string()).into_response();
    }
    let body: Value = serde_json::from_str(&seen.body).unwrap_or_default();
    if body["method"] == "SendStreamingMessage" {
        return match script.updates.take() {
            Some(updates) => events(&updates, &body["id"]),
            None => json!({"jsonrpc": "2.0", "id": body["id"], "error": {"code": -32004, "message": "no streams"}})
                .to_string()
                .into_response(),
        };
    }
    let answers = if body["method"] == "SendMessage" { &mut script.sent } else { &mut script.tasks };
    let next = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
    let mut next = next.unwrap_or_else(|| json!({"error": {"code": -32001, "message": "there is no such task"}}));
    next["jsonrpc"] = "2.0".into();
    next["id"] = body["id"].clone();
    next.to_string().into_response()
}

/// Each update as an event.
fn events(updates: &[Value], id: &Value) -> Response {
    let event = |update: &Value| format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": id, "result": update}));
    let text: String = updates.iter().map(event).collect();
    ([(header::CONTENT_TYPE, "text/event-stream")], text).into_response()
}

/// A task of the agent in this state.
pub fn task(state: &str, said: &str) -> Value {
    let message = json!({"messageId": Uuid::new_v4(), "role": "ROLE_AGENT", "parts": [{"text": said}]});
    json!({"id": "t1", "contextId": "c1", "status": {"state": format!("TASK_STATE_{state}"), "message": message}})
}

pub fn sent(task: Value) -> Value {
    json!({"result": {"task": task}})
}

pub fn got(task: Value) -> Value {
    json!({"result": task})
}

pub struct World {
    pub tenant: Tenant,
    pub network: Network,
    pub settings: Settings,
    pub port: u16,
    a2a: Mutex<Option<Arc<A2a>>>,
}

impl World {
    pub async fn of(port: u16) -> Self {
        let tenant = Box::pin(Tenant::new()).await;
        let quick = Duration::from_millis(20);
        let settings = Settings {
            first_poll: quick,
            longest_poll: quick * 5,
            late_poll: quick,
            help_after: quick,
            check_cards: quick,
            shortest_refresh: quick,
            ..Settings::default()
        };
        let network = Network::new().inside(&format!("{HOST}:{port}"));
        Self { tenant, network, settings, port, a2a: Mutex::default() }
    }

    /// The tools and the follower of one runner.
    pub fn a2a(&self) -> Arc<A2a> {
        let mut kept = self.a2a.lock().unwrap();
        let egress = || Arc::new(self.network.egress());
        kept.get_or_insert_with(|| A2a::new(self.runner(), egress(), self.settings.clone())).clone()
    }

    /// The store as the runner's own agent sees it.
    pub fn runner(&self) -> Arc<dyn Breadcrumbs> {
        let Tenant { store, owner, runner, .. } = &self.tenant;
        let roles = vec![Role::Runner];
        store.acting_as(Identity { owner_id: *owner, agent_id: *runner, roles, profile: Profile::Main })
    }

    /// Another runner takes the place of the first.
    pub fn restart(&self) {
        *self.a2a.lock().unwrap() = None;
    }

    /// What the tools of an agent without the role curator get.
    pub async fn plain_agent(&self) -> Arc<dyn Breadcrumbs> {
        let name = Uuid::new_v4().to_string();
        let agent = NewAgent { name, roles: vec![Role::Emitter], profile: Profile::Main, tools: None };
        let created = self.tenant.store.create_agent(self.tenant.owner, None, agent).await.unwrap();
        self.runner().on_behalf_of(created.agent.id).unwrap()
    }

    pub fn follow(&self) -> Background {
        Background::start(|stop| self.a2a().run(stop))
    }

    pub fn call(&self, tool: &str, input: Value) -> ToolCall {
        let mut definition = seeded(tool);
        definition.permissions.net = AccessList::Listed(vec![format!("{HOST}:{}", self.port)]);
        let mut call = self.tenant.call(definition, input);
        call.request.agent_id = Some(self.tenant.agent);
        call
    }

    pub async fn run(&self, call: ToolCall) -> Result<Value, ToolFailure> {
        let tools = BuiltinExecutor::new().with(self.a2a().tools());
        tools.execute(call, CancellationToken::new()).await.result
    }

    pub async fn ask(&self, tool: &str, input: Value) -> Result<Value, ToolFailure> {
        self.run(self.call(tool, input)).await
    }

    pub async fn failure(&self, tool: &str, input: Value) -> ToolFailure {
        self.ask(tool, input).await.unwrap_err()
    }

    pub async fn register(&self) -> Value {
        let url = format!("http://{HOST}:{}", self.port);
        self.ask("register_agent", json!({"url": url, "name": "research"})).await.unwrap()
    }

    /// Asks the agent without waiting.
    pub async fn begin(&self, message: &str) -> Value {
        let input = json!({"agent_name": "research", "message": message, "wait_seconds": 0});
        self.ask("invoke_agent", input).await.unwrap()
    }

    /// The tasks of the tenant, oldest first.
    pub async fn tasks(&self) -> Vec<TaskRecord> {
        let listed = self.tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema(TASK_SCHEMA)).await.unwrap();
        let mut tasks: Vec<TaskRecord> =
            listed.into_iter().map(|row| TaskRecord::read(&row.context.unwrap()).unwrap()).collect();
        tasks.sort_by_key(|task| task.began_at);
        tasks
    }

    pub async fn events(&self) -> EventStream {
        self.tenant.breadcrumbs.events(None).await.unwrap()
    }
}

/// Waits until a task has this status.
pub async fn until(events: &mut EventStream, status: Status) -> TaskRecord {
    loop {
        let event = tokio::time::timeout(PATIENCE, events.next()).await.expect("it becomes so").unwrap().unwrap();
        if event.schema_name.as_deref() == Some(TASK_SCHEMA)
            && let Ok(task) = TaskRecord::read(&event.context)
            && task.status == status
        {
            return task;
        }
    }
}
