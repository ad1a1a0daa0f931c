//! Opening a store from a URL.

use rcrt_breadcrumb::Tenancy;
use rcrt_conformance::harness::PATIENCE;
use rcrt_store::{DatabaseRight, OpenError, SecretsKey, Store, StoreOptions};
use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};

fn options(url: &str) -> StoreOptions {
    StoreOptions::new(url, SecretsKey::from_bytes([1; 32]))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn concurrent_opens_migrate_an_empty_database_once() {
    let database = TestDatabase::empty().await;
    let opening = (0..4).map(|_| {
        let url = database.admin_url.clone();
        tokio::spawn(async move { Store::open(options(&url), &|_| {}).await })
    });
    for opened in futures::future::join_all(opening).await {
        let store = opened.unwrap().unwrap();
        store.ensure_tenant("first").await.unwrap();
        assert_eq!(store.tenants().await.unwrap().len(), 1);
        store.close().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_databases_share_the_role() {
    let mut opening = Vec::new();
    for _ in 0..4 {
        let database = TestDatabase::empty().await;
        opening.push(tokio::spawn(async move {
            Store::open(options(&database.admin_url), &|_| {}).await.unwrap().close().await;
        }));
    }
    for opened in futures::future::join_all(opening).await {
        opened.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn open_errors_name_the_problem() {
    let nowhere = Store::open(options("postgres://nobody@127.0.0.1:1/none"), &|_| {}).await.unwrap_err();
    assert!(matches!(nowhere, OpenError::Unreachable { .. }), "{nowhere}");
    assert!(nowhere.to_string().contains("no Postgres accepts connections at 127.0.0.1:1"), "{nowhere}");
    let nonsense = Store::open(options("not a url"), &|_| {}).await.unwrap_err();
    assert!(matches!(nonsense, OpenError::Url(_)), "{nonsense}");

    let database = TestDatabase::new().await;
    for (url, says) in [
        (database.admin_url.replacen(&database.name.replace('_', "%5F"), "absent", 1), "has no database \"absent\""),
        (database.admin_url.replacen("postgres://postgres", "postgres://nobody", 1), "has no user \"nobody\""),
    ] {
        let missing = Store::open(options(&url), &|_| {}).await.unwrap_err().to_string();
        assert!(missing.contains(says) && !missing.contains("at line"), "{missing}");
    }
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    sqlx::query(
        "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
         VALUES (9999, 'from the future', true, '', 0)",
    )
    .execute(&mut admin)
    .await
    .unwrap();
    let newer = Store::open(options(&database.admin_url), &|_| {}).await.unwrap_err();
    assert!(matches!(newer, OpenError::Newer(9999)), "{newer}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_app_login_has_only_the_rights_it_needs() {
    let database = TestDatabase::new().await;
    let with = |app_url: &String| StoreOptions { app_url: Some(app_url.clone()), ..options(&database.admin_url) };
    let store = Store::open(with(&database.app_url), &|_| {}).await.unwrap();
    store.ping().await.unwrap();
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    // The server closes the migrating connection a little later than the client.
    let only_the_role = async {
        loop {
            let users: Vec<String> = sqlx::query_scalar(
                "SELECT DISTINCT usename::text FROM pg_stat_activity
                 WHERE datname = current_database() AND application_name = 'rcrt' AND pid <> pg_backend_pid()",
            )
            .fetch_all(&mut admin)
            .await
            .unwrap();
            if users == ["rcrt_app"] {
                break;
            }
        }
    };
    tokio::time::timeout(PATIENCE, only_the_role).await.expect("only the role stays connected");
    store.close().await;

    // A superuser that set the role could reset it.
    let refused = Store::open(with(&database.admin_url), &|_| {}).await.unwrap_err();
    assert!(matches!(refused, OpenError::RoleTooStrong), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_user_without_rights_gets_an_error_that_names_them() {
    let database = TestDatabase::empty().await;
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    let role = format!("poor_{}", uuid::Uuid::new_v4().simple());
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("CREATE ROLE {role} LOGIN"))).execute(&mut admin).await.unwrap();
    let url = database.admin_url.replace("postgres://postgres", &format!("postgres://{role}"));
    assert_ne!(url, database.admin_url);
    for (lacks, given) in [
        (DatabaseRight::Schema, format!("GRANT CREATE ON SCHEMA public TO {role}")),
        (DatabaseRight::Extension, "CREATE EXTENSION vector".to_owned()),
        (DatabaseRight::Role, format!("GRANT rcrt_app TO {role}")),
    ] {
        let refused = Store::open(options(&url), &|_| {}).await.unwrap_err();
        assert!(matches!(&refused, OpenError::MissingPrivilege { right, .. } if *right == lacks), "{refused}");
        let text = refused.to_string();
        assert!(text.contains("A Postgres of your own") && !text.contains("at line"), "{text}");
        sqlx::raw_sql(sqlx::AssertSqlSafe(given)).execute(&mut admin).await.unwrap();
    }
    Store::open(options(&url), &|_| {}).await.unwrap().close().await;
}
