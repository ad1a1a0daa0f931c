//! What happens while a tenant moves.

use std::collections::HashSet;
use std::time::Duration;

use rcrt_breadcrumb::{BreadcrumbQuery, EventNumber, PublishRule, StoreError, Tenancy, TenantQuotas};
use rcrt_cells::{CellError, HOME};
use rcrt_conformance::harness::{PATIENCE, next, note};
use rcrt_conformance::{Agent, Harness};
use sqlx::Connection;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{CellsHarness, EAST, available};

/// Writes until it is stopped. Returns what was acknowledged, and how often a write was refused.
async fn write(agent: Agent, stop: CancellationToken) -> (HashSet<Uuid>, usize) {
    let (mut written, mut refused) = (HashSet::new(), 0);
    while !stop.is_cancelled() {
        match agent.create(note("meanwhile"), None).await {
            Ok(created) => {
                written.insert(created.id);
            }
            Err(StoreError::Unavailable(_)) => {
                refused += 1;
                tokio::task::yield_now().await;
            }
            Err(error) => panic!("{error}"),
        }
    }
    (written, refused)
}

async fn all(agent: &Agent) -> HashSet<Uuid> {
    let mut found = HashSet::new();
    loop {
        let query = BreadcrumbQuery { limit: 100, offset: found.len() as u32, ..BreadcrumbQuery::default() };
        let page = agent.list(&query).await.unwrap();
        if page.is_empty() {
            return found;
        }
        found.extend(page.into_iter().map(|item| item.id));
    }
}

/// Two servers write, of which one knows of the switch later than the other. Each acknowledged
/// write is there once, and nothing that was refused is.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_stay_and_others_are_refused() {
    let harness = CellsHarness::start().await;
    let other = harness.another().await;
    let agent = harness.at_home().await;
    let tenant = agent.identity.owner_id;
    let stop = CancellationToken::new();
    let writers = [agent.clone(), other.here(&agent)].map(|agent| tokio::spawn(write(agent, stop.clone())));
    for cell in [EAST, HOME, EAST] {
        harness.move_to(tenant, cell).await.unwrap().expect("a move");
        available(|| agent.create(note("between"), None)).await.unwrap();
    }
    stop.cancel();
    let (mut written, mut refused) = (HashSet::new(), 0);
    for writer in writers {
        let (more, refusals) = writer.await.unwrap();
        written.extend(more);
        refused += refusals;
    }
    assert!(refused > 0);
    // The other server knows of the last move, and reads the same.
    let there = other.here(&agent);
    available(|| there.create(note("last"), None)).await.unwrap();
    let found = all(&agent).await;
    assert_eq!(found.len(), written.len() + 4);
    assert!(written.is_subset(&found));
    assert_eq!(all(&there).await, found);
    other.close().await;
    harness.close().await;
}

/// The numbers of the new cell begin again while others write there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_subscriber_in_the_new_cell_misses_nothing() {
    let harness = CellsHarness::start().await;
    let resident = harness.agent(harness.tenant().await).await;
    let first = available(|| resident.create(note("first"), None)).await.unwrap().id;
    let mut events = resident.events(Some(EventNumber(0))).await.unwrap();
    while next(&mut events).await.breadcrumb_id != first {}
    let stop = CancellationToken::new();
    let writers = [(); 3].map(|()| tokio::spawn(write(resident.clone(), stop.clone())));
    let guest = harness.at_home().await.identity.owner_id;
    for cell in [EAST, HOME, EAST] {
        harness.move_to(guest, cell).await.unwrap().expect("a move");
    }
    stop.cancel();
    let mut written = HashSet::new();
    for writer in writers {
        let (more, refused) = writer.await.unwrap();
        assert_eq!(refused, 0);
        written.extend(more);
    }
    let mut last = EventNumber(0);
    while !written.is_empty() {
        let event = next(&mut events).await;
        assert!(event.number > last);
        last = event.number;
        assert!(written.remove(&event.breadcrumb_id), "an event came twice");
    }
    harness.close().await;
}

/// For the progress of a move.
fn at_the_copy(copies: &Notify) -> impl Fn(&str) + Send + Sync {
    |said| {
        if said.starts_with("Copying") {
            copies.notify_one();
        }
    }
}

