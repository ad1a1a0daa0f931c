//! Calls that run before their requests are written.

mod answered_at_write;
mod before_commit;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use futures::FutureExt;
use rcrt_breadcrumb::{
    CallState, Created, ErrorCode, NewBreadcrumb, ResponseStatus, StoreError, ToolFailure, ToolRequest, ToolResponse,
};
use rcrt_conformance::Busy;
use rcrt_executors::NeverOpened;
use rcrt_runner::RunnerOptions;
use rcrt_test_tenant::FailingStore;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, LONG_LEASE, Running, code, options};
use crate::local_dispatch::{count_claimed_at_write, wait_for_empty_queue_behind};

/// Blocks writes to the queue of calls until it is dropped.
struct SlowDisk(PgConnection);

impl SlowDisk {
    async fn new(fixture: &Fixture) -> Self {
        let mut connection = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
        sqlx::raw_sql("BEGIN; LOCK TABLE calls IN SHARE MODE").execute(&mut connection).await.unwrap();
        Self(connection)
    }

    async fn end(mut self) {
        sqlx::raw_sql("ROLLBACK").execute(&mut self.0).await.unwrap();
    }
}

/// A tool that computes and then has a side effect. Returns the number of side effects so far.
fn tool_with_effect(fake: &Fake, tool: &str) -> Arc<AtomicUsize> {
    let done = Arc::new(AtomicUsize::new(0));
    let counted = done.clone();
    fake.supports_speculation.lock().unwrap().insert(tool.to_owned());
    fake.does(tool, move |call, stop| {
        let done = counted.clone();
        async move {
            tokio::select! {
                gate = call.effect_gate.wait() => match gate {
                    Ok(()) => Ok(json!({"before": done.fetch_add(1, Ordering::SeqCst)})),
                    Err(NeverOpened) => Err(ToolFailure::new(ErrorCode::ExecutionFailed, "the gate never opened")),
                },
                () = stop.cancelled() => Err(ToolFailure::new(ErrorCode::Cancelled, "stopped")),
            }
        }
    });
    done
}

/// A tenant with these code tools.
async fn fixture(tools: &[&str]) -> Fixture {
    let fixture = Fixture::new().await;
    for tool in tools {
        fixture.create(code(tool, json!({}))).await;
    }
    fixture
}

async fn wait_for_empty_queue(fixture: &Fixture, tool: &str) {
    let before = count_claimed_at_write(fixture).await;
    for _ in 0..1000 {
        fixture.call(tool, json!({})).await;
        if count_claimed_at_write(fixture).await > before {
            return;
        }
    }
    panic!("no call was taken before it was written");
}

/// Creates the record in its own task, because the write may be blocked.
fn ask(fixture: &Fixture, record: NewBreadcrumb, key: Option<&'static str>) -> JoinHandle<Result<Created, StoreError>> {
    let person = fixture.person.clone();
    tokio::spawn(async move { person.create(record, key).await })
}

/// One slot, and no poll of the queue within a test.
fn one_slot() -> RunnerOptions {
    RunnerOptions { max_calls: 1, max_calls_per_tool: 1, poll: Duration::from_mins(1), ..options() }
}

/// A tool that only computes, and a runner that takes its calls before they are written.
struct Quick {
    fixture: Fixture,
    fake: Arc<Fake>,
    runner: Running,
    /// The number of runs so far.
    begun: usize,
}

impl Quick {
    async fn new() -> Self {
        let (fixture, fake) = (fixture(&["quick"]).await, Fake::new());
        fake.supports_speculation.lock().unwrap().insert("quick".into());
        let runner = fixture.start_with(&fake, one_slot());
        wait_for_empty_queue(&fixture, "quick").await;
        let begun = fake.progress.borrow().begun;
        Self { fixture, fake, runner, begun }
    }
}

fn request(tool: &str) -> NewBreadcrumb {
    ToolRequest::record(tool, json!({}), None, Some("workspace:test"))
}
