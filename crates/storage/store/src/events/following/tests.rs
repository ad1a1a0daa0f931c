#![allow(clippy::unwrap_used)]

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use rcrt_breadcrumb::{Breadcrumbs, Identity, NewAgent, NewBreadcrumb, Profile, Role, StoreError, Tenancy};
use rcrt_test_database::TestDatabase;
use serde_json::json;
use sqlx::{Connection, PgConnection};
use tokio::sync::watch;

use super::step::StepOutcome;
use super::*;
use crate::SecretsKey;
use crate::Store;
use crate::StoreOptions;
use crate::database::failure::Failure;

/// Records the events it took in a table of the tenant, and counts calls in memory.
struct RecordingFollower {
    in_every_tenant: bool,
    caught_up: Mutex<Vec<CatchUpReason>>,
    failures: AtomicUsize,
    /// The tenants of its steps, in order.
    steps: watch::Sender<Vec<Uuid>>,
    /// How many events it prepares at once.
    most: usize,
    /// A test holds it to block `prepare`.
    preparing: tokio::sync::Mutex<()>,
}

const NAME: &str = "noting";

impl RecordingFollower {
    fn new(in_every_tenant: bool) -> Arc<Self> {
        Self::preparing_at_most(in_every_tenant, usize::MAX)
    }

    fn preparing_at_most(in_every_tenant: bool, most: usize) -> Arc<Self> {
        let (caught_up, failures, preparing) = (Mutex::default(), AtomicUsize::new(0), tokio::sync::Mutex::default());
        Arc::new(Self { in_every_tenant, caught_up, failures, steps: watch::Sender::new(Vec::new()), most, preparing })
    }
}

#[async_trait]
impl Follower for RecordingFollower {
    fn name(&self) -> &'static str {
        NAME
    }

    fn is_in_every_tenant(&self) -> bool {
        self.in_every_tenant
    }

    type Prepared = ();

    async fn prepare(&self, _owner_id: Uuid, events: &[EventHeader]) -> Result<((), usize)> {
        let _held = self.preparing.lock().await;
        Ok(((), events.len().min(self.most)))
    }

    async fn take(&self, tx: &mut TenantTransaction, events: &[EventHeader], (): ()) -> Result<()> {
        let (owner_id, numbers) = (tx.owner_id, events.iter().map(|event| event.number).collect::<Vec<_>>());
        // A serial number shows the order in which they were taken.
        sqlx::query(
            "INSERT INTO audit (owner_id, action, subject, subject_name)
             SELECT $1, 'tool.noted', $1, n::text FROM unnest($2) WITH ORDINALITY AS g (n, ordinal) ORDER BY ordinal",
        )
        .bind(owner_id)
        .bind(&numbers)
        .execute(tx.connection())
        .await?;
        if self.failures.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(1)).is_ok() {
            return Err(Failure::Store(StoreError::Internal("broken".into())));
        }
        Ok(())
    }

    async fn catch_up(&self, _tx: &mut TenantTransaction, missed: CatchUpReason) -> Result<()> {
        self.caught_up.lock().unwrap().push(missed);
        Ok(())
    }

    fn stepped(&self, owner_id: Uuid) {
        self.steps.send_modify(|steps| steps.push(owner_id));
    }
}

struct World {
    database: TestDatabase,
    store: Arc<Store>,
    tenant: Uuid,
    agent: Arc<dyn Breadcrumbs>,
}

async fn open(database: &TestDatabase) -> Arc<Store> {
    let options = StoreOptions {
        app_url: Some(database.app_url.clone()),
        ..StoreOptions::new(&database.admin_url, SecretsKey::from_bytes([9; 32]))
    };
    Store::open(options, &|_| {}).await.unwrap()
}

impl World {
    async fn start() -> Self {
        let database = TestDatabase::new().await;
        let store = open(&database).await;
        let tenant = store.ensure_tenant("one").await.unwrap().id;
        let agent = agent(&store, tenant).await;
        Self { database, store, tenant, agent }
    }

    /// The events taken in this tenant, in the order in which they were taken.
    async fn noted(&self, tenant: Uuid) -> Vec<i64> {
        let mut admin = PgConnection::connect(&self.database.admin_url).await.unwrap();
        let noted: Vec<String> = sqlx::query_scalar(
            "SELECT subject_name FROM audit WHERE owner_id = $1 AND action = 'tool.noted' ORDER BY id",
        )
        .bind(tenant)
        .fetch_all(&mut admin)
        .await
        .unwrap();
        noted.iter().map(|number| number.parse().unwrap()).collect()
    }

    /// Waits until the follower has caught up, and returns what it took.
    async fn noted_all(&self, tenant: Uuid) -> Vec<i64> {
        let mut admin = PgConnection::connect(&self.database.admin_url).await.unwrap();
        loop {
            let is_behind: bool = sqlx::query_scalar(
                "SELECT coalesce((SELECT max(number) FROM events WHERE owner_id = $1), 0) >
                    coalesce((SELECT number FROM event_cursors WHERE owner_id = $1 AND follower = $2), 0)",
            )
            .bind(tenant)
            .bind(NAME)
            .fetch_one(&mut admin)
            .await
            .unwrap();
            if !is_behind {
                return self.noted(tenant).await;
            }
            tokio::task::yield_now().await;
        }
    }

