//! A deleted tenant leaves nothing, and no other tenant is affected.

use std::collections::BTreeMap;

use rcrt_breadcrumb::{BreadcrumbChanges, NewSecret, Selector, StoreError, Tenancy};
use rcrt_conformance::harness::{claim_of, note, noted, request};
use rcrt_conformance::runners::report_of;
use rcrt_conformance::{Agent, Harness};
use serde_json::json;
use sqlx::{AssertSqlSafe, PgConnection};
use uuid::Uuid;

use crate::harness::StoreHarness;

/// How many rows this tenant has in each table.
async fn rows(admin: &mut PgConnection, tenant: Uuid) -> BTreeMap<String, i64> {
    let columns: Vec<(String, String)> = sqlx::query_as(
        "SELECT table_name::text, column_name::text FROM information_schema.columns
         WHERE table_schema = 'public' AND column_name IN ('owner_id', 'grantee_owner_id')
         UNION ALL SELECT 'tenants', 'id'",
    )
    .fetch_all(&mut *admin)
    .await
    .unwrap();
    let mut found = BTreeMap::new();
    for (table, column) in columns {
        let sql = format!("SELECT count(*) FROM {table} WHERE {column} = $1");
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(sql)).bind(tenant).fetch_one(&mut *admin).await.unwrap();
        if count > 0 {
            found.insert(format!("{table}.{column}"), count);
        }
    }
    found
}

/// Writes a row to every table.
async fn fill(agent: &Agent) {
    for number in 0..30 {
        let id = agent
            .create(noted("A record", json!({"n": number}), &["a", "b"]), Some(&number.to_string()))
            .await
            .unwrap()
            .id;
        agent.update(id, 1, BreadcrumbChanges::default()).await.unwrap();
        if number % 3 == 0 {
            agent.delete(id, None).await.unwrap();
        }
        agent.create(request(), None).await.unwrap();
    }
    agent.claim(&claim_of(5)).await.unwrap();
    let tool = rcrt_breadcrumb::NewBreadcrumb {
        schema_name: Some("tool.v1".into()),
        ..noted("A tool", json!({"name": "tool"}), &["tool"])
    };
    let tool = agent.create(tool, None).await.unwrap().id;
    let secret = json!({"name": "KEY", "value": "a long value"});
    let secret: NewSecret = serde_json::from_value(secret).unwrap();
    let secret = agent.create_secret(secret).await.unwrap().id;
    agent.grant_secret(secret, tool).await.unwrap();
    agent.create_selector(Selector::default()).await.unwrap();
    agent.report_runner(&report_of(Uuid::new_v4())).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_deletes_all_rows_of_the_tenant_and_no_others() {
    let harness = StoreHarness::start().await;
    let (gone, stays) = (harness.alone().await, harness.alone().await);
    fill(&gone).await;
    fill(&stays).await;
    let mut admin = harness.admin().await;
    let (tenant, other) = (gone.identity.owner_id, stays.identity.owner_id);
    let before = rows(&mut admin, other).await;
    let name = harness.store.tenant(tenant).await.unwrap().unwrap().name;

    harness.store.delete_tenant(tenant).await.unwrap();
    // Not visible from now on, and its name is free.
    assert_eq!(harness.store.tenant(tenant).await.unwrap(), None);
    assert!(harness.store.tenants().await.unwrap().iter().all(|one| one.id != tenant));
    assert_eq!(harness.store.agent(tenant, gone.identity.agent_id).await.unwrap(), None);
    assert!(matches!(harness.store.delete_tenant(tenant).await, Err(StoreError::NotFound { .. })));
    let heir = harness.store.ensure_tenant(&name).await.unwrap();
    assert_ne!(heir.id, tenant);
    let again = harness.store.put_tenant(tenant, "Again", None).await;
    assert!(matches!(again, Err(StoreError::Invalid(violations)) if violations.0[0].field == "id"));

    while harness.store.purge().await.unwrap() > 0 {}
    let left = rows(&mut admin, tenant).await;
    let tables: Vec<&str> = left.keys().map(String::as_str).collect();
    assert_eq!(tables, ["agents.owner_id", "audit.owner_id", "tenants.id"]);
    assert_eq!(left["audit.owner_id"], 1);
    // Late writes of an older server are purged too, and in the end the tenant itself.
    gone.create(note("late"), None).await.unwrap();
    sqlx::query("UPDATE tenants SET deleted_at = deleted_at - interval '1 hour'").execute(&mut admin).await.unwrap();
    while harness.store.purge().await.unwrap() > 0 {}
    assert_eq!(rows(&mut admin, tenant).await.into_keys().collect::<Vec<_>>(), ["audit.owner_id"]);

    assert_eq!(rows(&mut admin, other).await, before);
    assert!(!stays.claim(&claim_of(5)).await.unwrap().is_empty());
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_purge_blocks_no_one() {
    let harness = StoreHarness::start().await;
    let (gone, stays) = (harness.alone().await, harness.alone().await);
    fill(&gone).await;
    fill(&stays).await;
    harness.store.delete_tenant(gone.identity.owner_id).await.unwrap();
    // A purge step that has not committed.
    let mut admin = harness.admin().await;
    let mut open = sqlx::Connection::begin(&mut admin).await.unwrap();
    let taken: i64 = sqlx::query_scalar("SELECT purge_tenant($1, 500)")
        .bind(gone.identity.owner_id)
        .fetch_one(&mut *open)
        .await
        .unwrap();
    assert!(taken > 0);
    stays.create(request(), None).await.unwrap();
    assert_eq!(stays.claim(&claim_of(3)).await.unwrap().len(), 3);
    open.commit().await.unwrap();
    while harness.store.purge().await.unwrap() > 0 {}
    let left = rows(&mut admin, gone.identity.owner_id).await;
    assert_eq!(left.into_keys().collect::<Vec<_>>(), ["agents.owner_id", "audit.owner_id", "tenants.id"]);
    harness.close().await;
}

#[tokio::test]
async fn the_last_tenant_and_one_with_a_runner_cannot_be_deleted() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let tenant = agent.identity.owner_id;
    let why = async |id| match harness.store.delete_tenant(id).await {
        Err(StoreError::Invalid(violations)) => violations.0[0].message.clone(),
        other => panic!("{other:?}"),
    };
    assert!(why(tenant).await.contains("only tenant"));
    let other = harness.tenant().await;
    let runner = rcrt_breadcrumb::NewBreadcrumb {
        schema_name: Some("tool.runner.v1".into()),
        ttl: Some(chrono::Utc::now() + chrono::TimeDelta::minutes(3)),
        ..note("A runner")
    };
    let runner = agent.create(runner, None).await.unwrap().id;
    assert!(why(tenant).await.contains("runner"));
    agent.delete(runner, None).await.unwrap();
    harness.store.delete_tenant(tenant).await.unwrap();
    assert!(why(other).await.contains("only tenant"));
    harness.close().await;
}
