//! Every test gets its own database, and nothing is left behind.
#![allow(clippy::unwrap_used, clippy::expect_used)]

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use rcrt_test_database::TestDatabase;
use sqlx::{Connection, PgConnection};

/// The work of another process can only be polled.
const POLL: Duration = Duration::from_millis(5);

#[tokio::test]
async fn each_test_has_its_own_migrated_database() {
    let (one, other) = tokio::join!(TestDatabase::new(), TestDatabase::new());
    assert_ne!(one.name, other.name);
    for database in [&one, &other] {
        let mut connection = PgConnection::connect(&database.admin_url).await.unwrap();
        let migrations: i64 = sqlx::query_scalar("SELECT count(*) FROM _sqlx_migrations WHERE success")
            .fetch_one(&mut connection)
            .await
            .unwrap();
        assert!(migrations > 0);
        // The same name in both, because they share nothing.
        sqlx::query("CREATE TABLE mine ()").execute(&mut connection).await.unwrap();
    }
}

#[tokio::test]
async fn the_app_url_is_the_role_without_rights() {
    let database = TestDatabase::new().await;
    let mut connection = PgConnection::connect(&database.app_url).await.unwrap();
    let strong: bool = sqlx::query_scalar("SELECT rolsuper OR rolbypassrls FROM pg_roles WHERE rolname = current_user")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert!(!strong);
}

#[tokio::test]
async fn an_empty_database_has_no_tables() {
    let database = TestDatabase::empty().await;
    let mut connection = PgConnection::connect(&database.admin_url).await.unwrap();
    let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM pg_tables WHERE schemaname = 'public'")
        .fetch_one(&mut connection)
        .await
        .unwrap();
    assert_eq!(tables, 0);
}

/// Has both roles: it starts itself again as the process to be killed.
#[tokio::test]
async fn a_killed_test_process_leaves_nothing_behind() {
    if let Some(note) = std::env::var_os("VICTIMS_NOTE") {
        return leave_a_database(PathBuf::from(note)).await;
    }
    let folder = tempfile::tempdir().unwrap();
    let note = folder.path().join("where");
    let mut victim = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "a_killed_test_process_leaves_nothing_behind"])
        .env("VICTIMS_NOTE", &note)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let data_dir = loop {
        if let Ok(path) = std::fs::read_to_string(&note) {
            break PathBuf::from(path);
        }
        assert_eq!(victim.try_wait().unwrap(), None, "it exited by itself");
        tokio::time::sleep(POLL).await;
    };
    assert!(data_dir.join("postgres/postmaster.pid").exists());
    victim.kill().unwrap();
    victim.wait().unwrap();
    while data_dir.exists() {
        tokio::time::sleep(POLL).await;
    }
}

async fn leave_a_database(note: PathBuf) {
    TestDatabase::new().await;
    let data_dir = TestDatabase::server().await.socket_dir().parent().unwrap().to_owned();
    let draft = note.with_extension("draft");
    std::fs::write(&draft, data_dir.to_str().unwrap()).unwrap();
    std::fs::rename(draft, note).unwrap();
    std::future::pending::<()>().await;
}
