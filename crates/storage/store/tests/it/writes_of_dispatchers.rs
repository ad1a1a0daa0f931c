//! Requests whose call is claimed, or answered, in the statement that writes them.

use rcrt_breadcrumb::{
    AnsweredTerms, CallQuery, CallState, Claim, ClaimTerms, Created, NewBreadcrumb, Profiles, Release, StoreError,
    Visibility, schema_names,
};
use rcrt_conformance::harness::{answer_to, claim_of, next, request};
use rcrt_conformance::{Agent, Harness};
use serde_json::json;
use sqlx::Connection;
use uuid::Uuid;

use crate::harness::StoreHarness;

const MAX_ATTEMPTS: u32 = 2;

fn terms(lease_ms: u64, max_attempts: Option<u32>) -> ClaimTerms {
    ClaimTerms { id: Uuid::now_v7(), runner_id: Uuid::new_v4(), lease_ms, max_attempts }
}

/// Writes a request whose call begins running.
async fn running(agent: &Agent, lease_ms: u64) -> Claim {
    agent.create_claimed(request(), None, terms(lease_ms, Some(MAX_ATTEMPTS))).await.unwrap().1.unwrap()
}

/// The response to a request that is not written yet, by this agent.
fn answered(agent: &Agent, request: &NewBreadcrumb) -> AnsweredTerms {
    let (id, owner_id) = (Uuid::now_v7(), agent.identity.owner_id);
    let uncommitted = request.clone().into_first_version(id, owner_id, None, Default::default(), chrono::Utc::now());
    let mut response = answer_to(&Claim::at_write(uncommitted, Profiles::default(), None), json!("early"));
    response.visibility = request.visibility;
    AnsweredTerms { id, response, responder: agent.identity.agent_id, max_attempts: MAX_ATTEMPTS }
}

async fn create_answered(agent: &Agent, request: NewBreadcrumb, key: Option<&str>) -> Result<Created, StoreError> {
    let terms = answered(agent, &request);
    agent.create_answered(request, key, terms).await
}

async fn duration_ms(agent: &Agent, request: Uuid) -> f64 {
    let query = CallQuery { request_id: Some(request.to_string()), ..CallQuery::default() };
    let calls = agent.list_calls(&query).await.unwrap().calls;
    assert_eq!(agent.call_details(request).await.unwrap().summary, calls[0]);
    calls[0].duration_ms.unwrap()
}

/// The call whose lease has ended, once the store has put it back.
async fn rescued(agent: &Agent) -> Claim {
    loop {
        if let Some(claim) = agent.claim(&claim_of(1)).await.unwrap().pop() {
            return claim;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_written_with_an_attempt_is_running() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    let mut wanted = request();
    wanted.context.insert("deadline_ms".into(), json!(30_000));
    wanted.tags.push("profile:subagent".into());
    let terms = terms(60_000, Some(MAX_ATTEMPTS));
    let (created, claim) = agent.create_claimed(wanted, None, terms).await.unwrap();
    let (id, claim) = (created.id, claim.unwrap());
    assert_eq!(id, terms.id);
    assert_eq!(claim.request, agent.get(id).await.unwrap());
    assert_eq!((claim.attempt, claim.time_left_ms), (1, Some(30_000)));
    let profiles: Vec<String> = claim.profiles.iter().map(|profile| profile.to_string()).collect();
    assert_eq!(profiles, ["subagent"]);
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.attempt, call.max_attempts), (CallState::Running, 1, MAX_ATTEMPTS));
    assert_eq!(call.queued_at, claim.queued_at);
    assert!(agent.claim(&claim_of(5)).await.unwrap().is_empty(), "no other runner gets it");

    agent.heartbeat(&[claim.lease], 60_000).await.unwrap();
    let response = agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.response), (CallState::Finished, Some(response)));
    assert!(duration_ms(&agent, id).await >= 3.0, "the run of 3 ms began before the request was written");
    assert_eq!([next(&mut events).await.breadcrumb_id, next(&mut events).await.breadcrumb_id], [id, response]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_and_a_failed_write_claim_nothing() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let claimed = |key| agent.create_claimed(request(), key, terms(60_000, Some(MAX_ATTEMPTS)));
    let (first, claim) = claimed(Some("key")).await.unwrap();
    assert_eq!(claim.unwrap().request.id, first.id);
    let (again, claim) = claimed(Some("key")).await.unwrap();
    assert_eq!((again.id, again.replayed, claim), (first.id, true, None));
    let mut admin = harness.admin().await;
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON breadcrumbs FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    assert_eq!(claimed(None).await.unwrap_err(), StoreError::Full);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_a_request_is_claimed_or_answered_as_it_is_written() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let note = NewBreadcrumb { title: "Note".into(), ..NewBreadcrumb::default() };
    let refused = agent.create_claimed(note.clone(), None, terms(60_000, None)).await.unwrap_err();
    assert!(matches!(refused, StoreError::Invalid(_)), "{refused:?}");
    let terms = answered(&agent, &request());
    let refused = agent.create_answered(note, None, terms.clone()).await.unwrap_err();
    assert!(matches!(refused, StoreError::Invalid(_)), "{refused:?}");
    assert!(matches!(agent.get(terms.id).await, Err(StoreError::NotFound { .. })));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_running_call_that_was_claimed_at_write_can_be_released_unstarted() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let claim = running(&agent, 60_000).await;
    let id = claim.request.id;
    agent.release(claim.lease, Release::Unstarted).await.unwrap();
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.attempt), (CallState::Queued, 0));
    // A runner that claims and starts it later cannot report that it did not start.
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    assert_eq!((claim.request.id, claim.attempt), (id, 1));
    agent.start(claim.lease, 1).await.unwrap();
    agent.release(claim.lease, Release::Unstarted).await.unwrap_err();
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lost_runner_has_used_the_attempt_of_a_running_call() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    // A lease that has ended when it is written.
    let claim = running(&agent, 0).await;
    let id = claim.request.id;
    // Rescued by the store: an attempt is left.
    let second = rescued(&agent).await;
    assert_eq!((second.request.id, second.attempt), (id, 2));
    assert!(second.lease.fence > claim.lease.fence);
    agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap_err();
    agent.start(second.lease, MAX_ATTEMPTS).await.unwrap();
    agent.complete(second.lease, answer_to(&second, json!(2))).await.unwrap();
    assert_eq!(next(&mut events).await.breadcrumb_id, id);
    let response = next(&mut events).await;
    assert_eq!(response.schema_name.as_deref(), Some(schema_names::TOOL_RESPONSE));
    assert_eq!(response.context["output"], json!(2));
    harness.close().await;
}

