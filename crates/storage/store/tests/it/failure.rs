//! How errors of the database are reported.

use rcrt_breadcrumb::{BreadcrumbChanges, StoreError};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::{note, request};
use sqlx::AssertSqlSafe;

use crate::harness::StoreHarness;

/// Makes every insert of a record fail with this code.
async fn fail_inserts(harness: &StoreHarness, code: &str) {
    let sql = format!(
        "CREATE OR REPLACE FUNCTION fail() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN RAISE EXCEPTION 'secret database words' USING ERRCODE = '{code}'; END $$;
         CREATE OR REPLACE TRIGGER fail BEFORE INSERT ON breadcrumbs EXECUTE FUNCTION fail()"
    );
    sqlx::raw_sql(AssertSqlSafe(sql)).execute(&mut harness.admin().await).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_database_failure_maps_to_an_error_without_database_text() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    fail_inserts(&harness, "53100").await;
    assert_eq!(agent.create(request(), None).await, Err(StoreError::Full));
    for code in ["57P01", "53300", "40001", "57014"] {
        fail_inserts(&harness, code).await;
        let failed = agent.create(note("x"), None).await.unwrap_err();
        assert!(matches!(failed, StoreError::Unavailable(_)), "{code}: {failed:?}");
        assert!(!failed.to_string().contains("secret"), "{failed}");
    }
    fail_inserts(&harness, "XX000").await;
    assert!(matches!(agent.create(note("x"), None).await, Err(StoreError::Internal(_))));
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_writes_leave_nothing_behind() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    fail_inserts(&harness, "53100").await;
    agent.create(request(), Some("key")).await.unwrap_err();
    let mut admin = harness.admin().await;
    for table in ["calls", "events", "breadcrumb_tags", "idempotency_keys"] {
        let count: i64 = sqlx::query_scalar(AssertSqlSafe(format!("SELECT count(*) FROM {table}")))
            .fetch_one(&mut admin)
            .await
            .unwrap();
        assert_eq!(count, 0, "{table}");
    }
    sqlx::query("DROP TRIGGER fail ON breadcrumbs").execute(&mut admin).await.unwrap();
    assert!(!agent.create(request(), Some("key")).await.unwrap().replayed);
    harness.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_conflict_is_retried() {
    let harness = StoreHarness::start().await;
    let agent = harness.alone().await;
    let id = agent.create(note("x"), None).await.unwrap().id;
    // Fails the first two times: a sequence is not rolled back with its transaction.
    sqlx::raw_sql(
        "CREATE SEQUENCE collisions; GRANT USAGE ON SEQUENCE collisions TO rcrt_app;
         CREATE FUNCTION collide() RETURNS trigger LANGUAGE plpgsql AS
         $$ BEGIN IF nextval('collisions') <= 2 THEN RAISE EXCEPTION 'collision' USING ERRCODE = '40P01'; END IF;
         RETURN NEW; END $$;
         CREATE TRIGGER collide BEFORE UPDATE ON breadcrumbs FOR EACH ROW EXECUTE FUNCTION collide()",
    )
    .execute(&mut harness.admin().await)
    .await
    .unwrap();
    assert_eq!(agent.update(id, 1, BreadcrumbChanges::default()).await.unwrap().version, 2);
    harness.close().await;
}
