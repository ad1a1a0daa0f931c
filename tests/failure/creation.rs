//! Processes are killed at each step of a creation: it is answered once, and leaves one tool.

use std::sync::Arc;

use rcrt_breadcrumb::{
    BreadcrumbQuery, CallQueue, CallState, EventStream, Events, NewBreadcrumb, Records, ToolResponse,
};
use rcrt_client::Client;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::runner::Apart;
use crate::authoring::{adder, call, next, request};
use crate::process::PATIENCE;

/// Waits for an advisory lock until the process of the step is killed.
const HELD: &str = "CREATE FUNCTION held() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock(771771); RETURN NEW; END $$";
const IS_HELD: &str = "SELECT EXISTS (SELECT FROM pg_locks WHERE locktype = 'advisory' AND NOT granted
    AND objid = 771771 AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";

/// Where a creation is when a process is killed.
#[derive(Debug, Clone, Copy)]
enum Step {
    /// The runner has the call and has not started it.
    Claimed,
    Examples,
    /// The tool's record is being written.
    Publication,
    /// The tool is written, and the response is being written.
    Response,
}

#[derive(Debug, Clone, Copy)]
enum Victim {
    Runner,
    Server,
}

/// Stops statements of one kind inside of their transaction.
struct Hold {
    connection: PgConnection,
}

impl Hold {
    async fn new(url: &str) -> Self {
        let mut connection = PgConnection::connect(url).await.unwrap();
        sqlx::raw_sql(HELD).execute(&mut connection).await.unwrap();
        Self { connection }
    }

    async fn run(&mut self, statement: &'static str) {
        sqlx::raw_sql(statement).execute(&mut self.connection).await.unwrap();
    }

    /// From now on the step waits.
    async fn set(&mut self, step: Step) {
        let trigger = match step {
            Step::Claimed => {
                "CREATE TRIGGER held BEFORE UPDATE ON calls FOR EACH ROW
                 WHEN (NEW.state = 'running' AND OLD.state = 'claimed') EXECUTE FUNCTION held()"
            }
            Step::Publication => {
                "CREATE TRIGGER held BEFORE INSERT ON breadcrumbs FOR EACH ROW
                 WHEN (NEW.schema_name = 'tool.code.v1') EXECUTE FUNCTION held()"
            }
            Step::Response => {
                "CREATE TRIGGER held BEFORE INSERT ON breadcrumbs FOR EACH ROW
                 WHEN (NEW.schema_name = 'tool.create.response.v1') EXECUTE FUNCTION held()"
            }
            Step::Examples => return,
        };
        self.run(trigger).await;
        self.run("SELECT pg_advisory_lock(771771)").await;
    }

