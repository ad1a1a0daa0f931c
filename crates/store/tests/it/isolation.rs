//! Row-level security, seen from under the store.

use breadcrumb::{NewBreadcrumb, NewSecret, schema_names};
use conformance::Harness;
use conformance::harness::{claim_of, note, request};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use uuid::Uuid;

use crate::harness::StoreHarness;

const TABLES: [&str; 10] = [
    "breadcrumbs",
    "breadcrumb_tags",
    "breadcrumb_versions",
    "events",
    "calls",
    "secrets",
    "secret_grants",
    "agents",
    "audit",
    "idempotency_keys",
];

async fn fill(harness: &StoreHarness) -> Uuid {
    let agent = harness.alone().await;
    let id = agent.create(request(), Some("key")).await.unwrap().id;
    agent.claim(&claim_of(1)).await.unwrap();
    agent.cancel(id).await.unwrap();
    let secret = agent.create_secret(NewSecret::new("KEY", "a long value")).await.unwrap().id;
    let tool = NewBreadcrumb { schema_name: Some(schema_names::TOOL_CODE.into()), ..note("a tool") };
    let tool = agent.create(tool, None).await.unwrap().id;
    agent.grant_secret(secret, tool).await.unwrap();
    agent.identity.owner_id
}

async fn count(connection: &mut PgConnection, table: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}"))).fetch_one(connection).await.unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_raw_connection_of_the_role_sees_its_tenant_alone() {
    let harness = StoreHarness::start().await;
    let (mine, theirs) = (fill(&harness).await, fill(&harness).await);
    let mut raw = PgConnection::connect(&harness.database.app_url).await.unwrap();
    for table in TABLES {
        assert_eq!(count(&mut raw, table).await, 0, "{table} without a tenant");
    }
    sqlx::query("SELECT set_config('rcrt.tenant', $1, false)").bind(mine.to_string()).execute(&mut raw).await.unwrap();
    for table in TABLES {
        assert!(count(&mut raw, table).await > 0, "{table} with a tenant");
        let foreign: i64 =
            sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table} WHERE owner_id <> $1")))
                .bind(mine)
                .fetch_one(&mut raw)
                .await
                .unwrap();
        assert_eq!(foreign, 0, "{table}");
    }
    // Nor can a row be put into another tenant, or moved there.
    let smuggled = sqlx::query("INSERT INTO breadcrumb_tags VALUES ($1, 'tag', $2)")
        .bind(theirs)
        .bind(Uuid::new_v4())
        .execute(&mut raw)
        .await
        .unwrap_err();
    assert_eq!(smuggled.as_database_error().unwrap().code().unwrap(), "42501");
    sqlx::query("UPDATE breadcrumbs SET owner_id = $1").bind(theirs).execute(&mut raw).await.unwrap_err();
    let found: Vec<Uuid> =
        sqlx::query_scalar("SELECT id FROM matching_breadcrumbs('echo')").fetch_all(&mut raw).await.unwrap();
    assert_eq!(found.len(), 1);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_role_can_do_nothing_that_it_need_not() {
    let harness = StoreHarness::start().await;
    let tenant = fill(&harness).await;
    let mut raw = PgConnection::connect(&harness.database.app_url).await.unwrap();
    sqlx::query("SELECT set_config('rcrt.tenant', $1, false)")
        .bind(tenant.to_string())
        .execute(&mut raw)
        .await
        .unwrap();
    for statement in [
        "SELECT * FROM tenants",
        "UPDATE audit SET reason = 'nothing happened'",
        "DELETE FROM audit",
        "UPDATE secret_grants SET tool_id = tool_id",
        "DELETE FROM agents",
        "TRUNCATE breadcrumbs",
        "ALTER TABLE breadcrumbs DISABLE ROW LEVEL SECURITY",
        "DROP POLICY tenant ON breadcrumbs",
        "CREATE TABLE mine (id int)",
        "SELECT * FROM _sqlx_migrations",
        "SET row_security = off; SELECT * FROM breadcrumbs",
    ] {
        let refused = sqlx::raw_sql(statement).execute(&mut raw).await.unwrap_err();
        assert_eq!(refused.as_database_error().unwrap().code().unwrap(), "42501", "{statement}");
    }
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_table_is_under_row_level_security() {
    let harness = StoreHarness::start().await;
    let open: Vec<String> = sqlx::query_scalar(
        "SELECT relname::text FROM pg_class WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace
         AND NOT relrowsecurity ORDER BY relname",
    )
    .fetch_all(&mut harness.admin().await)
    .await
    .unwrap();
    // The role has no right at all on these two.
    assert_eq!(open, ["_sqlx_migrations", "tenants"]);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pooled_connection_keeps_no_tenant() {
    let harness = StoreHarness::start().await;
    let (one, other) = (harness.alone().await, harness.alone().await);
    for _ in 0..40 {
        let id = one.create(note("Mine"), None).await.unwrap().id;
        other.get(id).await.unwrap_err();
        one.get(id).await.unwrap();
    }
    harness.close().await;
}