/// The store finds what it wrote on a connection that was lost, and returns its claim.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_whose_connection_is_lost_are_claimed_once() {
    const CALLS: usize = 20;
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let (mut admin, mut other) = (harness.admin().await, harness.admin().await);
    let mut lock = admin.begin().await.unwrap();
    sqlx::query("LOCK TABLE breadcrumbs, calls IN SHARE MODE").execute(&mut *lock).await.unwrap();
    let writes: Vec<_> = (0..CALLS)
        .map(|_| {
            let (store, terms) = (agent.store.clone(), terms(60_000, Some(MAX_ATTEMPTS)));
            tokio::spawn(async move { store.create_claimed(request(), None, terms).await.unwrap() })
        })
        .collect();
    let blocked = "SELECT count(pg_terminate_backend(pid)) FROM pg_locks WHERE NOT granted
                   AND relation = 'breadcrumbs'::regclass
                   AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
    let mut ended = 0;
    while ended < 2 {
        ended += sqlx::query_scalar::<_, i64>(blocked).fetch_one(&mut other).await.unwrap();
    }
    lock.rollback().await.unwrap();
    for write in writes {
        let (created, claim) = write.await.unwrap();
        let claim = claim.unwrap();
        assert_eq!(created.id, claim.request.id);
        agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
    }
    assert!(agent.claim(&claim_of(5)).await.unwrap().is_empty(), "none is left");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_written_without_an_attempt_is_claimed_and_lost_unstarted() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let lost = agent.create_claimed(request(), None, terms(0, None)).await.unwrap().1.unwrap();
    let id = lost.request.id;
    // Its lease had ended when it was written, and no attempt is had.
    let claim = rescued(&agent).await;
    assert_eq!((claim.request.id, claim.attempt), (id, 1));
    agent.complete(lost.lease, answer_to(&lost, json!(1))).await.unwrap_err();
    agent.release(claim.lease, Release::Unstarted).await.unwrap();
    harness.close().await;
}

