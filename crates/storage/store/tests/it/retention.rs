//! What the store deletes after its retention.

use rcrt_breadcrumb::{BreadcrumbChanges, Release, StoreError, ToolResponse};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{claim_of, note, request};
use sqlx::PgConnection;
use uuid::Uuid;

use crate::harness::StoreHarness;

async fn is_stored(store: &rcrt_conformance::Agent, id: Uuid) -> bool {
    match store.get(id).await {
        Ok(_) => true,
        Err(StoreError::NotFound { .. }) => false,
        Err(error) => panic!("{error}"),
    }
}

/// All stored times are this much older.
async fn age(admin: &mut PgConnection, days: i32) {
    for (table, columns) in [
        ("breadcrumbs", &["updated_at"][..]),
        ("breadcrumb_versions", &["replaced_at"]),
        ("calls", &["queued_at", "finished_at"]),
        ("events", &["at"]),
    ] {
        for column in columns {
            let sql = format!("UPDATE {table} SET {column} = {column} - make_interval(days => $1)");
            sqlx::query(sqlx::AssertSqlSafe(sql)).bind(days).execute(&mut *admin).await.unwrap();
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_calls_are_deleted_and_open_ones_stay() {
    let harness = StoreHarness::without_sweeps().await;
    let (agent, other) = (harness.alone().await, harness.alone().await);
    let mut admin = harness.admin().await;
    let mut finished = Vec::new();
    // More than one batch.
    for _ in 0..120 {
        let id = agent.create(request(), None).await.unwrap().id;
        agent.cancel(id).await.unwrap();
        finished.extend([id, agent.call(id).await.unwrap().response.unwrap()]);
    }
    let of_other = other.create(request(), None).await.unwrap().id;
    other.cancel(of_other).await.unwrap();
    let (queued, record) =
        (agent.create(request(), None).await.unwrap().id, agent.create(note("a note"), None).await.unwrap().id);
    let running = agent.create(request(), None).await.unwrap().id;
    let claims = agent.claim(&claim_of(2)).await.unwrap();
    for claim in claims {
        if claim.lease.request == running {
            agent.start(claim.lease, 1).await.unwrap();
        } else {
            agent.release(claim.lease, Release::Unstarted).await.unwrap();
        }
    }
    age(&mut admin, 29).await;
    harness.store.prune().await.unwrap();
    for id in &finished {
        assert!(is_stored(&agent, *id).await, "younger than 30 days");
    }
    age(&mut admin, 2).await;
    let latest = agent.create(request(), None).await.unwrap().id;
    agent.cancel(latest).await.unwrap();
    harness.store.prune().await.unwrap();
    for id in finished {
        assert!(!is_stored(&agent, id).await);
    }
    assert!(!is_stored(&other, of_other).await);
    for id in [queued, running, record, latest] {
        assert!(is_stored(&agent, id).await);
    }
    // A call that ends late is counted from its end.
    agent.cancel(queued).await.unwrap();
    harness.store.prune().await.unwrap();
    assert!(is_stored(&agent, queued).await);
    let tag = ToolResponse::tag(&queued.to_string());
    assert!(is_stored(&agent, agent.call(queued).await.unwrap().response.unwrap()).await, "{tag}");
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn old_versions_are_deleted_after_they_were_replaced() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let mut admin = harness.admin().await;
    let id = agent.create(note("first"), None).await.unwrap().id;
    agent.update(id, 1, BreadcrumbChanges::default()).await.unwrap();
    age(&mut admin, 60).await;
    agent.update(id, 2, BreadcrumbChanges::default()).await.unwrap();
    age(&mut admin, 31).await;
    harness.store.prune().await.unwrap();
    let versions: Vec<i64> = agent.history(id).await.unwrap().iter().map(|one| one.version).collect();
    assert_eq!(versions, [3, 2], "version 2 was replaced 31 days ago");
    age(&mut admin, 60).await;
    harness.store.prune().await.unwrap();
    assert_eq!(agent.history(id).await.unwrap().len(), 1);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_stores_role_reads_what_is_stored() {
    let harness = StoreHarness::without_sweeps().await;
    let agent = harness.alone().await;
    let id = agent.create(request(), None).await.unwrap().id;
    agent.cancel(id).await.unwrap();
    agent.create(note("a note"), None).await.unwrap();
    let sizes = rcrt_store::stored_sizes(&harness.database.app_url).await.unwrap();
    for (kind, count) in [("requests", 1), ("responses", 1), ("other records", 1)] {
        let (_, entries, bytes) = sizes.iter().find(|(name, ..)| name == kind).unwrap();
        assert!(*entries == count && *bytes > 0, "{sizes:?}");
    }
    harness.close().await;
}
