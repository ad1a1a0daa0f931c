//! Grants and public records across cells.

use rcrt_breadcrumb::{AclChange, Action, StoreError, Visibility};
use rcrt_cells::CellError;
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{assert_not_found, note};

use crate::harness::{CellsHarness, EAST, available};

fn refused_with<T: std::fmt::Debug>(granted: Result<T, StoreError>, field: &str) {
    let Err(StoreError::Invalid(found)) = granted else { panic!("{granted:?}") };
    assert_eq!(found.0[0].field, field);
    assert!(found.0[0].message.contains("grants do not reach another cell"), "{found:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_grant_to_another_cell_is_refused_and_says_why() {
    let harness = CellsHarness::start().await;
    let (here, there) = (harness.at_home().await, harness.agent(harness.tenant().await).await);
    for (from, to) in [(&here, &there), (&there, &here)] {
        let id = from.create(note("shared"), None).await.unwrap().id;
        let (tenant, agent) = (to.identity.owner_id, to.identity.agent_id);
        refused_with(from.grant(&AclChange::tenant(id, tenant, Action::ALL)).await, "grantee_owner_id");
        refused_with(from.grant(&AclChange::agent(id, agent, Action::ALL)).await, "grantee_agent_id");
        assert_not_found(to.get(id).await);
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_with_grants_to_others_does_not_move() {
    let harness = CellsHarness::start().await;
    let (giver, taker) = (harness.at_home().await, harness.at_home().await);
    let id = giver.create(note("shared"), None).await.unwrap().id;
    let grant = AclChange::tenant(id, taker.identity.owner_id, [Action::ReadFull]);
    giver.grant(&grant).await.unwrap();
    for tenant in [&giver, &taker] {
        let moved = harness.move_to(tenant.identity.owner_id, EAST).await;
        assert!(matches!(moved, Err(CellError::Grants(_))), "{moved:?}");
        tenant.create(note("still here"), None).await.unwrap();
    }
    assert_eq!(giver.revoke(&grant).await.unwrap(), 1);
    harness.move_to(taker.identity.owner_id, EAST).await.unwrap().expect("a move");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_public_record_is_seen_from_every_cell() {
    let harness = CellsHarness::start().await;
    let (here, there) = (harness.at_home().await, harness.agent(harness.tenant().await).await);
    let public = |title: &str| rcrt_breadcrumb::NewBreadcrumb { visibility: Visibility::Public, ..note(title) };
    for (from, to) in [(&here, &there), (&there, &here)] {
        let id = available(|| from.create(public("open"), None)).await.unwrap().id;
        assert_eq!(to.view(id).await.unwrap().title, "open");
        assert_eq!(to.version(id, false).await.unwrap(), 1);
        assert_not_found(to.get(id).await);
        let hidden = from.create(note("hidden"), None).await.unwrap().id;
        assert_not_found(to.view(hidden).await);
    }
    harness.close().await;
}
