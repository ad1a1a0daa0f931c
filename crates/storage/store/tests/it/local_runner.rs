//! Runners in the store's process, that take calls as they are written.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcrt_breadcrumb::{
    Admission, CallState, Claim, Event, LocalRunner, LocalRunnerGuard, NewBreadcrumb, Profiles, Release, Reservation,
    SpeculativeResponse, StoreError, UncommittedCall, Visibility, schema_names,
};
use rcrt_conformance::harness::{answer_to, claim_of, next, request};
use rcrt_conformance::{Agent, Harness};
use serde_json::json;
use sqlx::Connection;
use tokio::sync::{mpsc, watch};
use uuid::Uuid;

use crate::harness::StoreHarness;

const MAX_ATTEMPTS: u32 = 2;

/// Takes calls of one tool, as many as it is allowed.
struct Taker {
    runner_id: Uuid,
    tool: String,
    lease_ms: u64,
    left: AtomicUsize,
    max_attempts: Option<u32>,
    /// Offers that were made, and neither begun nor dropped.
    open: Arc<AtomicUsize>,
    asked: Mutex<Vec<Profiles>>,
    begun: mpsc::UnboundedSender<Claim>,
    /// What it answers before requests are written, where it does.
    early: Mutex<Option<Answers>>,
    /// Until then it keeps them back.
    go: watch::Sender<bool>,
    answered: Mutex<Vec<Uuid>>,
}

/// The response to a request that is not written yet, or none.
type Answers = Arc<dyn Fn(&UncommittedCall) -> Option<NewBreadcrumb> + Send + Sync>;

struct Open(Arc<AtomicUsize>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Taker {
    fn take(self: &Arc<Self>, tool: &str, uncommitted: UncommittedCall) -> Option<Reservation> {
        let take = |left: usize| left.checked_sub(1);
        if tool != self.tool || self.left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, take).is_err() {
            return None;
        }
        self.open.fetch_add(1, Ordering::SeqCst);
        let (open, taker) = (Open(self.open.clone()), self.clone());
        let begin = move |admitted| {
            match admitted {
                Admission::Claimed(at) => taker.begun.send(uncommitted.claim(at)).unwrap(),
                Admission::Answered => taker.answered.lock().unwrap().push(uncommitted.request.id),
            }
            drop(open);
        };
        Some(Reservation::new(self.runner_id, self.lease_ms, self.max_attempts, Box::new(begin)))
    }
}

/// The store's end of it.
struct Asked(Arc<Taker>);

impl LocalRunner for Asked {
    fn reserve(
        &self,
        tool: &str,
        profiles: &Profiles,
        uncommitted: &dyn Fn() -> UncommittedCall,
    ) -> Option<Reservation> {
        self.0.asked.lock().unwrap().push(profiles.clone());
        self.0.take(tool, uncommitted())
    }

    fn reserve_speculative(
        &self,
        tool: &str,
        _: &Profiles,
        uncommitted: &dyn Fn() -> UncommittedCall,
    ) -> Option<(Reservation, SpeculativeResponse)> {
        let answers = self.0.early.lock().unwrap().clone()?;
        let (answer, reservation) = (answers(&uncommitted()), self.0.take(tool, uncommitted())?);
        let go = self.0.go.subscribe();
        Some((
            reservation,
            Box::pin(async move {
                let _ = { go }.wait_for(|goes| *goes).await;
                answer
            }),
        ))
    }
}

struct Standing {
    taker: Arc<Taker>,
    begun: mpsc::UnboundedReceiver<Claim>,
    standing: LocalRunnerGuard,
}

fn register_local_runner(agent: &Agent, calls: usize, lease_ms: u64) -> Standing {
    register_local_runner_with(agent, calls, lease_ms, Some(MAX_ATTEMPTS))
}

