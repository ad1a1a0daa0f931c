//! A runner in the process that writes the requests.

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{
    Breadcrumbs, BreadcrumbsDecorator, CallState, Claim, ClaimTerms, Created, Identity, NewAgent, NewBreadcrumb,
    Profile, ResponseStatus, Role, StoreError, Tenancy, TenancyDecorator, ToolRequest, schema_names,
};
use rcrt_runner::{LocalDispatch, Runner, RunnerOptions};
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, LONG_LEASE, Running, code, options};

/// The number of calls that were claimed or finished when they were written.
pub async fn count_claimed_at_write(fixture: &Fixture) -> i64 {
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    sqlx::query_scalar(
        "SELECT count(*) FROM calls
         WHERE finished_at = queued_at OR fence = (extract(epoch FROM queued_at) * 1000000)::bigint",
    )
    .fetch_one(&mut admin)
    .await
    .unwrap()
}

/// Starts a runner, and returns when it knows that the queue is empty.
async fn start_with_empty_queue(fixture: &Fixture, tool: &str) -> Running {
    let runner = fixture.start(&Fake::new());
    let mut calls = 0;
    while count_claimed_at_write(fixture).await == 0 {
        calls += 1;
        assert!(calls < 1000, "no call was taken before it was written");
        fixture.call(tool, json!({})).await;
    }
    runner
}

/// Returns when the runner knows that the queue is empty. The tool waits for this gate.
pub async fn wait_for_empty_queue_behind(fixture: &Fixture, gate: &Semaphore, tool: &str) {
    for _ in 0..1000 {
        gate.add_permits(1);
        fixture.call(tool, json!({})).await;
        if count_claimed_at_write(fixture).await > 0 {
            return;
        }
    }
    panic!("no call was taken before it was written");
}

#[tokio::test]
async fn an_idle_runner_takes_calls_without_the_queue() {
    let fixture = Fixture::new().await;
    fixture.create(code("echo", json!({}))).await;
    let runner = start_with_empty_queue(&fixture, "echo").await;
    let (mut begun, mut calls) = (count_claimed_at_write(&fixture).await, 0);
    let enough = begun + 5;
    while begun < enough {
        calls += 1;
        assert!(calls < 1000, "an idle runner takes calls before they are written");
        let response = fixture.call("echo", json!({"n": calls})).await;
        assert_eq!(response.output, Some(json!({"input": {"n": calls}, "version": 1})));
        assert_eq!(response.metadata["attempt"], json!(1));
        // On a busy machine, some calls go to the queue.
        let was_taken = count_claimed_at_write(&fixture).await > begun;
        assert_eq!(response.metadata["stages"]["queue_ms"] == json!(0.0), was_taken);
        begun += i64::from(was_taken);
    }
    // A call of an unknown tool goes to the queue and gets its response.
    assert_eq!(fixture.call("ecko", json!({})).await.status, ResponseStatus::Error);
    assert_eq!(count_claimed_at_write(&fixture).await, enough);
    runner.stop().await;
    let waits = fixture.ask("echo", json!({})).await;
    assert_eq!(fixture.person.call(waits).await.unwrap().state, CallState::Queued);
}

#[tokio::test]
async fn more_calls_than_slots_are_each_run_once() {
    const CALLS: usize = 12;
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({}))).await;
    fixture.create(code("echo", json!({}))).await;
    let gate = fake.waits("waits");
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 2, max_calls_per_tool: 1, ..options() });
    while count_claimed_at_write(&fixture).await == 0 {
        fixture.call("echo", json!({})).await;
    }
    let mut asked = Vec::new();
    for _ in 0..CALLS {
        asked.push(fixture.ask("waits", json!({})).await);
    }
    // Calls beyond the slots and the limit of waiting calls are in the queue.
    let is_running = |progress: &crate::fake::RunCounts| progress.running.get("waits") == Some(&1);
    fake.until(is_running).await;
    assert_eq!(fixture.call("echo", json!({})).await.status, ResponseStatus::Success, "another tool has a slot");
    while states(&fixture, &asked).await.iter().filter(|state| **state == CallState::Queued).count() < CALLS - 1 {
        tokio::task::yield_now().await;
    }
    gate.add_permits(CALLS);
    for request in &asked {
        assert_eq!(fixture.answer(*request).await.metadata["attempt"], 1);
    }
    let mut begun = fake.begun.lock().unwrap().clone();
    begun.retain(|request| asked.contains(request));
    begun.sort_unstable();
    asked.sort_unstable();
    assert_eq!(begun, asked);
    assert_eq!(fake.progress.borrow().most["waits"], 1, "the cap held");
    runner.stop().await;
}

