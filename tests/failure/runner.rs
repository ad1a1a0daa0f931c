use std::sync::Arc;

use rcrt_breadcrumb::{
    Breadcrumbs, CallQueue, CallState, Catalog, ErrorCode, NewSecret, Records, Secrets, ToolRequest,
};
use rcrt_test_database::TestDatabase;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use uuid::Uuid;

use super::flood::{self, Flood, REQUESTS};
use crate::process::{Installation, PATIENCE, Rcrt};
use crate::tool_record;
use crate::watcher::Watcher;

/// A separate store and server, and runners that have only the server's address and a token.
pub struct Apart {
    pub installation: Installation,
    pub database: TestDatabase,
}

impl Apart {
    pub async fn new() -> Self {
        Self { installation: Installation::new(), database: TestDatabase::new().await }
    }

    pub fn server(&self) -> Rcrt {
        let listen = self.installation.listen.to_string();
        let arguments = ["server", "--listen", &listen, "--database-url", &self.database.admin_url];
        self.installation.start(&arguments)
    }

    pub fn runner(&self) -> Rcrt {
        let url = self.installation.url().to_string();
        self.installation.start(&["runner", "--server", &url, "--lease-ms", "2000"])
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_500_requests_again_and_again() {
    let apart = Apart::new().await;
    let _server = apart.server();
    let store = apart.installation.client().await;
    let mut watcher = Watcher::start(store.clone()).await;
    let mut runners = vec![apart.runner(), apart.runner()];

    let flood = tokio::spawn(flood::send(store.clone()));
    for round in 1..=6 {
        watcher.answered(round * 60).await;
        runners.remove(0).kill().await;
        runners.push(apart.runner());
    }
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;

    flood.check(&*store, &watcher.stop()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_whose_runner_is_killed_fails_and_is_not_repeated() {
    let apart = Apart::new().await;
    let _server = apart.server();
    let store = apart.installation.client().await;
    let mut watcher = Watcher::start(store.clone()).await;
    let source = "export async function execute() {\n  await new Promise(() => setTimeout(() => {}, 25_000));\n}\n";
    store.create(tool_record::tool("slow", source, &json!({"type": "object"}), &json!({})), None).await.unwrap();
    let doomed = apart.runner();

    let request = store.create(ToolRequest::record("slow", json!({}), Some("slow"), None), None).await.unwrap().id;
    reaches(store.clone(), request, CallState::Running).await;
    doomed.kill().await;
    let _next = apart.runner();
    watcher.answered(1).await;

    let responses = Flood::of("slow", request).check(&*store, &watcher.stop()).await;
    assert_eq!((responses[0].error_code, responses[0].is_retryable), (Some(ErrorCode::ExecutionFailed), Some(true)));
    assert_eq!(store.call(request).await.unwrap().attempt, 1);
}

/// The runner is killed between claim and start, while it waits for a secret that is locked.
#[tokio::test(flavor = "multi_thread")]
async fn a_claimed_call_whose_runner_is_killed_runs_on_the_next() {
    let apart = Apart::new().await;
    let _server = apart.server();
    let store = apart.installation.client().await;
    let mut watcher = Watcher::start(store.clone()).await;
    let secret = NewSecret { readable: true, ..NewSecret::new("HELD", "held") };
    let secret = store.create_secret(secret).await.unwrap().id;
    let source = "export async function execute(input, context) {\n  return context.secrets.HELD.length;\n}\n";
    let needs = json!({"required_secrets": ["HELD"]});
    let tool = tool_record::tool("secretive", source, &json!({"type": "object"}), &needs);
    let tool = store.create(tool, None).await.unwrap().id;
    store.grant_secret(secret, tool).await.unwrap();

    let doomed = apart.runner();
    // It has read the secrets to decide which tools it offers. From now on only calls read them.
    offers(&*store, "secretive").await;
    let mut connection = PgConnection::connect(&apart.database.admin_url).await.unwrap();
    let mut lock = connection.begin().await.unwrap();
    sqlx::query("LOCK TABLE secrets IN ACCESS EXCLUSIVE MODE").execute(&mut *lock).await.unwrap();
    let record = ToolRequest::record("secretive", json!({}), Some("claimed"), None);
    let request = store.create(record, None).await.unwrap().id;
    reaches(store.clone(), request, CallState::Claimed).await;
    doomed.kill().await;
    lock.rollback().await.unwrap();
    let _next = apart.runner();
    watcher.answered(1).await;

    let responses = Flood::of("claimed", request).check(&*store, &watcher.stop()).await;
    assert_eq!((responses[0].error_code, &responses[0].output), (None, &Some(json!(4))), "{:?}", responses[0]);
    assert_eq!(store.call(request).await.unwrap().attempt, 1, "an unstarted claim does not count as an attempt");
}

/// The runner is killed when the tool has finished and its response waits for a lock in the
/// database.
#[tokio::test(flavor = "multi_thread")]
async fn killed_after_a_call_before_its_response_is_written() {
    let apart = Apart::new().await;
    let _server = apart.server();
    let store = apart.installation.client().await;
    let mut watcher = Watcher::start(store.clone()).await;
    let source = "export async function execute() {\n  await new Promise((resolve) => setTimeout(resolve, 1500));\n  return 1;\n}\n";
    store.create(tool_record::tool("brief", source, &json!({"type": "object"}), &json!({})), None).await.unwrap();
    let doomed = apart.runner();
    let request = store.create(ToolRequest::record("brief", json!({}), Some("done"), None), None).await.unwrap().id;
    reaches(store.clone(), request, CallState::Running).await;

    let mut connection = PgConnection::connect(&apart.database.admin_url).await.unwrap();
    let mut lock = connection.begin().await.unwrap();
    sqlx::query("LOCK TABLE breadcrumbs IN SHARE MODE").execute(&mut *lock).await.unwrap();
    let blocked = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'breadcrumbs'::regclass
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    while !sqlx::query_scalar::<_, bool>(blocked).fetch_one(&mut *lock).await.unwrap() {
        tokio::task::yield_now().await;
    }
    doomed.kill().await;
    lock.rollback().await.unwrap();
    let _next = apart.runner();
    watcher.answered(1).await;

    // Either the response was already being written and is committed, or the call fails because its
    // runner was lost.
    Flood::of("done", request).check(&*store, &watcher.stop()).await;
    assert_eq!(store.call(request).await.unwrap().attempt, 1);
}

/// Waits until the tool is in the catalog.
async fn offers(store: &dyn Breadcrumbs, tool: &str) {
    let listed = async {
        while Catalog::read(store)
            .await
            .unwrap()
            .is_none_or(|catalog| !catalog.tools.iter().any(|one| one.name == tool))
        {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, listed).await.expect("the tool is offered");
}

/// Waits until the call is in this state. State changes of the queue have no event, so it polls.
async fn reaches(store: Arc<dyn Breadcrumbs>, request: Uuid, state: CallState) {
    let asked = async {
        while store.call(request).await.unwrap().state != state {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("the call reaches the state");
}
