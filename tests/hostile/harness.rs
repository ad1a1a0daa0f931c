//! The parts of the runtime as `rcrt up` assembles them, on a test database and a small hostile
//! internet: the real store, runners, worker processes of this build's `rcrt`, and egress gate.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use futures::StreamExt;
use rcrt_authoring::Assessor;
use rcrt_breadcrumb::{
    BreadcrumbQuery, Breadcrumbs, Identity, NewAgent, NewBreadcrumb, RequestKind, Role, Tenancy, TenantQuotas,
    ToolDefinition, ToolRequest, ToolResponse, schema_names,
};
use rcrt_egress::{Egress, EgressOptions, Interfaces, Resolver, SystemInterfaces, SystemResolver};
use rcrt_examples::ExampleRunner;
use rcrt_executors::{BuiltinExecutor, Executor, Executors, RestExecutor, SandboxExecutor, builtin, rest};
use rcrt_runner::{LocalDispatch, Runner, RunnerOptions};
use rcrt_sandbox::{Sandbox, SandboxOptions, WorkerCommand};
use rcrt_store::{SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use rcrt_validate::Author;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::case::Request;
use super::names::Names;
use super::request_log::RequestLog;
use super::{malformed_http, web};

/// The longest wait for one response. Calls finish by their own limits, or the runtime has failed.
const PATIENCE: Duration = Duration::from_mins(10);
const ROOM: usize = 12;
/// How many tools an agent of the third tenant can create in an hour. One is the good tool.
const CREATIONS: u64 = 4;
/// The native tools of each tenant.
const AUTHORING: [&str; 6] =
    ["create_tool", "update_tool", "test_tool", "describe_tool", "list_my_tools", "retire_tool"];

pub struct Harness {
    pub tenants: Vec<Tenant>,
    pub names: Names,
    pub seen: Arc<RequestLog>,
    pub web: u16,
    pub liar: u16,
    /// A record of the second tenant that the first must not see.
    pub foreign: Uuid,
    /// The id of the first tenant's author.
    pub author: Uuid,
    store: Arc<Store>,
    sandbox: Arc<Sandbox>,
    stop: CancellationToken,
    runners: Vec<JoinHandle<()>>,
}

/// A tenant with its own runner, as an agent sees it that can write tools and secrets.
pub struct Tenant {
    /// As the author of the tools, who is not trusted.
    pub store: Arc<dyn Breadcrumbs>,
    /// As another author.
    pub rival: Arc<dyn Breadcrumbs>,
    pub curator: Arc<dyn Breadcrumbs>,
    answers: Arc<Answers>,
}

/// The responses from a tenant's event stream, by request.
#[derive(Default)]
struct Answers {
    known: Mutex<HashMap<String, Map<String, Value>>>,
    news: Notify,
}

impl Harness {
    pub async fn open() -> Self {
        let names = Names::serve().await;
        let seen = Arc::new(RequestLog::default());
        let (web, liar) = (web::serve(seen.clone()).await, malformed_http::serve(seen.clone()).await);

        let database = TestDatabase::new().await;
        let options = StoreOptions {
            app_url: Some(database.app_url.clone()),
            acquire_timeout: PATIENCE,
            ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([7; 32]))
        };
        let store = Store::open(options, &|_| {}).await.unwrap();

        let worker =
            WorkerCommand { program: PathBuf::from(env!("CARGO_BIN_EXE_rcrt")), args: vec!["sandbox-worker".into()] };
        let workers =
            SandboxOptions { max_workers: ROOM + RunnerOptions::max_parked(ROOM), ..SandboxOptions::new(worker) };
        let sandbox = Arc::new(Sandbox::start(workers).await.expect("the sandbox starts"));
        let allowed: Vec<String> = vec![
            format!("api.test:{web}"),
            format!("other.test:{web}"),
            format!("liar.test:{liar}"),
            format!("egress-private-host-of-another-tool-friend=friend.api.test:{web}"),
        ];
        let gate = gate(&allowed, names.address);
        let rest: Arc<dyn Executor> = Arc::new(RestExecutor::new(gate.clone()));
        let code = Arc::new(SandboxExecutor::new(sandbox.clone(), gate.clone()));
        let open: Vec<_> = allowed.iter().map(|entry| entry.parse().unwrap()).collect();
        let rules = move |definition: &ToolDefinition| rcrt_validate::tool_allowing(definition, Author::User, &open);
        let assessor = Assessor::new(rules, ExampleRunner::new(sandbox.clone(), gate), code.clone());
        let native = BuiltinExecutor::new().with(rcrt_authoring::tools(Arc::new(assessor)));
        let executors = rest::KINDS
            .into_iter()
            .fold(Executors::new().with_code(code), |executors, kind| executors.with_native(kind, rest.clone()))
            .with_native(builtin::KIND, Arc::new(native));
        let executors = Arc::new(executors);

        let (stop, dispatch) = (CancellationToken::new(), LocalDispatch::over(store.clone()));
        let (mut tenants, mut runners): (Vec<Tenant>, _) = (Vec::new(), Vec::new());
        let mut authors = Vec::new();
        for name in ["one", "two", "bounded"] {
            let id = store.ensure_tenant(name).await.unwrap().id;
            if name == "bounded" {
                let quotas = TenantQuotas { max_tool_creations: Some(CREATIONS), ..TenantQuotas::default() };
                store.set_quotas(id, quotas).await.unwrap();
            }
            let writes = [Role::Emitter, Role::Subscriber];
            let author = agent(&store, id, "author", &writes).await;
            authors.push(author.agent_id);
            let author = dispatch.acting_as(author);
            let rival = dispatch.acting_as(agent(&store, id, "rival", &writes).await);
            let curator = dispatch.acting_as(agent(&store, id, "curator", &[Role::Curator]).await);
            let options = RunnerOptions {
                max_calls: ROOM,
                max_calls_per_tool: ROOM,
                allowed_private: allowed.iter().map(|entry| entry.parse().unwrap()).collect(),
                ..RunnerOptions::default()
            };
            let runner = agent(&store, id, "runner", &[Role::Runner]).await;
            let local = dispatch.registration(&runner);
            let runner = Runner::new(dispatch.acting_as(runner), executors.clone(), options).with_local_dispatch(local);
            let shutdown = stop.clone();
            runners.push(tokio::spawn(async move { runner.run(shutdown).await.unwrap() }));
            for tool in AUTHORING {
                curator.create(shipped(tool), None).await.unwrap();
            }
            let answers = Arc::new(Answers::default());
            for agent in [&author, &rival] {
                answers.clone().follow(agent).await;
            }
            tenants.push(Tenant { store: author, rival, curator, answers });
        }
        let foreign = NewBreadcrumb {
            title: "Of the second tenant".into(),
            context: Map::from_iter([("words".to_owned(), Value::from("foreign words"))]),
            tags: vec!["foreign".into()],
            ..NewBreadcrumb::default()
        };
        let foreign = tenants[1].write(foreign).await;
        let author = authors[0];
        Self { tenants, names, seen, web, liar, foreign, author, store, sandbox, stop, runners }
    }

    /// Stops everything that was started. A worker process that still exists afterwards is a fault.
    pub async fn close(self) {
        self.stop.cancel();
        for runner in self.runners {
            runner.await.expect("the runner stops without an error");
        }
        self.sandbox.close().await;
        self.store.close().await;
    }
}

