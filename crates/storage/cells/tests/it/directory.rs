//! The directory, and what can be a cell.

use rcrt_breadcrumb::Tenancy;
use rcrt_cells::{CellError, Cells, add_cell};
use rcrt_conformance::Harness;
use rcrt_test_database::TestDatabase;
use uuid::Uuid;

use crate::harness::{CellsHarness, EAST, open_store, opener};

/// A single database has no triggers and no task.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_other_cells_there_is_nothing() {
    let database = TestDatabase::new().await;
    let store = open_store(database.admin_url.clone()).await;
    assert!(Cells::open(store.clone(), &database.admin_url, opener()).await.unwrap().is_none());
    let triggers: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_trigger WHERE tgname = 'fenced_tenants'")
        .fetch_one(&mut CellsHarness::admin(&database.admin_url).await)
        .await
        .unwrap();
    assert_eq!(triggers, 0);
    store.close().await;
}

/// A table without the trigger could be written in the cell that its tenant left.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_of_tenants_is_guarded() {
    let harness = CellsHarness::start().await;
    for url in [&harness.home, &harness.east] {
        let open: Vec<String> = sqlx::query_scalar(
            "SELECT c.relname::text FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'owner_id'
             WHERE c.relkind IN ('r', 'p') AND NOT c.relispartition AND c.relnamespace = 'public'::regnamespace
                AND NOT EXISTS (SELECT FROM pg_trigger t WHERE t.tgrelid = c.oid AND t.tgname = 'fenced_tenants')",
        )
        .fetch_all(&mut CellsHarness::admin(url).await)
        .await
        .unwrap();
        assert!(open.is_empty(), "{open:?}");
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cell_begins_empty_and_belongs_to_one_directory() {
    let harness = CellsHarness::start().await;
    let add = async |name: &str, url: &str| add_cell(&harness.home, name, url, &|_| {}).await;
    // Repeating it changes nothing.
    add(EAST, &harness.east).await.unwrap();
    for name in ["home", "", "Upper", "-x", "a b"] {
        assert!(matches!(add(name, &harness.east).await, Err(CellError::Name(_))), "{name}");
    }
    let secret = add("west", "postgres://me:secret@localhost/x").await.unwrap_err();
    assert!(matches!(secret, CellError::Password) && !secret.to_string().contains("secret@"));
    assert!(matches!(add(EAST, &harness.home).await, Err(CellError::Exists(_))));
    let mut refused = vec![add("west", &harness.east).await, add("west", &harness.home).await];
    let used = TestDatabase::new().await;
    let store = open_store(used.admin_url.clone()).await;
    store.ensure_tenant("there").await.unwrap();
    refused.push(add("west", &used.admin_url).await);
    for refused in refused {
        assert!(matches!(refused, Err(CellError::Refused(_))), "{refused:?}");
    }
    let listed: Vec<String> =
        rcrt_cells::cells(&harness.home).await.unwrap().into_iter().map(|cell| cell.name).collect();
    assert_eq!(listed, ["home", EAST]);
    store.close().await;
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn names_and_ids_are_unique_over_all_cells() {
    let harness = CellsHarness::start().await;
    let there = harness.tenant().await;
    let all = harness.cells.tenants().await.unwrap();
    let name = all.iter().find(|tenant| tenant.id == there).unwrap().name.clone();
    // The server may not know yet where it is; its name is taken in any case.
    assert!(harness.cells.put_tenant(Uuid::new_v4(), &name, None).await.is_err());
    assert_eq!(harness.cells.ensure_tenant(&name).await.unwrap().id, there);
    harness.agent(there).await;
    let (renamed, is_new) = harness.cells.put_tenant(there, "renamed", None).await.unwrap();
    assert_eq!((renamed.name.as_str(), is_new), ("renamed", false));
    assert_eq!(harness.cells.tenant(there).await.unwrap().unwrap().name, "renamed");
    let missing = harness.move_to(there, "nowhere").await;
    assert!(matches!(missing, Err(CellError::NoCell(_))), "{missing:?}");
    let nobody = rcrt_cells::move_tenant(&harness.home, "nobody", EAST, &|_| {}).await;
    assert!(matches!(nobody, Err(CellError::NoTenant(_))), "{nobody:?}");
    harness.close().await;
}
