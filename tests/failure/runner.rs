use std::sync::Arc;

use breadcrumb::{Breadcrumbs, CallState, ErrorCode, ToolRequest};
use serde_json::json;
use test_database::TestDatabase;

use super::flood::{self, REQUESTS};
use crate::process::{PATIENCE, Place, Rcrt};
use crate::watcher::Watcher;

fn server(place: &Place, database: &TestDatabase) -> Rcrt {
    let listen = place.listen.to_string();
    Rcrt::start(place.data.path(), &["server", "--listen", &listen, "--database-url", &database.admin_url])
}

/// A runner on another machine: it has only the server's address and a token.
fn runner(place: &Place) -> Rcrt {
    let (url, token) = (place.url().to_string(), std::fs::read_to_string(place.token_file()).unwrap());
    Rcrt::start(place.data.path(), &["runner", "--server", &url, "--token", token.trim(), "--lease-ms", "2000"])
}

async fn seed(place: &Place) {
    let (url, token) = (place.url().to_string(), std::fs::read_to_string(place.token_file()).unwrap());
    let seeded = tokio::process::Command::new(env!("CARGO_BIN_EXE_rcrt"))
        .args(["bootstrap", "--server", &url, "--token", token.trim()])
        .output()
        .await
        .unwrap();
    assert!(seeded.status.success(), "{}", String::from_utf8_lossy(&seeded.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_in_the_middle_of_500_requests_again_and_again() {
    let (place, database) = (Place::new(), TestDatabase::new().await);
    let _server = server(&place, &database);
    let store = place.client().await;
    seed(&place).await;
    let mut watcher = Watcher::start(store.clone()).await;
    let mut runners = vec![runner(&place), runner(&place)];

    let flood = tokio::spawn(flood::send(store.clone(), "timer", flood::short_wait, REQUESTS));
    for round in 1..=6 {
        watcher.answered(round * 60).await;
        runners.remove(0).kill().await;
        runners.push(runner(&place));
    }
    let flood = flood.await.unwrap();
    watcher.answered(REQUESTS).await;

    let responses = flood.check(&*store, &watcher.stop()).await;
    for response in responses {
        // What ran when its runner died is answered honestly; nothing else fails.
        if let Some(code) = response.error_code {
            assert_eq!((code, response.is_retryable), (ErrorCode::ExecutionFailed, Some(true)), "{response:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn killed_while_it_runs_a_call_the_call_is_answered_and_not_run_again() {
    let (place, database) = (Place::new(), TestDatabase::new().await);
    let _server = server(&place, &database);
    let store = place.client().await;
    seed(&place).await;
    let mut watcher = Watcher::start(store.clone()).await;
    let doomed = runner(&place);

    let record = ToolRequest::record("timer", json!({"ms": 25_000}), Some("slow"), None);
    let request = store.create(record, None).await.unwrap().id;
    reaches(store.clone(), request, CallState::Running).await;
    doomed.kill().await;
    let _next = runner(&place);
    watcher.answered(1).await;

    let flood = flood::Flood { requests: [("slow".to_owned(), request)].into() };
    let responses = flood.check(&*store, &watcher.stop()).await;
    assert_eq!((responses[0].error_code, responses[0].is_retryable), (Some(ErrorCode::ExecutionFailed), Some(true)));
    assert_eq!(store.call(request).await.unwrap().attempt, 1);
}

/// Claimed by a runner that dies before it starts the call: the next runner runs it, and it succeeds.
#[tokio::test(flavor = "multi_thread")]
async fn killed_before_it_starts_a_call_the_call_is_run_by_the_next() {
    let (place, database) = (Place::new(), TestDatabase::new().await);
    let _server = server(&place, &database);
    let store = place.client().await;
    seed(&place).await;
    let mut watcher = Watcher::start(store.clone()).await;

    let record = ToolRequest::record("echo", json!({"message": "still here"}), Some("claimed"), None);
    let request = store.create(record, None).await.unwrap().id;
    let claim = breadcrumb::ClaimRequest {
        runner_id: uuid::Uuid::new_v4(),
        limit: 1,
        lease_ms: 1_000,
        except_tools: Vec::new(),
    };
    assert_eq!(store.claim(&claim).await.unwrap().len(), 1, "the runner that dies has claimed it");
    let _next = runner(&place);
    watcher.answered(1).await;

    let flood = flood::Flood { requests: [("claimed".to_owned(), request)].into() };
    let responses = flood.check(&*store, &watcher.stop()).await;
    assert_eq!(responses[0].error_code, None, "{:?}", responses[0]);
}

/// Waits until the call is in this state. The queue's state has no event of its own, so it is asked for.
async fn reaches(store: Arc<dyn Breadcrumbs>, request: uuid::Uuid, state: CallState) {
    let asked = async {
        while store.call(request).await.unwrap().state != state {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(PATIENCE, asked).await.expect("the call gets there");
}