fn gate(allowed: &[String], name_server: SocketAddr) -> Arc<Egress> {
    let options = EgressOptions {
        allowed_private: allowed.iter().map(|entry| entry.parse().unwrap()).collect(),
        connect_timeout: Duration::from_mins(2),
        // Some hostile servers never finish their responses. Others respond much sooner, even on a
        // busy machine.
        head_timeout: Duration::from_secs(30),
        interfaces: Arc::new(Own),
        ..EgressOptions::default()
    };
    let names: Arc<dyn Resolver> = Arc::new(SystemResolver::with_servers(&[name_server]).unwrap());
    Arc::new(Egress::with_resolver(options, &names).unwrap())
}

/// The machine's interfaces, and one with a public address that the DNS server also returns.
#[derive(Debug)]
struct Own;

impl Interfaces for Own {
    fn addresses(&self) -> std::io::Result<HashSet<IpAddr>> {
        let mut all = SystemInterfaces.addresses()?;
        all.insert(super::names::OWN);
        Ok(all)
    }
}

async fn agent(store: &Arc<Store>, tenant: Uuid, name: &str, roles: &[Role]) -> Identity {
    let agent =
        NewAgent { name: name.into(), roles: roles.to_vec(), profile: rcrt_breadcrumb::Profile::Main, tools: None };
    let made = store.create_agent(tenant, None, agent).await.unwrap().agent;
    Identity { owner_id: tenant, agent_id: made.id, roles: made.roles, profile: rcrt_breadcrumb::Profile::Main }
}