    /// Waits until a process is at the step.
    async fn reached(&mut self, step: Step, store: &Client, request: Uuid) {
        let reached = async {
            loop {
                let is_there = match step {
                    Step::Examples => store.call(request).await.unwrap().state == CallState::Running,
                    _ => sqlx::query_scalar(IS_HELD).fetch_one(&mut self.connection).await.unwrap(),
                };
                if is_there {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, reached).await.unwrap_or_else(|_| panic!("{step:?} is not reached"));
    }

    async fn release(&mut self) {
        self.run("SELECT pg_advisory_unlock_all()").await;
        self.run("DROP TRIGGER IF EXISTS held ON breadcrumbs; DROP TRIGGER IF EXISTS held ON calls").await;
    }
}

/// The record of a shipped native tool.
fn shipped(name: &str) -> NewBreadcrumb {
    let file = format!("{}/../../../bootstrap-breadcrumbs/tools-native/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_creation_is_answered_once_and_leaves_one_tool_wherever_a_process_is_killed() {
    let apart = Apart::new().await;
    let mut server = apart.server();
    let store: Arc<Client> = apart.installation.client().await;
    let mut events = store.events(None).await.unwrap();
    store.create(shipped("create_tool"), None).await.unwrap();
    let mut hold = Hold::new(&apart.database.admin_url).await;
    let mut runner = apart.runner();
    apart.installation.ready().await;
    // The example takes long enough to be killed in it.
    let mut spec = adder();
    spec["code"]["source"] = json!(
        "export async function execute(input: any) {\n  await new Promise((done) => setTimeout(done, 1500));\n  return { sum: input.a + input.b };\n}\n"
    );
    for step in [Step::Claimed, Step::Examples, Step::Publication, Step::Response] {
        for victim in [Victim::Runner, Victim::Server] {
            let name = format!("{step:?}-{victim:?}");
            spec["name"] = json!(name);
            hold.set(step).await;
            let record = store.create(request(&name, &spec, "create"), None).await.unwrap().id;
            hold.reached(step, &store, record).await;
            match victim {
                Victim::Runner => {
                    runner.kill().await;
                    hold.release().await;
                    runner = apart.runner();
                }
                Victim::Server => {
                    server.kill().await;
                    hold.release().await;
                    server = apart.server();
                    apart.installation.client().await;
                }
            }
            let response = only_response(&store, &mut events, &name).await;
            assert_eq!(response["status"], "created", "{name}: {response}");
            let tools = store.list(&BreadcrumbQuery::tagged(format!("tool:{name}"))).await.unwrap();
            assert_eq!(tools.len(), 1, "{name}");
            assert_eq!((&json!(tools[0].id), &json!(tools[0].version)), (&response["tool_id"], &json!(1)), "{name}");
            let sum = sum_of(&store, &mut events, &name).await;
            assert_eq!(sum.output, Some(json!({"sum": 3})), "{name}: {sum:?}");
        }
    }
    // No late second response, after all leases have ended.
    for step in [Step::Claimed, Step::Examples, Step::Publication, Step::Response] {
        for victim in [Victim::Runner, Victim::Server] {
            only_response(&store, &mut events, &format!("{step:?}-{victim:?}")).await;
        }
    }
}

/// The attempts of `create_tool` are limited, so that code that kills runners is not run forever.
#[tokio::test(flavor = "multi_thread")]
async fn a_creation_whose_runners_are_all_lost_is_rejected_once() {
    let apart = Apart::new().await;
    let _server = apart.server();
    let store: Arc<Client> = apart.installation.client().await;
    let mut events = store.events(None).await.unwrap();
    store.create(shipped("create_tool"), None).await.unwrap();
    let mut spec = adder();
    spec["code"]["source"] =
        json!("export async function execute() {\n  await new Promise(() => setTimeout(() => {}, 25_000));\n}\n");
    let record = store.create(request("doomed", &spec, "create"), None).await.unwrap().id;
    for attempt in 1..=3 {
        let runner = apart.runner();
        let runs = async {
            loop {
                let call = store.call(record).await.unwrap();
                if (call.state, call.attempt) == (CallState::Running, attempt) {
                    return;
                }
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(PATIENCE, runs).await.unwrap_or_else(|_| panic!("attempt {attempt} does not run"));
        runner.kill().await;
    }
    let response = only_response(&store, &mut events, "doomed").await;
    assert_eq!((&response["status"], &response["error_code"]), (&json!("rejected"), &json!("ExecutionFailed")));
    assert!(response["error"].as_str().unwrap().contains("attempt 3, which is the last"), "{response}");
    let tools = BreadcrumbQuery::tagged("tool:adder");
    assert!(store.list(&tools).await.unwrap().is_empty());
    // The next runner creates the next tool, and no second response.
    let _runner = apart.runner();
    store.create(request("next", &adder(), "create"), None).await.unwrap();
    assert_eq!(only_response(&store, &mut events, "next").await["status"], "created");
    assert_eq!(store.list(&tools).await.unwrap().len(), 1);
    only_response(&store, &mut events, "doomed").await;
}

/// The response of the created tool. On a busy machine the runner can lose its short lease. The
/// response then advises the caller to repeat the call.
async fn sum_of(store: &Client, events: &mut EventStream, tool: &str) -> ToolResponse {
    let mut sum = call(store, events, tool, json!({"a": 1, "b": 2})).await;
    for _ in 0..5 {
        if sum.is_retryable != Some(true) {
            break;
        }
        sum = call(store, events, tool, json!({"a": 1, "b": 2})).await;
    }
    sum
}

/// Waits for the response to this request, and checks that there is no other.
async fn only_response(store: &Client, events: &mut EventStream, id: &str) -> Value {
    let query = BreadcrumbQuery { include_context: true, ..BreadcrumbQuery::tagged(ToolResponse::tag(id)) };
    let all = async {
        loop {
            let found = store.list(&query).await.unwrap();
            if !found.is_empty() {
                return found;
            }
            next(events, &ToolResponse::tag(id)).await;
        }
    };
    let mut found = tokio::time::timeout(PATIENCE, all).await.unwrap();
    assert_eq!(found.len(), 1, "{id}");
    Value::Object(found.remove(0).context.unwrap())
}