    async fn events(&self, tenant: Uuid) -> Vec<i64> {
        let mut admin = PgConnection::connect(&self.database.admin_url).await.unwrap();
        sqlx::query_scalar("SELECT number FROM events WHERE owner_id = $1 ORDER BY number")
            .bind(tenant)
            .fetch_all(&mut admin)
            .await
            .unwrap()
    }

    async fn admin(&self, sql: &'static str) {
        let mut admin = PgConnection::connect(&self.database.admin_url).await.unwrap();
        sqlx::query(sql).execute(&mut admin).await.unwrap();
    }
}

async fn agent(store: &Arc<Store>, tenant: Uuid) -> Arc<dyn Breadcrumbs> {
    let agent = NewAgent { name: "writer".into(), roles: vec![Role::Curator], profile: Profile::Main, tools: None };
    let made = store.create_agent(tenant, None, agent).await.unwrap().agent;
    store.acting_as(Identity { owner_id: tenant, agent_id: made.id, roles: made.roles, profile: made.profile })
}

async fn write(agent: &dyn Breadcrumbs, count: usize) {
    for index in 0..count {
        let record = NewBreadcrumb {
            title: format!("note {index}"),
            context: json!({"n": index}).as_object().unwrap().clone(),
            ..NewBreadcrumb::default()
        };
        agent.create(record, None).await.unwrap();
    }
}

fn follow(store: &Store, follower: &Arc<RecordingFollower>) -> tokio::task::JoinHandle<()> {
    store.inner.database.tasks.spawn(run(store.inner.streams.clone(), follower.clone()))
}

async fn first_step_in(follower: &RecordingFollower, tenant: Uuid) {
    follower.steps.subscribe().wait_for(|steps| steps.contains(&tenant)).await.unwrap();
}

#[tokio::test]
async fn takes_each_event_once_and_resumes_at_its_cursor() {
    let world = World::start().await;
    write(&*world.agent, 3).await;
    let first = RecordingFollower::new(true);
    let task = follow(&world.store, &first);
    // The follower catches up on what was written before it.
    first_step_in(&first, world.tenant).await;
    assert_eq!(*first.caught_up.lock().unwrap(), [CatchUpReason::FirstRun]);
    let before = world.noted_all(world.tenant).await;
    write(&*world.agent, 300).await;
    let taken = world.noted_all(world.tenant).await;
    assert_eq!(taken[before.len()..], world.events(world.tenant).await[3..]);
    world.store.close().await;
    task.await.unwrap();

    // Events that are written without a follower are taken by the next one.
    let other = open(&world.database).await;
    let writer = agent_again(&other, world.tenant).await;
    write(&*writer, 2).await;
    let second = RecordingFollower::new(true);
    follow(&other, &second);
    let taken = world.noted_all(world.tenant).await;
    assert_eq!(taken[before.len()..], world.events(world.tenant).await[3..]);
    assert_eq!(*second.caught_up.lock().unwrap(), []);
    other.close().await;
}

async fn agent_again(store: &Arc<Store>, tenant: Uuid) -> Arc<dyn Breadcrumbs> {
    let made = store.agents(tenant).await.unwrap().remove(0);
    store.acting_as(Identity { owner_id: tenant, agent_id: made.id, roles: made.roles, profile: made.profile })
}

#[tokio::test]
async fn two_processes_take_each_event_once_between_them() {
    let world = World::start().await;
    let other = open(&world.database).await;
    let (one, two) = (RecordingFollower::new(true), RecordingFollower::new(true));
    follow(&world.store, &one);
    follow(&other, &two);
    write(&*world.agent, 40).await;
    write(&*agent_again(&other, world.tenant).await, 40).await;
    let taken = world.noted_all(world.tenant).await;
    let events = world.events(world.tenant).await;
    assert!(events.ends_with(&taken), "{taken:?} of {events:?}");
    let followers = [&one, &two].iter().filter(|follower| !follower.steps.borrow().is_empty()).count();
    assert_eq!(followers, 1, "one process holds the lease");
    // When its store closes, the other process continues.
    let (leaving, staying) =
        if one.steps.borrow().is_empty() { (&other, &world.store) } else { (&world.store, &other) };
    leaving.close().await;
    write(&*agent_again(staying, world.tenant).await, 1).await;
    assert_eq!(world.noted_all(world.tenant).await.len(), taken.len() + 1);
    staying.close().await;
}