/// The record of a shipped native tool.
fn shipped(name: &str) -> NewBreadcrumb {
    let file = format!("{}/../../../bootstrap-breadcrumbs/tools-native/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

impl Answers {
    /// Each response is known by the id that its caller chose, and by that of the request's record.
    async fn follow(self: Arc<Self>, store: &Arc<dyn Breadcrumbs>) {
        let mut events = store.events(None).await.unwrap();
        tokio::spawn(async move {
            while let Some(Ok(event)) = events.next().await {
                if !RequestKind::is_response(event.schema_name.as_deref()) {
                    continue;
                }
                let request = event.context.get("metadata").and_then(|metadata| metadata.get("request"));
                for id in [event.context.get("request_id"), request].into_iter().flatten().filter_map(Value::as_str) {
                    self.known.lock().unwrap().insert(id.to_owned(), event.context.clone().into());
                }
                self.news.notify_waiters();
            }
        });
    }

    async fn of(&self, request: &str) -> Option<Map<String, Value>> {
        let waited = async {
            loop {
                let news = self.news.notified();
                tokio::pin!(news);
                news.as_mut().enable();
                if let Some(context) = self.known.lock().unwrap().get(request) {
                    return context.clone();
                }
                news.await;
            }
        };
        tokio::time::timeout(PATIENCE, waited).await.ok()
    }
}

/// A request that was written.
pub struct Asked {
    pub record: Uuid,
    pub begun: Instant,
    request: String,
}

impl Tenant {
    pub async fn ask(&self, tool: &str, input: Value, more: &Request) -> Asked {
        let request = Uuid::new_v4().to_string();
        let mut record = ToolRequest::record(tool, input, Some(&request), Some("workspace:hostile"));
        record.tags.extend(more.tags.clone());
        record.context.extend(more.context.clone());
        let begun = Instant::now();
        let record = self.store.create(record, None).await.unwrap().id;
        Asked { record, begun, request }
    }

    /// The response's context in the store.
    pub async fn answer(&self, asked: &Asked) -> Result<Map<String, Value>, String> {
        self.answers.of(&asked.request).await.ok_or_else(|| format!("no response within {} s", PATIENCE.as_secs()))
    }

    /// The response to the request with this record.
    pub async fn answer_to(&self, request: Uuid) -> Result<Map<String, Value>, String> {
        let answer = self.answers.of(&request.to_string()).await;
        answer.ok_or_else(|| format!("no response within {} s", PATIENCE.as_secs()))
    }

    /// How many responses the store has for this request.
    pub async fn responses(&self, asked: &Asked) -> usize {
        let mut query = BreadcrumbQuery::tagged(ToolResponse::tag(&asked.request));
        query.selector.schema_name = Some(schema_names::TOOL_RESPONSE.to_owned());
        self.store.list(&query).await.unwrap().len()
    }

    /// The progress of the request that subscribers see: the record, and how often it was written.
    pub async fn progress(&self, asked: &Asked) -> Vec<(Value, i64)> {
        let mut query = BreadcrumbQuery::tagged(ToolResponse::tag(&asked.request));
        query.selector.schema_name = Some(schema_names::TOOL_PROGRESS.to_owned());
        query.include_context = true;
        let found = self.store.list(&query).await.unwrap();
        found.into_iter().map(|item| (Value::Object(item.context.unwrap_or_default()), item.version)).collect()
    }

    /// How many records have this tag, once no more are written: calls that a case started can
    /// still be running.
    pub async fn settled(&self, tag: &str, wanted: usize) -> usize {
        let begun = Instant::now();
        let mut found = self.tagged(tag).await;
        let mut same = 0;
        while begun.elapsed() < PATIENCE && same < if found == wanted { 2 } else { 100 } {
            tokio::time::sleep(Duration::from_millis(100)).await;
            let now = self.tagged(tag).await;
            same = if now == found { same + 1 } else { 0 };
            found = now;
        }
        found
    }

    pub async fn tagged(&self, tag: &str) -> usize {
        let query = BreadcrumbQuery { limit: 1000, ..BreadcrumbQuery::tagged(tag) };
        self.store.list(&query).await.unwrap().len()
    }

    pub async fn write(&self, record: NewBreadcrumb) -> Uuid {
        self.store.create(record, None).await.unwrap().id
    }

    /// The contexts of all records except tools, requests and the foreign record, as text, one per
    /// line: the output of the tools.
    pub async fn traces(&self, foreign: Uuid) -> String {
        let mut all = String::new();
        let mut offset = 0;
        loop {
            let query = BreadcrumbQuery { limit: 500, offset, include_context: true, ..BreadcrumbQuery::default() };
            let page = self.store.list(&query).await.unwrap();
            offset += 500;
            for item in &page {
                let ours = [schema_names::TOOL_CODE, schema_names::TOOL_REQUEST, schema_names::TOOL_CREATE_REQUEST];
                if !item.schema_name.as_deref().is_some_and(|name| ours.contains(&name)) && item.id != foreign {
                    all.push_str(&serde_json::to_string(item).unwrap());
                    all.push('\n');
                }
            }
            if page.len() < 500 {
                return all;
            }
        }
    }
}
