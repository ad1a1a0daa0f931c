//! A tenant in another cell is the same tenant.

use futures::StreamExt;
use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbQuery, EventNumber, NewSecret, StoreError, SubscribeOptions, SubscriptionItem,
    SubscriptionStream, Tenancy,
};
use rcrt_cells::HOME;
use rcrt_conformance::harness::{PATIENCE, answer_to, claim_of, next, note, request};
use rcrt_conformance::{Agent, Harness};
use rcrt_postgres::{DATABASE, PostgresOptions, SUPERUSER, default_cache_dir};
use serde_json::json;
use tokio::sync::Notify;
use uuid::Uuid;

use crate::harness::{CellsHarness, EAST, available, cell_of};

/// What the test looks at before and after a move.
async fn everything(agent: &Agent) -> String {
    let records = agent.list(&BreadcrumbQuery::default()).await.unwrap();
    let mut seen = Vec::new();
    for record in records {
        seen.push(format!("{:?} {:?}", agent.get(record.id).await.unwrap(), agent.history(record.id).await.unwrap()));
    }
    seen.sort();
    let secrets = agent.secrets().await.unwrap();
    format!("{seen:#?} {secrets:?}")
}

/// Reads up to the event of this record.
async fn seen_up_to(items: &mut SubscriptionStream, record: Uuid) {
    let reading = async {
        loop {
            if let SubscriptionItem::Event(event) = items.next().await.expect("no end").unwrap()
                && event.breadcrumb_id == record
            {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the event");
}

/// The stream ends, because the tenant moved.
async fn assert_ended(mut items: SubscriptionStream) {
    let reading = async {
        loop {
            match items.next().await {
                Some(Ok(_)) => {}
                Some(Err(StoreError::Unavailable(why))) => break assert!(why.contains("has moved"), "{why}"),
                other => panic!("{other:?}"),
            }
        }
    };
    tokio::time::timeout(PATIENCE, reading).await.expect("the end of the stream");
    assert!(items.next().await.is_none());
}

async fn moves_there_and_back(harness: &CellsHarness) {
    let agent = harness.at_home().await;
    let tenant = agent.identity.owner_id;
    let name = harness.cells.tenant(tenant).await.unwrap().unwrap().name;
    let id = agent.create(note("one"), None).await.unwrap().id;
    let changes = BreadcrumbChanges { title: Some("two".into()), ..BreadcrumbChanges::default() };
    agent.update(id, 1, changes).await.unwrap();
    let secret = agent.create_secret(NewSecret::new("KEY", "the value")).await.unwrap().id;
    let queued = agent.create(request(), None).await.unwrap().id;
    let before = agent.latest_event().await.unwrap();
    let mut written_last = queued;

    for cell in [EAST, HOME] {
        let seen = everything(&agent).await;
        let mut stream = agent.subscribe(SubscribeOptions::all(Some(EventNumber(0)))).await.unwrap();
        seen_up_to(&mut stream, written_last).await;
        let moved = harness.move_to(tenant, cell).await.unwrap().expect("a move");
        assert_eq!((moved.tenant, moved.to.as_str()), (tenant, cell));
        assert!(moved.rows > 8, "{moved:?}");
        assert_eq!(cell_of(&harness.home, tenant, &name).await, cell);
        assert_ended(stream).await;
        assert_eq!(everything(&agent).await, seen);
        assert_eq!(agent.decrypt_secret(secret, "a test", None).await.unwrap(), "the value");
        assert!(harness.move_to(tenant, cell).await.unwrap().is_none());

        // The numbers of events go on, so a subscriber resumes where it was.
        let mut events = agent.events(Some(before)).await.unwrap();
        let newer = available(|| agent.create(note(cell), None)).await.unwrap().id;
        loop {
            let event = next(&mut events).await;
            assert!(event.number > before);
            if event.breadcrumb_id == newer {
                break;
            }
        }
        written_last = newer;
    }
    // The call was queued before the moves.
    let claims = agent.claim(&claim_of(8)).await.unwrap();
    assert_eq!(claims.iter().map(|claim| claim.request.id).collect::<Vec<_>>(), [queued]);
    agent.start(claims[0].lease, 1).await.unwrap();
    // A lease moves too.
    harness.move_to(tenant, EAST).await.unwrap().expect("a move");
    let answer = answer_to(&claims[0], json!("done"));
    available(|| agent.complete(claims[0].lease, answer.clone())).await.unwrap();

    // The last tenant of `home` stays.
    harness.at_home().await;
    harness.cells.delete_tenant(tenant).await.unwrap();
    assert!(harness.cells.agent_status(tenant, agent.identity.agent_id).await.unwrap().agent.is_none());
    assert_ne!(harness.cells.ensure_tenant(&name).await.unwrap().id, tenant);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_tenant_keeps_records_calls_secrets_and_event_numbers() {
    let harness = CellsHarness::start().await;
    moves_there_and_back(&harness).await;
    harness.close().await;
}

/// The clusters count transactions differently.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn cells_can_be_different_clusters() {
    let folder = tempfile::Builder::new().prefix("rcrt-cell-").tempdir().unwrap();
    let options =
        PostgresOptions { data_dir: folder.path().to_owned(), cache_dir: default_cache_dir(), durable: false };
    let postgres = rcrt_postgres::start(options, &|_| {}).await.unwrap();
    let harness = CellsHarness::with_east(postgres.url(SUPERUSER, DATABASE)).await;
    moves_there_and_back(&harness).await;
    harness.close().await;
    postgres.stop().await;
}

/// Wherever it ends, the next command finishes or undoes it, and nothing is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_interrupted_move_is_finished_or_undone_by_the_next_one() {
    let harness = CellsHarness::start().await;
    let agent = harness.at_home().await;
    let tenant = agent.identity.owner_id;
    let mut expected = 0;
    for (step, to) in [
        ("Preparing", EAST),
        ("Copying", EAST),
        ("Deleting", EAST),
        // Back again: the tenant stays where it is.
        ("Copying", HOME),
    ] {
        let from_home = harness.move_to(tenant, HOME).await.unwrap();
        assert!(from_home.is_none() || expected > 0);
        expected += 1;
        available(|| agent.create(note(step), None)).await.unwrap();
        let reached = Notify::new();
        let progress = |said: &str| {
            if said.starts_with(step) {
                reached.notify_one();
            }
        };
        let named = tenant.to_string();
        tokio::select! {
            biased;
            () = reached.notified() => {}
            moved = rcrt_cells::move_tenant(&harness.home, &named, EAST, &progress) => panic!("{moved:?}"),
        }
        harness.move_to(tenant, to).await.unwrap();
        available(|| agent.create(note("after"), None)).await.unwrap();
        expected += 1;
        let listed = agent.list(&BreadcrumbQuery::default()).await.unwrap();
        assert_eq!(listed.len(), expected, "after {step}");
        let cells = rcrt_cells::cells(&harness.home).await.unwrap();
        assert!(cells.iter().all(|cell| cell.unfinished.is_empty()), "{cells:?}");
        let there = cells.iter().find(|cell| !cell.tenants.is_empty() && cell.name == EAST);
        assert_eq!(there.is_some(), to == EAST);
    }
    harness.close().await;
}
