//! A tenant in its own database, with an agent that makes requests and runners that respond.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, Catalog, Event, EventNumber,
    Identity, NewAgent, NewBreadcrumb, Profile, Role, Tenancy, ToolRequest, ToolResponse, schema_names,
};
use rcrt_runner::{LocalDispatch, LocalRegistration, Runner, RunnerError, RunnerOptions};
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fake::Fake;

/// How long a test waits for an expected event. Long, so that no test fails on a busy machine.
pub const PATIENCE: Duration = Duration::from_mins(2);
/// A lease that does not end by itself within a test.
pub const LONG_LEASE: Duration = Duration::from_mins(10);

pub struct Fixture {
    pub database: TestDatabase,
    pub store: Arc<Store>,
    pub dispatch: Arc<LocalDispatch>,
    pub owner: Uuid,
    pub person: Arc<dyn Breadcrumbs>,
    /// The store as every runner of the test sees it.
    pub runner: Arc<dyn Breadcrumbs>,
    pub registration: LocalRegistration,
    beginning: EventNumber,
}

impl Fixture {
    pub async fn new() -> Self {
        let database = TestDatabase::new().await;
        let options = StoreOptions {
            app_url: Some(database.app_url.clone()),
            acquire_timeout: PATIENCE,
            ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([7; 32]))
        };
        let store = Store::open(options, &|_| {}).await.unwrap();
        let owner = store.ensure_tenant("test").await.unwrap().id;
        let dispatch = LocalDispatch::over(store.clone());
        let mut agents = Vec::new();
        for name in ["person", "runner"] {
            let agent = NewAgent {
                name: name.into(),
                roles: Role::ALL.to_vec(),
                profile: rcrt_breadcrumb::Profile::Main,
                tools: None,
            };
            let agent = store.create_agent(owner, None, agent).await.unwrap().agent;
            let identity = Identity {
                owner_id: owner,
                agent_id: agent.id,
                roles: agent.roles,
                profile: rcrt_breadcrumb::Profile::Main,
            };
            agents.push((dispatch.acting_as(identity.clone()), dispatch.registration(&identity)));
        }
        let (runner, registration) = agents.pop().unwrap();
        let (person, _) = agents.pop().unwrap();
        let beginning = person.latest_event().await.unwrap();
        Self { database, store, dispatch, owner, person, runner, registration, beginning }
    }

    pub fn start(&self, fake: &Arc<Fake>) -> Running {
        self.start_with(fake, options())
    }

    pub fn start_with(&self, fake: &Arc<Fake>, options: RunnerOptions) -> Running {
        let runner = Runner::new(self.runner.clone(), fake.executors(), options);
        Running::of(runner.with_local_dispatch(self.registration.clone()))
    }

    pub async fn ask(&self, tool: &str, input: Value) -> Uuid {
        self.person.create(ToolRequest::record(tool, input, None, Some("workspace:test")), None).await.unwrap().id
    }

    /// A request whose context has these fields too.
    pub async fn ask_with(&self, tool: &str, more: Value) -> Uuid {
        let mut record = ToolRequest::record(tool, json!({}), None, Some("workspace:test"));
        record.context.extend(more.as_object().unwrap().clone());
        self.create(record).await
    }

    /// The tenant as an agent of this profile.
    pub async fn agent_of(&self, profile: Profile) -> Arc<dyn Breadcrumbs> {
        let agent = NewAgent { name: profile.to_string(), roles: Role::ALL.to_vec(), profile, tools: None };
        let agent = self.store.create_agent(self.owner, None, agent).await.unwrap().agent;
        self.dispatch.acting_as(Identity { owner_id: self.owner, agent_id: agent.id, roles: agent.roles, profile })
    }

    /// The catalog, once it satisfies the condition.
    pub async fn catalog(&self, passes: impl Fn(&Catalog) -> bool) -> Catalog {
        let mut events = self.person.events(Some(self.beginning)).await.unwrap();
        let found = async {
            loop {
                // Read after each change: an event only says that something changed.
                let event = events.next().await.unwrap().unwrap();
                if event.schema_name.as_deref() == Some(schema_names::TOOL_CATALOG)
                    && let Some(catalog) = Catalog::read(&*self.person).await.unwrap()
                    && passes(&catalog)
                {
                    return catalog;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("the catalog in time")
    }

    /// The request's response, as soon as it exists.
    pub async fn answer(&self, request: Uuid) -> ToolResponse {
        let tag = ToolResponse::tag(&request.to_string());
        let is_response = |event: &Event| {
            event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE) && event.tags.contains(&tag)
        };
        let event = self.event(is_response).await;
        ToolResponse::from_context(&event.context).unwrap()
    }

    pub async fn call(&self, tool: &str, input: Value) -> ToolResponse {
        let request = self.ask(tool, input).await;
        self.answer(request).await
    }

    /// Ends the leases of all claimed calls, as if their runners had sent no heartbeat in time.
    pub async fn end_leases(&self) {
        let mut admin = PgConnection::connect(&self.database.admin_url).await.unwrap();
        sqlx::query("UPDATE calls SET lease_until = clock_timestamp() WHERE lease_until IS NOT NULL")
            .execute(&mut admin)
            .await
            .unwrap();
    }

    /// The first event since the test began that satisfies the condition.
    pub async fn event(&self, mut passes: impl FnMut(&Event) -> bool) -> Arc<Event> {
        let mut events = self.person.events(Some(self.beginning)).await.unwrap();
        let found = async {
            loop {
                let event = events.next().await.unwrap().unwrap();
                if passes(&event) {
                    return event;
                }
            }
        };
        tokio::time::timeout(PATIENCE, found).await.expect("the event in time")
    }

    /// Waits until this many events satisfied the condition.
    pub async fn events(&self, count: usize, mut passes: impl FnMut(&Event) -> bool) {
        let mut left = count;
        self.event(|event| {
            left -= usize::from(passes(event));
            left == 0
        })
        .await;
    }

    pub async fn create(&self, record: NewBreadcrumb) -> Uuid {
        self.person.create(record, None).await.unwrap().id
    }

    /// Replaces the context of a record that is at this version.
    pub async fn change(&self, id: Uuid, version: i64, context: Value) -> Breadcrumb {
        let Value::Object(context) = context else { panic!("a context is an object") };
        let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
        self.person.update(id, version, changes).await.unwrap()
    }

    pub async fn list(&self, schema: &str) -> Vec<BreadcrumbListItem> {
        self.person.list(&BreadcrumbQuery::of_schema(schema)).await.unwrap()
    }

    /// The one report about this tool record, once it exists and satisfies the condition.
    pub async fn tool_error(&self, tool_id: Uuid, mut passes: impl FnMut(&Value) -> bool) -> Value {
        let event = self
            .event(|event| {
                let context = Value::Object(event.context.clone().into());
                event.schema_name.as_deref() == Some(schema_names::TOOL_ERROR)
                    && context["tool_id"] == tool_id.to_string()
                    && passes(&context)
            })
            .await;
        Value::Object(event.context.clone().into())
    }
}

/// Quick ones, so that no test waits for a poll that a fault makes necessary.
pub fn options() -> RunnerOptions {
    RunnerOptions {
        max_calls: 8,
        max_calls_per_tool: 8,
        grace: Duration::from_millis(200),
        continuous_pause: Duration::from_millis(50),
        // Does not end on a busy machine. A heartbeat, every third of it, is sooner than the time
        // limit of a tool.
        lease: Duration::from_mins(1),
        ..RunnerOptions::default()
    }
}

pub struct Running {
    stop: CancellationToken,
    task: JoinHandle<Result<(), RunnerError>>,
}

impl Running {
    /// Runs calls from the queue only.
    pub fn start(store: Arc<dyn Breadcrumbs>, fake: &Arc<Fake>, options: RunnerOptions) -> Self {
        Self::of(Runner::new(store, fake.executors(), options))
    }

    pub fn of(runner: Runner) -> Self {
        let stop = CancellationToken::new();
        let shutdown = stop.clone();
        Self { stop, task: tokio::spawn(async move { runner.run(shutdown).await }) }
    }

    pub fn request_stop(&self) {
        self.stop.cancel();
    }

    pub async fn stop(self) {
        self.stop.cancel();
        tokio::time::timeout(PATIENCE, self.task).await.expect("the runner to stop").unwrap().unwrap();
    }

    /// Stops it like a crash: nothing is released.
    pub async fn kill(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

/// A native tool that the fake runs.
pub fn native(name: &str, more: Value) -> NewBreadcrumb {
    let mut context = json!({
        "name": name,
        "description": "for a test",
        "definition": {"examples": [{"description": "one", "input": {}}]},
        "implementation": {"type": "builtin", "tool": name},
    });
    merge(&mut context, more);
    tool(name, context, schema_names::TOOL_V1)
}

/// A code tool; the fake runs it without reading the code, the validators read it.
pub fn code(name: &str, more: Value) -> NewBreadcrumb {
    tool(name, code_context(name, more), schema_names::TOOL_CODE)
}

pub fn code_context(name: &str, more: Value) -> Value {
    let mut context = json!({
        "name": name,
        "description": "for a test",
        "code": {"language": "typescript", "source": "export async function execute(input: object) { return input; }"},
        "input_schema": {"type": "object"},
        "output_schema": true,
        "examples": [{"description": "one", "input": {}, "explanation": "nothing in"}],
    });
    merge(&mut context, more);
    context
}

fn merge(context: &mut Value, more: Value) {
    if let Value::Object(more) = more {
        context.as_object_mut().unwrap().extend(more);
    }
}

fn tool(name: &str, context: Value, schema: &str) -> NewBreadcrumb {
    let Value::Object(context) = context else { panic!("a context is an object") };
    NewBreadcrumb {
        title: name.into(),
        context,
        tags: vec!["tool".into(), format!("tool:{name}"), "workspace:tools".into()],
        schema_name: Some(schema.into()),
        ..NewBreadcrumb::default()
    }
}
