//! Calls that begin to compute while their requests are on their way to the disk.

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
use crate::fixture::{Fixture, Running, code, options};
use crate::local_dispatch::{count_claimed_at_write, wait_for_empty_queue_behind};

/// A disk that takes its time: until it is dropped, nothing can be written into the queue.
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

/// A tool that computes, and then does something to the world: how often is counted.
fn tool_with_effect(fake: &Fake, tool: &str) -> Arc<AtomicUsize> {
    let done = Arc::new(AtomicUsize::new(0));
    let counted = done.clone();
    fake.supports_speculation.lock().unwrap().insert(tool.to_owned());
    fake.does(tool, move |call, stop| {
        let done = counted.clone();
        async move {
            tokio::select! {
                word = call.effect_gate.wait() => match word {
                    Ok(()) => Ok(json!({"before": done.fetch_add(1, Ordering::SeqCst)})),
                    Err(NeverOpened) => Err(ToolFailure::new(ErrorCode::ExecutionFailed, "never was")),
                },
                () = stop.cancelled() => Err(ToolFailure::new(ErrorCode::Cancelled, "stopped")),
            }
        }
    });
    done
}

/// With these tools, and nothing in the queue.
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
    panic!("no call is ever taken as it is written");
}

/// Written by a task of its own, since it takes its time.
fn ask(fixture: &Fixture, record: NewBreadcrumb, key: Option<&'static str>) -> JoinHandle<Result<Created, StoreError>> {
    let person = fixture.person.clone();
    tokio::spawn(async move { person.create(record, key).await })
}

/// One place, and no looks at the queue that no hint asked for.
fn one_slot() -> RunnerOptions {
    RunnerOptions { max_calls: 1, max_calls_per_tool: 1, poll: Duration::from_mins(1), ..options() }
}

/// One tool that only computes, and a runner that takes its calls as they are written.
struct Quick {
    fixture: Fixture,
    fake: Arc<Fake>,
    runner: Running,
    /// Calls that have begun until now.
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

#[tokio::test]
async fn a_call_computes_while_its_request_is_written() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("quick"), None);
    fake.until(|progress| progress.begun == begun + 1).await;
    let id = *fake.begun.lock().unwrap().last().unwrap();
    assert!(matches!(fixture.person.get(id).await, Err(StoreError::NotFound { .. })), "it is not there yet");
    assert!(!asked.is_finished());
    slow.end().await;
    assert_eq!(asked.await.unwrap().unwrap().id, id);
    let response = fixture.answer(id).await;
    assert_eq!((response.status, &response.metadata["attempt"]), (ResponseStatus::Success, &json!(1)));
    assert_eq!(fake.progress.borrow().begun, begun + 1, "it ran once");
    runner.stop().await;
}

/// From the admission on, the runner owns the call.
#[tokio::test]
async fn a_call_whose_caller_goes_away_is_written_and_answered() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("quick"), None);
    fake.until(|progress| progress.begun == begun + 1).await;
    let id = *fake.begun.lock().unwrap().last().unwrap();
    asked.abort();
    assert!(asked.await.unwrap_err().is_cancelled());
    slow.end().await;
    assert_eq!(fixture.answer(id).await.status, ResponseStatus::Success);
    assert_eq!(fake.progress.borrow().begun, begun + 1, "it ran once");
    runner.stop().await;
}

/// A request is not refused for what is wrong with its response.
#[tokio::test]
async fn a_response_that_the_database_refuses_leaves_the_call_to_its_runner() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN
            IF EXISTS (SELECT FROM calls WHERE state = 'finished' AND finished_at = queued_at AND response = NEW.id)
            THEN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END IF;
            RETURN NULL;
         END $$;
         CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON breadcrumbs DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW WHEN (NEW.schema_name = 'tool.response.v1') EXECUTE FUNCTION refuse()",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    let before = count_answered_at_write(&fixture).await;
    assert_eq!(fixture.call("quick", json!({})).await.status, ResponseStatus::Success);
    assert_eq!(count_answered_at_write(&fixture).await, before);
    assert_eq!(fake.progress.borrow().begun, begun + 1, "it ran once");
    runner.stop().await;
}