/// Otherwise its agents and their tokens would stay valid in the new cell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_is_not_deleted_while_it_moves() {
    let harness = CellsHarness::start().await;
    let tenant = harness.at_home().await.identity.owner_id;
    harness.at_home().await;
    let copies = Notify::new();
    let progress = at_the_copy(&copies);
    let named = tenant.to_string();
    tokio::select! {
        biased;
        () = copies.notified() => {}
        moved = rcrt_cells::move_tenant(&harness.home, &named, EAST, &progress) => panic!("{moved:?}"),
    }
    let refused = harness.cells.delete_tenant(tenant).await;
    assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
    harness.move_to(tenant, EAST).await.unwrap().expect("a move");
    available(|| harness.cells.delete_tenant(tenant)).await.unwrap();
    assert!(harness.cells.tenants().await.unwrap().iter().all(|one| one.id != tenant));
    assert!(harness.cells.tenant(tenant).await.unwrap().is_none());
    harness.close().await;
}

/// The new cell would not have what was changed after the copy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_is_not_changed_while_it_moves() {
    let harness = CellsHarness::start().await;
    let tenant = harness.at_home().await.identity.owner_id;
    let cells = &harness.cells;
    // As a write that has not ended: the move waits for it before it copies.
    let mut home = CellsHarness::admin(&harness.home).await;
    let mut writing = home.begin().await.unwrap();
    let lock = "SELECT pg_advisory_xact_lock_shared(hashtextextended('rcrt.cells ' || $1::text, 0))";
    sqlx::query(lock).bind(tenant).execute(&mut *writing).await.unwrap();
    let quotas = TenantQuotas { max_records: Some(7), ..TenantQuotas::default() };
    let copies = Notify::new();
    let (named, progress) = (tenant.to_string(), at_the_copy(&copies));
    let changing = async {
        copies.notified().await;
        for refused in [
            cells.set_quotas(tenant, quotas).await,
            cells.set_publish(tenant, PublishRule::Curator).await,
            cells.put_tenant(tenant, "renamed", None).await.map(|_| ()),
        ] {
            assert!(matches!(refused, Err(StoreError::Unavailable(_))), "{refused:?}");
        }
        writing.commit().await.unwrap();
    };
    let (moved, ()) = tokio::join!(rcrt_cells::move_tenant(&harness.home, &named, EAST, &progress), changing);
    moved.unwrap().expect("a move");
    available(|| cells.set_quotas(tenant, quotas)).await.unwrap();
    available(|| cells.put_tenant(tenant, "renamed", None)).await.unwrap();
    assert_eq!(cells.usage(tenant).await.unwrap().own.max_records, Some(7));
    assert_eq!(cells.tenant(tenant).await.unwrap().unwrap().name, "renamed");
    harness.close().await;
}

/// Otherwise a deletion that began before the move would not see its rows in the new cell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_does_not_move_while_it_is_deleted() {
    let harness = CellsHarness::start().await;
    let tenant = harness.at_home().await.identity.owner_id;
    harness.at_home().await;
    // Another deletion, for which this one waits.
    let mut home = CellsHarness::admin(&harness.home).await;
    let mut other = home.begin().await.unwrap();
    let lock = "SELECT pg_advisory_xact_lock(hashtextextended('rcrt.delete_tenant', 0))";
    sqlx::query(lock).execute(&mut *other).await.unwrap();
    let cells = harness.cells.clone();
    let deleting = tokio::spawn(async move { cells.delete_tenant(tenant).await });
    let waits = "SELECT EXISTS (SELECT FROM pg_locks l JOIN pg_database d ON d.oid = l.database
        WHERE l.locktype = 'advisory' AND NOT l.granted AND d.datname = current_database())";
    let waiting = async {
        while !sqlx::query_scalar::<_, bool>(waits).fetch_one(&mut *other).await.unwrap() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(PATIENCE, waiting).await.expect("the deletion");
    let refused = rcrt_cells::move_tenant(&harness.home, &tenant.to_string(), EAST, &|_| {}).await;
    assert!(matches!(refused, Err(CellError::Busy)), "{refused:?}");
    other.commit().await.unwrap();
    deleting.await.unwrap().unwrap();
    let gone = harness.move_to(tenant, EAST).await;
    assert!(matches!(gone, Err(CellError::NoTenant(_))), "{gone:?}");
    harness.close().await;
}