async fn states(fixture: &Fixture, requests: &[Uuid]) -> Vec<CallState> {
    let mut states = Vec::new();
    for request in requests {
        states.push(fixture.person.call(*request).await.unwrap().state);
    }
    states
}

#[tokio::test]
async fn a_stopping_runner_releases_calls_that_wait_for_a_slot() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("waits", json!({}))).await;
    let gate = fake.waits("waits");
    let runner = fixture.start_with(&fake, RunnerOptions { max_calls: 2, max_calls_per_tool: 1, ..options() });
    wait_for_empty_queue_behind(&fixture, &gate, "waits").await;
    let first = fixture.ask("waits", json!({})).await;
    fake.until(|progress| progress.running.get("waits") == Some(&1)).await;
    let second = fixture.ask("waits", json!({})).await;
    runner.request_stop();
    gate.add_permits(1);
    runner.stop().await;
    assert_eq!(fixture.answer(first).await.status, ResponseStatus::Success);
    let call = fixture.person.call(second).await.unwrap();
    assert_eq!((call.state, call.attempt), (CallState::Queued, 0));
    let next = fixture.start(&Fake::new());
    assert_eq!(fixture.answer(second).await.metadata["attempt"], 1);
    next.stop().await;
}

/// A call that was written as running has used its attempt.
#[tokio::test]
async fn calls_of_a_lost_runner_are_retried_if_an_attempt_is_left() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("again", json!({"limits": {"max_attempts": 2}}))).await;
    fixture.create(code("once", json!({}))).await;
    let runner = fixture.start_with(&fake, RunnerOptions { lease: LONG_LEASE, ..options() });
    while count_claimed_at_write(&fixture).await == 0 {
        fixture.call("again", json!({})).await;
    }
    let _never = (fake.waits("again"), fake.waits("once"));
    let (again, once) = (fixture.ask("again", json!({})).await, fixture.ask("once", json!({})).await);
    fake.until(|progress| progress.running.values().sum::<usize>() == 2).await;
    runner.kill().await;
    fixture.end_leases().await;
    let next = fixture.start(&Fake::new());
    assert_eq!(fixture.answer(again).await.metadata["attempt"], 2);
    let lost = fixture.answer(once).await;
    assert_eq!((lost.status, lost.is_retryable), (ResponseStatus::Error, Some(true)));
    next.stop().await;
}

/// A store whose connection is lost during each write of a request with its claim.
struct LosesConnections {
    store: Arc<dyn Tenancy>,
    is_written: bool,
}

struct LosingStore {
    store: Arc<dyn Breadcrumbs>,
    is_written: bool,
}

impl TenancyDecorator for LosesConnections {
    fn inner(&self) -> &dyn Tenancy {
        &*self.store
    }

    fn acting_as(&self, identity: Identity) -> Arc<dyn Breadcrumbs> {
        Arc::new(LosingStore { store: self.store.acting_as(identity), is_written: self.is_written })
    }
}

#[async_trait]
impl BreadcrumbsDecorator for LosingStore {
    fn inner(&self) -> &dyn Breadcrumbs {
        &*self.store
    }

    async fn create_claimed(
        &self,
        request: NewBreadcrumb,
        idempotency_key: Option<&str>,
        terms: ClaimTerms,
    ) -> Result<(Created, Option<Claim>), StoreError> {
        if self.is_written {
            self.store.create_claimed(request, idempotency_key, terms).await?;
        }
        Err(StoreError::Unavailable("the connection was lost".into()))
    }
}

