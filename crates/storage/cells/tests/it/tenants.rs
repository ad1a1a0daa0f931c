//! Tenants that are created and deleted in another cell.

use rcrt_breadcrumb::{StoreError, Tenancy};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::note;
use uuid::Uuid;

use crate::harness::{CellsHarness, available};

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
    let agent = harness.agent(harness.tenant().await).await;
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
    let (one, two) = (harness.tenant().await, harness.tenant().await);
    let deleted = tokio::join!(delete(&harness, one), delete(&harness, two));
    let (left, refused) = if deleted.0.is_ok() { (two, deleted.1) } else { (one, deleted.0) };
    refused_as_only(refused);
    let ids: Vec<Uuid> = harness.cells.tenants().await.unwrap().iter().map(|tenant| tenant.id).collect();
    assert_eq!(ids, [left]);
    harness.at_home().await;
    delete(&harness, left).await.unwrap();
    harness.close().await;
}