fn register_local_runner_with(agent: &Agent, calls: usize, lease_ms: u64, max_attempts: Option<u32>) -> Standing {
    let (sender, begun) = mpsc::unbounded_channel();
    let tool = request().context["tool"].as_str().unwrap().to_owned();
    let taker = Arc::new(Taker {
        runner_id: Uuid::new_v4(),
        tool,
        lease_ms,
        left: AtomicUsize::new(calls),
        max_attempts,
        open: Arc::default(),
        asked: Mutex::default(),
        begun: sender,
        early: Mutex::default(),
        go: watch::Sender::new(true),
        answered: Mutex::default(),
    });
    let standing = agent.store.register_local_runner(Arc::new(Asked(taker.clone())));
    Standing { taker, begun, standing }
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
async fn a_call_that_is_taken_on_begins_its_life_running() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    let mut standing = register_local_runner(&agent, 1, 60_000);
    let mut wanted = request();
    wanted.context.insert("deadline_ms".into(), json!(30_000));
    wanted.tags.push("profile:subagent".into());
    let id = agent.create(wanted, None).await.unwrap().id;

    let claim = standing.begun.recv().await.unwrap();
    assert_eq!(claim.request, agent.get(id).await.unwrap());
    assert_eq!((claim.attempt, claim.time_left_ms), (1, Some(30_000)));
    let profiles: Vec<String> = claim.profiles.iter().map(|profile| profile.to_string()).collect();
    assert_eq!(profiles, ["subagent"]);
    assert_eq!(*standing.taker.asked.lock().unwrap(), std::slice::from_ref(&claim.profiles));
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.attempt, call.max_attempts), (CallState::Running, 1, MAX_ATTEMPTS));
    assert_eq!(call.queued_at, claim.queued_at);
    assert!(agent.claim(&claim_of(5)).await.unwrap().is_empty(), "nobody else gets it");

    agent.heartbeat(&[claim.lease], 60_000).await.unwrap();
    let response = agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.response), (CallState::Finished, Some(response)));
    assert_eq!([next(&mut events).await.breadcrumb_id, next(&mut events).await.breadcrumb_id], [id, response]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_nobody_takes_on_waits_in_the_queue() {
    let harness = StoreHarness::start().await;
    let (agent, stranger) = (harness.alone().await, harness.alone().await);
    let mut standing = register_local_runner(&agent, 1, 60_000);
    let mut other = request();
    other.context.insert("tool".into(), json!("another"));
    let other = agent.create(other, None).await.unwrap().id;
    let of_stranger = stranger.create(request(), None).await.unwrap().id;
    let mut ended = request();
    ended.ttl = Some(chrono::Utc::now() - chrono::TimeDelta::seconds(1));
    agent.create(ended, None).await.unwrap();
    let first = agent.create(request(), None).await.unwrap().id;
    let second = agent.create(request(), None).await.unwrap().id;
    assert_eq!(standing.begun.recv().await.unwrap().request.id, first);
    let waiting: Vec<Uuid> = agent.claim(&claim_of(5)).await.unwrap().iter().map(|claim| claim.request.id).collect();
    assert_eq!(waiting, [other, second]);
    assert_eq!(stranger.claim(&claim_of(5)).await.unwrap()[0].request.id, of_stranger);

    standing.taker.left.store(9, Ordering::SeqCst);
    drop(standing.standing);
    let third = agent.create(request(), None).await.unwrap().id;
    assert_eq!(agent.call(third).await.unwrap().state, CallState::Queued);
    assert!(standing.begun.try_recv().is_err());
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_repetition_takes_nobody_and_a_failed_write_lets_go() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut standing = register_local_runner(&agent, 9, 60_000);
    let first = agent.create(request(), Some("key")).await.unwrap();
    assert_eq!(standing.begun.recv().await.unwrap().request.id, first.id);
    let again = agent.create(request(), Some("key")).await.unwrap();
    assert_eq!((again.id, again.replayed), (first.id, true));
    let mut admin = harness.admin().await;
    sqlx::raw_sql(
        "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = '53100'; END $$;
         CREATE TRIGGER refuse BEFORE INSERT ON breadcrumbs FOR EACH ROW EXECUTE FUNCTION refuse()",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    agent.create(request(), None).await.unwrap_err();
    assert!(standing.begun.try_recv().is_err());
    assert_eq!(standing.taker.open.load(Ordering::SeqCst), 0, "no place is kept");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_cannot_run_it_after_all_gives_it_back_as_if_nothing_had_been() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut standing = register_local_runner(&agent, 1, 60_000);
    let id = agent.create(request(), None).await.unwrap().id;
    let claim = standing.begun.recv().await.unwrap();
    agent.release(claim.lease, Release::Unstarted).await.unwrap();
    let call = agent.call(id).await.unwrap();
    assert_eq!((call.state, call.attempt), (CallState::Queued, 0));
    // Whoever claims and starts it then cannot say that it did not.
    let claim = agent.claim(&claim_of(1)).await.unwrap().remove(0);
    assert_eq!((claim.request.id, claim.attempt), (id, 1));
    agent.start(claim.lease, 1).await.unwrap();
    agent.release(claim.lease, Release::Unstarted).await.unwrap_err();
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_runner_that_is_lost_with_it_has_had_its_attempt() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    // A lease that has ended when it is written.
    let mut standing = register_local_runner(&agent, 1, 0);
    let id = agent.create(request(), None).await.unwrap().id;
    let claim = standing.begun.recv().await.unwrap();
    // Rescued by the store: an attempt is left.
    let second = rescued(&agent).await;
    assert_eq!((second.request.id, second.attempt), (id, 2));
    assert!(second.lease.fence > claim.lease.fence);
    agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap_err();
    agent.start(second.lease, MAX_ATTEMPTS).await.unwrap();
    agent.complete(second.lease, answer_to(&second, json!(2))).await.unwrap();
    assert_eq!(next(&mut events).await.breadcrumb_id, id);
    let response: Event = next(&mut events).await;
    assert_eq!(response.schema_name.as_deref(), Some(schema_names::TOOL_RESPONSE));
    assert_eq!(response.context["output"], json!(2));
    harness.close().await;
}

/// The store finds what it wrote on a connection that was lost, and the runner begins, once.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_whose_connection_is_lost_begin_once() {
    const CALLS: usize = 20;
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut standing = register_local_runner(&agent, CALLS, 60_000);
    let (mut admin, mut other) = (harness.admin().await, harness.admin().await);
    let mut lock = admin.begin().await.unwrap();
    sqlx::query("LOCK TABLE breadcrumbs, calls IN SHARE MODE").execute(&mut *lock).await.unwrap();
    let writes: Vec<_> = (0..CALLS)
        .map(|_| {
            let store = agent.store.clone();
            tokio::spawn(async move { store.create(request(), None).await.unwrap().id })
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
    let mut written = Vec::new();
    for write in writes {
        written.push(write.await.unwrap());
    }
    let mut begun = Vec::new();
    for _ in 0..CALLS {
        let claim = standing.begun.recv().await.unwrap();
        agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
        begun.push(claim.request.id);
    }
    written.sort_unstable();
    begun.sort_unstable();
    assert_eq!(begun, written);
    assert_eq!(standing.taker.open.load(Ordering::SeqCst), 0);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_without_a_place_begins_its_life_claimed_and_is_lost_unstarted() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut standing = register_local_runner_with(&agent, 1, 0, None);
    let id = agent.create(request(), None).await.unwrap().id;
    let lost = standing.begun.recv().await.unwrap();
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
    let mut standing = register_local_runner_with(&agent, 2, 60_000, None);
    for (succeeds, attempts) in [(true, 1), (false, 0)] {
        let id = agent.create(request(), None).await.unwrap().id;
        let claim = standing.begun.recv().await.unwrap();
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

/// A taker that answers with this before requests are written.
fn answering(
    agent: &Agent,
    answers: impl Fn(&UncommittedCall) -> Option<NewBreadcrumb> + Send + Sync + 'static,
) -> Standing {
    let standing = register_local_runner(agent, 99, 60_000);
    *standing.taker.early.lock().unwrap() = Some(Arc::new(answers));
    standing
}

fn yes(uncommitted: &UncommittedCall) -> NewBreadcrumb {
    let claim = UncommittedCall {
        request: uncommitted.request.clone(),
        profiles: uncommitted.profiles.clone(),
        time_left_ms: None,
    };
    let mut answer = answer_to(&claim.claim(chrono::Utc::now()), json!("early"));
    answer.visibility = uncommitted.request.visibility;
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_answered_early_begins_its_life_finished() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    let mut standing = answering(&agent, |uncommitted| Some(yes(uncommitted)));
    let mut wanted = Vec::new();
    // Many at once, some of them with keys, share their statements.
    for n in 0..20 {
        let (store, key) = (agent.store.clone(), format!("key {n}"));
        wanted.push(tokio::spawn(
            async move { store.create(request(), (n % 2 == 0).then_some(&*key)).await.unwrap().id },
        ));
    }
    let mut requests = Vec::new();
    for one in wanted {
        requests.push(one.await.unwrap());
    }
    let mut heard = Vec::new();
    for _ in 0..40 {
        heard.push(next(&mut events).await.breadcrumb_id);
    }
    for id in &requests {
        let call = agent.call(*id).await.unwrap();
        assert_eq!((call.state, call.attempt, call.max_attempts), (CallState::Finished, 1, MAX_ATTEMPTS));
        let (asked, answer) = (agent.get(*id).await.unwrap(), agent.get(call.response.unwrap()).await.unwrap());
        assert_eq!((&answer.context["output"], answer.created_at), (&json!("early"), asked.created_at));
        assert_eq!(answer.created_by, Some(agent.identity.agent_id));
        let place = |id| heard.iter().position(|heard| *heard == id).unwrap();
        assert_eq!(place(answer.id), place(asked.id) + 1, "the answer comes right after its request");
    }
    assert_eq!(standing.taker.answered.lock().unwrap().len(), 20);
    assert_eq!(standing.taker.open.load(Ordering::SeqCst), 0);
    assert!(standing.begun.try_recv().is_err() && agent.claim(&claim_of(5)).await.unwrap().is_empty());
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_goes_nowhere_without_its_request() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let standing = answering(&agent, |uncommitted| Some(yes(uncommitted)));
    let first = agent.create(request(), Some("key")).await.unwrap();
    let again = agent.create(request(), Some("key")).await.unwrap();
    assert_eq!((again.id, again.replayed), (first.id, true));
    let mut other = request();
    other.title = "Another".into();
    assert!(matches!(agent.create(other, Some("key")).await, Err(StoreError::IdempotencyMismatch)));
    let count = |schema: &'static str| {
        let agent = agent.clone();
        async move {
            let selector = rcrt_breadcrumb::Selector { schema_name: Some(schema.into()), ..Default::default() };
            let query = rcrt_breadcrumb::BreadcrumbQuery { selector, ..Default::default() };
            agent.list(&query).await.unwrap().len()
        }
    };
    assert_eq!((count(schema_names::TOOL_REQUEST).await, count(schema_names::TOOL_RESPONSE).await), (1, 1));
    assert_eq!(*standing.taker.answered.lock().unwrap(), [first.id]);
    assert_eq!(standing.taker.open.load(Ordering::SeqCst), 0, "no place is kept");
    harness.close().await;
}

/// A request is not refused for what is wrong with its answer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_that_cannot_be_written_leaves_the_call_to_its_runner() {
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
    let unwritable =
        |uncommitted: &UncommittedCall| Some(NewBreadcrumb { title: "unwritable".into(), ..yes(uncommitted) });
    let no_response = |uncommitted: &UncommittedCall| Some(NewBreadcrumb { schema_name: None, ..yes(uncommitted) });
    for answers in [Arc::new(unwritable) as Answers, Arc::new(no_response), Arc::new(|_: &UncommittedCall| None)] {
        let mut standing = answering(&agent, move |uncommitted| answers(uncommitted));
        let id = agent.create(request(), None).await.unwrap().id;
        let claim = standing.begun.recv().await.unwrap();
        assert_eq!((claim.request.id, agent.call(id).await.unwrap().state), (id, CallState::Running));
        agent.complete(claim.lease, answer_to(&claim, json!(1))).await.unwrap();
        assert!(standing.taker.answered.lock().unwrap().is_empty());
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_early_answer_to_what_is_private_is_of_who_asked() {
    let harness = StoreHarness::start().await;
    let tenant = harness.tenant().await;
    let (runner, asker) = (
        harness.agent(tenant).await,
        harness.agent_with(tenant, &[rcrt_breadcrumb::Role::Emitter, rcrt_breadcrumb::Role::Subscriber]).await,
    );
    let _standing = answering(&runner, |uncommitted| Some(yes(uncommitted)));
    let wanted = NewBreadcrumb { visibility: Visibility::Private, ..request() };
    let id = asker.create(wanted, None).await.unwrap().id;
    let response = asker.call(id).await.unwrap().response.unwrap();
    let answer = asker.get(response).await.unwrap();
    assert_eq!((answer.created_by, answer.visibility), (Some(asker.identity.agent_id), Visibility::Private));
    harness.close().await;
}

/// The runner has begun with it, and what an agent sets going is written down.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_is_kept_back_is_written_whoever_waits() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let mut events = agent.events(None).await.unwrap();
    let standing = answering(&agent, |uncommitted| Some(yes(uncommitted)));
    standing.taker.go.send_replace(false);
    let store = agent.store.clone();
    let gone = tokio::spawn(async move { store.create(request(), None).await });
    while standing.taker.open.load(Ordering::SeqCst) == 0 {
        tokio::task::yield_now().await;
    }
    gone.abort();
    assert!(gone.await.unwrap_err().is_cancelled());
    standing.taker.go.send_replace(true);
    let (asked, answer) = (next(&mut events).await, next(&mut events).await);
    assert_eq!(agent.call(asked.breadcrumb_id).await.unwrap().response, Some(answer.breadcrumb_id));
    harness.close().await;
}