#[tokio::test]
async fn a_step_whose_cursor_was_moved_is_rolled_back() {
    let world = World::start().await;
    let (one, two) = (RecordingFollower::new(true), RecordingFollower::new(true));
    let at = |follower: &Arc<RecordingFollower>| {
        let (store, follower, tenant) = (world.store.inner.database.clone(), follower.clone(), world.tenant);
        async move { super::step::step(&store, &*follower, tenant).await.unwrap() }
    };
    assert_eq!(at(&one).await, StepOutcome::More);
    write(&*world.agent, 20).await;
    // Other tests' transactions on the same Postgres may hold some or all events back for a while.
    loop {
        let both = tokio::join!(at(&one), at(&two));
        assert_ne!(both, (StepOutcome::Overtaken, StepOutcome::Overtaken), "the cursor lets one of them commit");
        if both == (StepOutcome::Done, StepOutcome::Done) {
            break;
        }
    }
    assert_eq!(world.noted(world.tenant).await, world.events(world.tenant).await);
    world.store.close().await;
}

#[tokio::test]
async fn follows_new_tenants_and_catches_up_after_events_were_deleted() {
    let world = World::start().await;
    let follower = RecordingFollower::new(true);
    let task = follow(&world.store, &follower);
    first_step_in(&follower, world.tenant).await;
    let later = world.store.ensure_tenant("later").await.unwrap().id;
    let writer = agent(&world.store, later).await;
    write(&*writer, 1).await;
    first_step_in(&follower, later).await;
    world.store.close().await;
    task.await.unwrap();

    // All events are deleted while there is no follower.
    let other = open(&world.database).await;
    let writer = agent_again(&other, later).await;
    write(&*writer, 2).await;
    world.admin("UPDATE events SET at = now() - interval '8 days'").await;
    other.prune().await.unwrap();
    write(&*writer, 1).await;
    let second = RecordingFollower::new(true);
    follow(&other, &second);
    first_step_in(&second, later).await;
    // It may catch up twice if another test's open transaction is older than the deleted events.
    let caught_up = second.caught_up.lock().unwrap().clone();
    assert!(
        !caught_up.is_empty() && caught_up.iter().all(|missed| *missed == CatchUpReason::EventsForgotten),
        "{caught_up:?}"
    );
    // Events that were written before its step in this tenant are part of its catch-up.
    let mut taken = Vec::new();
    while taken.is_empty() {
        write(&*writer, 1).await;
        taken = world.noted_all(later).await;
    }
    assert_eq!(taken.last(), world.events(later).await.last());
    other.close().await;
}

#[tokio::test]
async fn a_follower_of_some_tenants_follows_only_there() {
    let world = World::start().await;
    let elsewhere = world.store.ensure_tenant("elsewhere").await.unwrap().id;
    let writer = agent(&world.store, elsewhere).await;
    let follower = RecordingFollower::new(false);
    follow(&world.store, &follower);
    write(&*world.agent, 1).await;
    let mut tx = TenantTransaction::begin(&world.store.inner.database, world.tenant).await.unwrap();
    begin_at_present(&mut tx, NAME).await.unwrap();
    tx.commit().await.unwrap();
    write(&*writer, 1).await;
    write(&*world.agent, 2).await;
    let taken = world.noted_all(world.tenant).await;
    // If another test's transaction was open, an event from just before may come too.
    assert!(taken.ends_with(&world.events(world.tenant).await[1..]), "{taken:?}");
    assert_eq!(world.noted(elsewhere).await, Vec::<i64>::new());
    assert!(follower.caught_up.lock().unwrap().is_empty());
    world.store.close().await;
}

#[tokio::test]
async fn a_failed_step_is_rolled_back_and_retried() {
    let world = World::start().await;
    let follower = RecordingFollower::new(true);
    follow(&world.store, &follower);
    first_step_in(&follower, world.tenant).await;
    follower.failures.store(1, Ordering::Release);
    write(&*world.agent, 1).await;
    let noted = HashMap::<i64, usize>::from_iter([(world.events(world.tenant).await[0], 1)]);
    let mut counted = HashMap::new();
    for number in world.noted_all(world.tenant).await {
        *counted.entry(number).or_default() += 1;
    }
    assert_eq!(counted, noted);
    assert_eq!(follower.failures.load(Ordering::Acquire), 0);
    world.store.close().await;
}

#[tokio::test]
async fn a_partly_prepared_step_continues_with_the_other_events() {
    let world = World::start().await;
    let follower = RecordingFollower::preparing_at_most(true, 2);
    follow(&world.store, &follower);
    first_step_in(&follower, world.tenant).await;
    write(&*world.agent, 7).await;
    assert_eq!(world.noted_all(world.tenant).await, world.events(world.tenant).await);
    world.store.close().await;
}

/// However long preparing takes, it holds no transaction open.
#[tokio::test]
async fn no_transaction_is_open_while_a_follower_prepares() {
    let world = World::start().await;
    let follower = RecordingFollower::new(true);
    follow(&world.store, &follower);
    first_step_in(&follower, world.tenant).await;
    let held = follower.preparing.lock().await;
    write(&*world.agent, 1).await;
    world.database.no_transaction_is_open().await;
    assert_eq!(world.noted(world.tenant).await, Vec::<i64>::new());
    drop(held);
    assert_eq!(world.noted_all(world.tenant).await, world.events(world.tenant).await);
    world.store.close().await;
}