#[tokio::test]
async fn no_effect_before_the_request_is_written() {
    let (fixture, fake) = (fixture(&["acts", "quick"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let begun = fake.progress.borrow().begun;
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("acts"), None);
    fake.until(|progress| progress.begun == begun + 1 && progress.running["acts"] == 0).await;
    assert!(!asked.is_finished() && done.load(Ordering::SeqCst) == 0);
    slow.end().await;
    let id = asked.await.unwrap().unwrap().id;
    assert_eq!(fixture.answer(id).await.output, Some(json!({"before": 0})));
    assert_eq!((done.load(Ordering::SeqCst), fake.progress.borrow().begun), (1, begun + 2));
    // From now on it is known to act, and is not begun in vain.
    assert_eq!(fixture.call("acts", json!({})).await.output, Some(json!({"before": 1})));
    assert_eq!((done.load(Ordering::SeqCst), fake.progress.borrow().begun), (2, begun + 3));
    runner.stop().await;
}

/// It asks for the word and ends without waiting for it: what it began is done all the same, when it may be.
#[tokio::test]
async fn an_effect_that_the_tool_does_not_await_is_performed() {
    let (fixture, fake) = (fixture(&["careless", "quick"]).await, Fake::new());
    fake.supports_speculation.lock().unwrap().insert("careless".into());
    let done = Arc::new(AtomicUsize::new(0));
    let counted = done.clone();
    fake.does("careless", move |call, _| {
        let done = counted.clone();
        async move {
            if call.effect_gate.wait().now_or_never() == Some(Ok(())) {
                done.fetch_add(1, Ordering::SeqCst);
            }
            Ok(json!("ended"))
        }
    });
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    assert_eq!(fixture.call("careless", json!({})).await.output, Some(json!("ended")));
    assert_eq!(done.load(Ordering::SeqCst), 1);
    runner.stop().await;
}

#[tokio::test]
async fn a_run_is_discarded_if_its_request_is_not_written() {
    let (fixture, fake) = (fixture(&["acts", "quick"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    fake.supports_speculation.lock().unwrap().insert("quick".into());
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let first = ask(&fixture, request("quick"), Some("once")).await.unwrap().unwrap();
    assert_eq!(fixture.answer(first.id).await.status, ResponseStatus::Success);
    let again = ask(&fixture, request("quick"), Some("once")).await.unwrap().unwrap();
    assert_eq!((again.id, again.replayed), (first.id, true));
    // As soon as the repetition's place is free, it is begun.
    for _ in 0..1000 {
        let refused = ask(&fixture, request("acts"), Some("once")).await.unwrap();
        assert!(matches!(refused, Err(StoreError::IdempotencyMismatch)), "{refused:?}");
        if fake.progress.borrow().running.contains_key("acts") {
            break;
        }
    }
    fake.until(|progress| progress.running.get("acts") == Some(&0)).await;
    assert_eq!(done.load(Ordering::SeqCst), 0);
    // Their place is free again, and the one call was answered once.
    assert_eq!(fixture.call("acts", json!({})).await.output, Some(json!({"before": 0})));
    let responses = fixture.list(rcrt_breadcrumb::schema_names::TOOL_RESPONSE).await;
    let of_first = responses.iter().filter(|row| row.tags.contains(&ToolResponse::tag(&first.id.to_string()))).count();
    assert_eq!(of_first, 1);
    runner.stop().await;
}

#[tokio::test]
async fn a_finished_run_frees_its_slot_during_a_slow_write() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let slow = SlowDisk::new(&fixture).await;
    let first = ask(&fixture, request("quick"), None);
    fake.until(|progress| progress.begun == begun + 1 && progress.running["quick"] == 0).await;
    let second = ask(&fixture, request("quick"), None);
    fake.until(|progress| progress.begun == begun + 2).await;
    slow.end().await;
    for asked in [first, second] {
        assert_eq!(fixture.answer(asked.await.unwrap().unwrap().id).await.status, ResponseStatus::Success);
    }
    assert_eq!(fake.progress.borrow().begun, begun + 2, "each ran once");
    runner.stop().await;
}

#[tokio::test]
async fn invalid_input_is_reported_when_the_request_is_written() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let schema = json!({"input_schema": {"type": "object", "properties": {"n": {"type": "number"}}}});
    fixture.create(code("counts", schema)).await;
    fake.supports_speculation.lock().unwrap().insert("counts".into());
    let runner = fixture.start(&fake);
    wait_for_empty_queue(&fixture, "counts").await;
    let begun = fake.progress.borrow().begun;
    let before = count_claimed_at_write(&fixture).await;
    // A busy machine gives some calls to the queue.
    while count_claimed_at_write(&fixture).await == before {
        let response = fixture.call("counts", json!({"n": "many"})).await;
        assert_eq!(response.error_code, Some(ErrorCode::InvalidArguments));
        assert_eq!(fake.progress.borrow().begun, begun);
    }
    runner.stop().await;
}

/// The tool's own 60 s were waited for, and neither the deadline nor a cancel was heard.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_deadline_applies_while_the_input_is_checked() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("quick", json!({"limits": {"timeout_ms": 60_000}}))).await;
    fake.supports_speculation.lock().unwrap().insert("quick".into());
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let (begun, before) = (fake.progress.borrow().begun, count_claimed_at_write(&fixture).await);
    let busy = Busy::of(fixture.owner).await;
    let mut record = ToolRequest::record("quick", json!({"many": vec![0; 100_000]}), None, Some("workspace:test"));
    record.context.insert("deadline_ms".into(), json!(300));
    // A busy machine gives some calls to the queue.
    while count_claimed_at_write(&fixture).await == before {
        let late = fixture.answer(fixture.create(record.clone()).await).await;
        assert_eq!(late.error_code, Some(ErrorCode::Timeout), "{late:?}");
        assert_eq!(late.error_details, Some(json!({"limit": "deadline_ms", "allowed": 300})));
    }
    assert_eq!(fake.progress.borrow().begun, begun);
    // Its place is free, and what is checked in a moment computes ahead still.
    assert_eq!(fixture.call("quick", json!({"n": 1})).await.status, ResponseStatus::Success);
    busy.end().await;
    runner.stop().await;
}

#[tokio::test]
async fn a_stopping_runner_releases_speculative_calls() {
    let (fixture, fake) = (fixture(&["acts", "quick"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let (begun, before) = (fake.progress.borrow().begun, done.load(Ordering::SeqCst));
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("acts"), None);
    fake.until(|progress| progress.begun == begun + 1).await;
    runner.request_stop();
    slow.end().await;
    let id = asked.await.unwrap().unwrap().id;
    runner.stop().await;
    let call = fixture.person.call(id).await.unwrap();
    assert_eq!((call.state, call.attempt), (CallState::Queued, 0));
    assert_eq!(done.load(Ordering::SeqCst), before);
    let next = fixture.start(&fake);
    assert_eq!(fixture.answer(id).await.output, Some(json!({"before": before})));
    next.stop().await;
}

/// It may do nothing yet, but it can be told to stop.
#[tokio::test]
async fn a_call_cancelled_during_the_write_gets_the_code_cancelled() {
    let (fixture, fake) = (fixture(&["hangs", "acts"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    fake.supports_speculation.lock().unwrap().insert("hangs".into());
    let stopped: Arc<Mutex<Vec<Uuid>>> = Arc::default();
    let seen = stopped.clone();
    fake.does("hangs", move |call, stop| {
        let stopped = seen.clone();
        async move {
            stop.cancelled().await;
            stopped.lock().unwrap().push(call.request.id);
            Err(ToolFailure::new(ErrorCode::Cancelled, "stopped"))
        }
    });
    let runner = fixture.start(&fake);
    wait_for_empty_queue(&fixture, "acts").await;
    assert!(done.load(Ordering::SeqCst) > 0);
    let slow = SlowDisk::new(&fixture).await;
    let asked = ask(&fixture, request("hangs"), None);
    fake.until(|progress| progress.running.get("hangs") == Some(&1)).await;
    slow.end().await;
    let id = asked.await.unwrap().unwrap().id;
    fixture.person.cancel(id).await.unwrap();
    assert_eq!(fixture.answer(id).await.error_code, Some(ErrorCode::Cancelled));
    assert_eq!(*stopped.lock().unwrap(), [id]);
    runner.stop().await;
}

/// From the queue, a call that only computes is claimed and answered; nothing need be known of its beginning.
#[tokio::test]
async fn a_call_is_started_before_an_effect_or_after_a_time() {
    let (fixture, fake) = (fixture(&["computes", "acts", "thinks", "fails", "native"]).await, Fake::new());
    let done = tool_with_effect(&fake, "acts");
    for tool in ["computes", "thinks", "fails"] {
        fake.supports_speculation.lock().unwrap().insert(tool.into());
    }
    fake.does("fails", |_, _| async { Err(ToolFailure::new(ErrorCode::ExecutionFailed, "no")) });
    let store = FailingStore::new(fixture.runner.clone());
    let heard = store.starts.subscribe();
    // Until it is started.
    fake.does("thinks", move |_, _| {
        let mut heard = heard.clone();
        async move {
            let before = *heard.borrow();
            heard.wait_for(|starts| *starts > before).await.unwrap();
            Ok(json!("thought"))
        }
    });
    for (tool, starts) in [("computes", 0), ("acts", 1), ("thinks", 1), ("fails", 1), ("native", 1)] {
        let request = fixture.ask(tool, json!({})).await;
        let before = *store.starts.borrow();
        let runner = Running::start(store.clone(), &fake, options());
        let response = fixture.answer(request).await;
        runner.stop().await;
        let call = fixture.person.call(request).await.unwrap();
        assert_eq!((call.state, call.attempt), (CallState::Finished, 1), "{tool}");
        assert_eq!(response.metadata["attempt"], 1, "{tool}");
        assert_eq!(*store.starts.borrow() - before, starts, "{tool}");
    }
    assert_eq!(done.load(Ordering::SeqCst), 1);
}

/// It has not begun, so its caller needs no warning that it may have run.
#[tokio::test]
async fn a_call_that_waits_for_a_slot_is_requeued_when_its_runner_is_lost() {
    let (fixture, fake) = (fixture(&["hangs"]).await, Fake::new());
    let gate = fake.waits("hangs");
    let runner = fixture.start_with(&fake, RunnerOptions { lease: Duration::from_secs(1), ..one_slot() });
    wait_for_empty_queue_behind(&fixture, &gate, "hangs").await;
    let first = fixture.ask("hangs", json!({})).await;
    fake.until(|progress| progress.running.get("hangs") == Some(&1)).await;
    let second = fixture.ask("hangs", json!({})).await;
    assert_ne!(fixture.person.call(second).await.unwrap().state, CallState::Running);
    runner.kill().await;
    let next = fixture.start(&Fake::new());
    assert_eq!(fixture.answer(second).await.status, ResponseStatus::Success);
    assert_eq!(fixture.answer(first).await.error_code, Some(ErrorCode::ExecutionFailed));
    next.stop().await;
}

/// How many of the calls were answered in the statement that wrote them.
async fn count_answered_at_write(fixture: &Fixture) -> i64 {
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    sqlx::query_scalar("SELECT count(*) FROM calls WHERE finished_at = queued_at").fetch_one(&mut admin).await.unwrap()
}

#[tokio::test]
async fn an_immediate_result_is_written_with_its_request() {
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let before = count_answered_at_write(&fixture).await;
    for n in 1..=5 {
        let response = fixture.call("quick", json!({"n": n})).await;
        assert_eq!(response.output, Some(json!({"input": {"n": n}, "version": 1})));
        let metadata = &response.metadata;
        assert_eq!((&metadata["attempt"], &metadata["from_executor"]), (&json!(1), &json!(true)));
        assert_eq!((&metadata["stages"]["queue_ms"], &metadata["stages"]["claim_ms"]), (&json!(0.0), &json!(0.0)));
    }
    assert_eq!(count_answered_at_write(&fixture).await, before + 5);
    assert_eq!(fake.progress.borrow().begun, begun + 5);
    runner.stop().await;
}

/// Calls that find no place wait for one, and are answered so too; none is run twice.
#[tokio::test]
async fn calls_that_wait_for_a_slot_are_answered_once() {
    const CALLS: usize = 50;
    let Quick { fixture, fake, runner, begun } = Quick::new().await;
    let asked: Vec<_> = (0..CALLS).map(|_| ask(&fixture, request("quick"), None)).collect();
    let mut requests = Vec::new();
    for one in asked {
        requests.push(one.await.unwrap().unwrap().id);
    }
    for request in &requests {
        assert_eq!(fixture.answer(*request).await.status, ResponseStatus::Success);
    }
    assert_eq!(fake.progress.borrow().begun, begun + CALLS);
    assert_eq!(fake.progress.borrow().most["quick"], 1, "the cap held");
    runner.stop().await;
}

#[tokio::test]
async fn a_slow_call_does_not_delay_its_request() {
    let (fixture, fake) = (fixture(&["thinks", "quick"]).await, Fake::new());
    fake.supports_speculation.lock().unwrap().extend(["thinks".to_owned(), "quick".into()]);
    let gate = fake.waits("thinks");
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let before = count_answered_at_write(&fixture).await;
    let id = ask(&fixture, request("thinks"), None).await.unwrap().unwrap().id;
    assert_eq!(fixture.person.get(id).await.unwrap().id, id, "it is there while it computes");
    fake.until(|progress| progress.running.get("thinks") == Some(&1)).await;
    gate.add_permits(1);
    assert_eq!(fixture.answer(id).await.output, Some(json!("done")));
    assert_eq!(count_answered_at_write(&fixture).await, before);
    runner.stop().await;
}

/// What a call has told of itself is written before its answer.
#[tokio::test]
async fn a_response_is_written_after_the_calls_progress() {
    let (fixture, fake) = (fixture(&["tells", "quick"]).await, Fake::new());
    fake.supports_speculation.lock().unwrap().extend(["tells".to_owned(), "quick".into()]);
    fake.does("tells", |call, _| async move {
        call.progress.report(Some(0.5), "half");
        Ok(json!("told"))
    });
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let before = count_answered_at_write(&fixture).await;
    assert_eq!(fixture.call("tells", json!({})).await.output, Some(json!("told")));
    assert_eq!(count_answered_at_write(&fixture).await, before);
    runner.stop().await;
}

/// What an isolate keeps must not tell of a call that never was.
#[tokio::test]
async fn a_kept_isolate_is_discarded_after_an_uncommitted_run() {
    let (fixture, fake) = (fixture(&["quick"]).await, Fake::new());
    let keeper = fixture.create(code("keeps", json!({}))).await;
    fake.supports_speculation.lock().unwrap().extend(["keeps".to_owned(), "quick".into()]);
    fake.keeps.lock().unwrap().insert("keeps".into());
    let runner = fixture.start_with(&fake, one_slot());
    wait_for_empty_queue(&fixture, "quick").await;
    let first = ask(&fixture, request("keeps"), Some("once")).await.unwrap().unwrap();
    assert_eq!(fixture.answer(first.id).await.status, ResponseStatus::Success);
    assert_eq!(fake.forgotten.borrow().get(&keeper), None);
    let mut forgotten = fake.forgotten.subscribe();
    // As soon as the place of the one before is free, it computes.
    while !forgotten.has_changed().unwrap() {
        let again = ask(&fixture, request("keeps"), Some("once")).await.unwrap().unwrap();
        assert_eq!((again.id, again.replayed), (first.id, true));
    }
    assert!(forgotten.borrow_and_update().contains_key(&keeper));
    runner.stop().await;
}