/// A runner behind such a store, which has lost the connection once. Returns the agent that made
/// the requests.
async fn after_a_lost_connection(
    fixture: &Fixture,
    fake: &Arc<Fake>,
    is_written: bool,
    options: RunnerOptions,
) -> (Running, Arc<dyn Breadcrumbs>) {
    let dispatch = LocalDispatch::over(Arc::new(LosesConnections { store: fixture.store.clone(), is_written }));
    let agent = NewAgent { name: "losing".into(), roles: Role::ALL.to_vec(), profile: Profile::Main, tools: None };
    let agent = fixture.store.create_agent(fixture.owner, None, agent).await.unwrap().agent;
    let identity = Identity { owner_id: fixture.owner, agent_id: agent.id, roles: agent.roles, profile: Profile::Main };
    let registration = dispatch.registration(&identity);
    let store = Tenancy::acting_as(&*dispatch, identity);
    let runner = Runner::new(store.clone(), fake.executors(), options).with_local_dispatch(registration);
    let runner = Running::of(runner);
    for _ in 0..1000 {
        match store.create(ToolRequest::record("acts", json!({}), None, Some("workspace:test")), None).await {
            Ok(request) => drop(fixture.answer(request.id).await),
            Err(StoreError::Unavailable(_)) => return (runner, store),
            Err(other) => panic!("{other}"),
        }
    }
    panic!("no call was claimed when it was written");
}

#[tokio::test]
async fn a_request_that_was_written_before_the_connection_was_lost_is_answered_once() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("acts", json!({}))).await;
    let (runner, _) = after_a_lost_connection(&fixture, &fake, true, options()).await;
    let requests = fixture.list(schema_names::TOOL_REQUEST).await;
    for request in &requests {
        assert_eq!(fixture.answer(request.id).await.metadata["attempt"], 1);
    }
    assert_eq!(fake.begun.lock().unwrap().len(), requests.len());
    runner.stop().await;
}

#[tokio::test]
async fn a_request_that_was_lost_with_the_connection_occupies_no_slot() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("acts", json!({}))).await;
    let options = RunnerOptions { max_calls: 1, max_calls_per_tool: 1, ..options() };
    let (runner, _) = after_a_lost_connection(&fixture, &fake, false, options).await;
    // Through another dispatcher, so that it is in the queue.
    assert_eq!(fixture.call("acts", json!({})).await.status, ResponseStatus::Success);
    runner.stop().await;
}

#[tokio::test]
async fn requests_of_another_tenant_are_not_dispatched_to_this_runner() {
    let fixture = Fixture::new().await;
    fixture.create(code("echo", json!({}))).await;
    let runner = start_with_empty_queue(&fixture, "echo").await;
    let other = fixture.store.ensure_tenant("other").await.unwrap().id;
    let agent = NewAgent { name: "stranger".into(), roles: Role::ALL.to_vec(), profile: Profile::Main, tools: None };
    let agent = fixture.store.create_agent(other, None, agent).await.unwrap().agent;
    let identity = Identity { owner_id: other, agent_id: agent.id, roles: agent.roles, profile: Profile::Main };
    let stranger = Tenancy::acting_as(&*fixture.dispatch, identity);
    let record = ToolRequest::record("echo", json!({}), None, Some("workspace:test"));
    let request = stranger.create(record, None).await.unwrap().id;
    assert_eq!(stranger.call(request).await.unwrap().state, CallState::Queued);
    runner.stop().await;
}

#[tokio::test]
async fn a_runner_without_local_dispatch_takes_calls_only_from_the_queue() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("echo", json!({}))).await;
    let runner = Running::start(fixture.runner.clone(), &fake, options());
    for n in 0..20 {
        assert_eq!(fixture.call("echo", json!({"n": n})).await.status, ResponseStatus::Success);
    }
    assert_eq!(count_claimed_at_write(&fixture).await, 0);
    runner.stop().await;
}