/// What the tool gave is an attempt, started or not; what was said for it is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_without_a_start_counts_where_it_is_the_tools() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    for (succeeds, attempts) in [(true, 1), (false, 0)] {
        let claim = agent.create_claimed(request(), None, terms(60_000, None)).await.unwrap().1.unwrap();
        let id = claim.request.id;
        let call = agent.call(id).await.unwrap();
        assert_eq!((call.state, call.attempt), (CallState::Claimed, 0));
        let mut answer = answer_to(&claim, json!(1));
        if !succeeds {
            answer.context.insert("status".into(), json!("error"));
        }
        agent.complete(claim.lease, answer).await.unwrap();
        let call = agent.call(id).await.unwrap();
        assert_eq!((call.state, call.attempt), (CallState::Finished, attempts));
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_written_with_its_response_is_finished() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    let mut wanted = Vec::new();
    // Many at once, some of them with keys, share their statements.
    for n in 0..20 {
        let (agent, key) = (agent.clone(), format!("key {n}"));
        wanted.push(tokio::spawn(async move {
            create_answered(&agent, request(), (n % 2 == 0).then_some(&*key)).await.unwrap().id
        }));
    }
    let mut requests = Vec::new();
    for one in wanted {
        requests.push(one.await.unwrap());
    }
    let mut seen = Vec::new();
    for _ in 0..40 {
        seen.push(next(&mut events).await.breadcrumb_id);
    }
    for id in &requests {
        let call = agent.call(*id).await.unwrap();
        assert_eq!((call.state, call.attempt, call.max_attempts), (CallState::Finished, 1, MAX_ATTEMPTS));
        let (asked, answer) = (agent.get(*id).await.unwrap(), agent.get(call.response.unwrap()).await.unwrap());
        assert_eq!((&answer.context["output"], answer.created_at), (&json!("early"), asked.created_at));
        assert_eq!(answer.created_by, Some(agent.identity.agent_id));
        let position = |id| seen.iter().position(|seen| *seen == id).unwrap();
        assert_eq!(position(answer.id), position(asked.id) + 1, "the answer comes right after its request");
    }
    assert!(agent.claim(&claim_of(5)).await.unwrap().is_empty());
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_is_not_written_without_its_request() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let first = create_answered(&agent, request(), Some("key")).await.unwrap();
    assert!((duration_ms(&agent, first.id).await - 3.0).abs() < f64::EPSILON, "as long as the tool ran");
    let again = create_answered(&agent, request(), Some("key")).await.unwrap();
    assert_eq!((again.id, again.replayed), (first.id, true));
    let mut other = request();
    other.title = "Another".into();
    assert!(matches!(create_answered(&agent, other, Some("key")).await, Err(StoreError::IdempotencyMismatch)));
    let count = |schema: &'static str| {
        let agent = agent.clone();
        async move {
            let selector = rcrt_breadcrumb::Selector { schema_name: Some(schema.into()), ..Default::default() };
            let query = rcrt_breadcrumb::BreadcrumbQuery { selector, ..Default::default() };
            agent.list(&query).await.unwrap().len()
        }
    };
    assert_eq!((count(schema_names::TOOL_REQUEST).await, count(schema_names::TOOL_RESPONSE).await), (1, 1));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_that_cannot_be_written_is_an_error_and_nothing_is_written() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut admin = harness.admin().await;
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '23514'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON breadcrumbs FOR EACH ROW
         WHEN (NEW.title = 'unwritable') EXECUTE FUNCTION refuse()",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    let unwritable = |response| NewBreadcrumb { title: "unwritable".into(), ..response };
    let no_response = |response| NewBreadcrumb { schema_name: None, ..response };
    for spoil in [unwritable as fn(NewBreadcrumb) -> NewBreadcrumb, no_response] {
        let mut terms = answered(&agent, &request());
        terms.response = spoil(terms.response);
        agent.create_answered(request(), Some("key"), terms.clone()).await.unwrap_err();
        assert!(matches!(agent.get(terms.id).await, Err(StoreError::NotFound { .. })));
    }
    // The request itself is fine, and its key is free.
    let claimed = agent.create_claimed(request(), Some("key"), terms(60_000, None)).await.unwrap();
    assert!(claimed.1.is_some() && !claimed.0.replayed);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_response_to_a_private_request_belongs_to_the_agent_that_asked() {
    let harness = StoreHarness::start().await;
    let tenant = harness.tenant().await;
    let (runner, asker) = (
        harness.agent(tenant).await,
        harness.agent_with(tenant, &[rcrt_breadcrumb::Role::Emitter, rcrt_breadcrumb::Role::Subscriber]).await,
    );
    let wanted = NewBreadcrumb { visibility: Visibility::Private, ..request() };
    let terms = AnsweredTerms { responder: runner.identity.agent_id, ..answered(&asker, &wanted) };
    let id = asker.create_answered(wanted, None, terms).await.unwrap().id;
    let response = asker.call(id).await.unwrap().response.unwrap();
    let answer = asker.get(response).await.unwrap();
    assert_eq!((answer.created_by, answer.visibility), (Some(asker.identity.agent_id), Visibility::Private));
    harness.close().await;
}
