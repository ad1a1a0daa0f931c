//! Tenants that are created and deleted in another cell.

use rcrt_breadcrumb::{BreadcrumbQuery, StoreError, Tenancy};
use rcrt_cells::{CellError, HOME, set_default_cell};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::note;
use uuid::Uuid;

use crate::harness::{CellsHarness, EAST, available, cell_of};

/// A new tenant where the operator wants it.
async fn new(harness: &CellsHarness, cell: Option<&str>) -> (Uuid, String) {
    let (id, name) = (Uuid::new_v4(), format!("tenant {}", Uuid::new_v4()));
    let (made, is_new) = harness.cells.put_tenant(id, &name, cell).await.unwrap();
    assert_eq!((made.id, made.name.as_str(), is_new), (id, name.as_str(), true));
    (id, name)
}

async fn delete(harness: &CellsHarness, tenant: Uuid) -> Result<(), StoreError> {
    available(|| harness.cells.delete_tenant(tenant)).await
}

fn refused_as_only<T: std::fmt::Debug>(deleted: Result<T, StoreError>) {
    let Err(StoreError::Invalid(found)) = deleted else { panic!("{deleted:?}") };
    assert_eq!(found.0[0].field, "id");
    assert!(found.0[0].message.contains("is the only tenant"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_only_tenant_of_all_is_not_deleted_in_its_cell() {
    let harness = CellsHarness::start().await;
    let agent = harness.agent(new(&harness, Some(EAST)).await.0).await;
    let tenant = agent.identity.owner_id;
    refused_as_only(delete(&harness, tenant).await);
    agent.create(note("still here"), None).await.unwrap();
    harness.at_home().await;
    delete(&harness, tenant).await.unwrap();
    assert!(harness.cells.tenants().await.unwrap().iter().all(|one| one.id != tenant));
    harness.close().await;
}

/// One of them stays, and can be deleted once there is another tenant, whatever was done in its
/// cell.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_the_last_two_tenants_one_stays() {
    let harness = CellsHarness::start().await;
    let ((one, _), (two, _)) = (new(&harness, Some(EAST)).await, new(&harness, Some(EAST)).await);
    let deleted = tokio::join!(delete(&harness, one), delete(&harness, two));
    let (left, refused) = if deleted.0.is_ok() { (two, deleted.1) } else { (one, deleted.0) };
    refused_as_only(refused);
    let ids: Vec<Uuid> = harness.cells.tenants().await.unwrap().iter().map(|tenant| tenant.id).collect();
    assert_eq!(ids, [left]);
    harness.at_home().await;
    delete(&harness, left).await.unwrap();
    harness.close().await;
}

/// Every server knows it at once: no key is refused, and no write is lost.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_begins_in_the_named_cell_or_in_the_default_one() {
    let harness = CellsHarness::start().await;
    let other = harness.another().await;
    let (first, name) = new(&harness, None).await;
    assert_eq!(cell_of(&harness.home, first, &name).await, HOME);
    // On a server that has not opened the cell yet.
    let (there, name) = new(&harness, Some(EAST)).await;
    assert_eq!(cell_of(&harness.home, there, &name).await, EAST);
    let agent = harness.agent(there).await;
    let here = other.here(&agent);
    available(|| here.create(note("on the other server"), None)).await.unwrap();
    assert_eq!(agent.list(&BreadcrumbQuery::default()).await.unwrap().len(), 1);

    set_default_cell(&harness.home, EAST).await.unwrap();
    let (second, name) = new(&other, None).await;
    assert_eq!(cell_of(&harness.home, second, &name).await, EAST);
    let (third, name) = new(&other, Some(HOME)).await;
    assert_eq!(cell_of(&harness.home, third, &name).await, HOME);
    // It was never written in the first cell, and can move there.
    harness.move_to(second, HOME).await.unwrap().expect("a move");
    set_default_cell(&harness.home, HOME).await.unwrap();
    let (fourth, name) = new(&harness, None).await;
    assert_eq!(cell_of(&harness.home, fourth, &name).await, HOME);
    let missing = set_default_cell(&harness.home, "west").await;
    assert!(matches!(missing, Err(CellError::NoCell(_))), "{missing:?}");
    other.close().await;
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_is_refused_if_it_does_not_exist_or_the_tenant_is_in_another() {
    let harness = CellsHarness::start().await;
    let (there, name) = new(&harness, Some(EAST)).await;
    let renamed = harness.cells.put_tenant(there, "renamed", Some(EAST)).await.unwrap();
    assert!(!renamed.1 && renamed.0.name == "renamed");
    for (id, cell) in [(there, HOME), (Uuid::new_v4(), "west")] {
        let refused = harness.cells.put_tenant(id, &name, Some(cell)).await;
        let Err(StoreError::Invalid(found)) = refused else { panic!("{refused:?}") };
        assert_eq!(found.0[0].field, "cell");
    }
    assert_eq!(harness.cells.tenants().await.unwrap().len(), 1);
    harness.close().await;
}
