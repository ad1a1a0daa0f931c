//! What happens while a tenant moves.

use std::collections::HashSet;

use rcrt_breadcrumb::{BreadcrumbQuery, EventNumber, StoreError, Tenancy};
use rcrt_cells::HOME;
use rcrt_conformance::harness::{next, note};
use rcrt_conformance::{Agent, Harness};
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

/// Otherwise its agents and their tokens would stay valid in the new cell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_is_not_deleted_while_it_moves() {
    let harness = CellsHarness::start().await;
    let tenant = harness.at_home().await.identity.owner_id;
    harness.at_home().await;
    let copies = Notify::new();
    let progress = |said: &str| {
        if said.starts_with("Copying") {
            copies.notify_one();
        }
    };
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
