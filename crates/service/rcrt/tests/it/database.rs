//! The database: an external Postgres, and the embedded one.

use rcrt_test_database::TestDatabase;
use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;

use crate::program::{Ran, Running, rcrt};

#[tokio::test(flavor = "multi_thread")]
async fn up_uses_an_external_postgres_and_doctor_shows_it() {
    let database = TestDatabase::empty().await;
    // Not needed over the socket, but it must not appear in any output.
    let url = database.admin_url.replacen('@', ":s3cr3t@", 1);
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0", "--database-url", &url]);
    let version = TestDatabase::server().await.version();
    assert_eq!(up.hello["postgres"], version);
    assert!(!up.data.join("postgres").exists());

    let report = up.json(&["doctor"]);
    let postgres = &report["postgres"];
    assert_eq!((&postgres["kind"], &postgres["version"]), (&"external".into(), &version.into()), "{report}");
    assert!(postgres["vector"].is_string() && postgres.get("problem").is_none(), "{report}");
    assert!(postgres["place"].as_str().unwrap().ends_with(&database.name), "{report}");
    let text = up.run(&["doctor"]).ends_with(0).stdout;
    assert!(text.contains(&format!("external {version}")) && !text.contains("set up"), "{text}");
    let written = std::fs::read_to_string(up.data.join("database.json")).unwrap();
    for shown in [report.to_string(), text, written] {
        assert!(!shown.contains("s3cr3t"), "{shown}");
    }
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert!(!stderr.contains("s3cr3t"), "{stderr}");
}

#[tokio::test(flavor = "multi_thread")]
async fn migrate_prepares_a_database_and_refuses_a_newer_one() {
    let database = TestDatabase::empty().await;
    let folder = TempDir::new().unwrap();
    let with_url = |command: &str| {
        let mut rcrt = rcrt();
        rcrt.arg(command).args(["--output", "json"]).current_dir(&folder).env("DATABASE_URL", &database.admin_url);
        Ran::of(rcrt.output().unwrap())
    };
    let schema = with_url("migrate").ends_with(0).json()["schema"].as_i64().unwrap();
    assert_eq!(with_url("migrate").ends_with(0).json()["schema"], schema, "again");
    let rollback = |report: &serde_json::Value| {
        report["runbooks"].as_array().unwrap().iter().find(|one| one["runbook"] == "rollback").unwrap().clone()
    };
    assert_eq!(rollback(&with_url("doctor").json())["state"], "good");
    let newer = "INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
        VALUES (9999, 'newer', true, '', 0)";
    let mut connection = PgConnection::connect(&database.admin_url).await.unwrap();
    sqlx::query(newer).execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    let refused = with_url("migrate").ends_with(1).stderr;
    assert!(refused.contains("9999"), "{refused}");
    let found = rollback(&with_url("doctor").json());
    assert_eq!(found["state"], "look", "{found}");
    assert!(found["finding"].as_str().unwrap().contains("9999"), "{found}");
    assert!(!folder.path().join(".rcrt").exists(), "neither needs a data folder");
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tenants_of_one_database_do_not_see_each_other() {
    let database = TestDatabase::empty().await;
    let folder = TempDir::new().unwrap();
    let up = |tenant: &str| {
        let arguments = ["up", "--listen", "127.0.0.1:0", "--database-url", &database.admin_url, "--tenant", tenant];
        Running::start(&folder.path().join(tenant), &arguments)
    };
    let (ours, theirs) = (up("ours"), up("theirs"));
    let made = ours.json(&["crumb", "create", r#"{"title": "Ours", "tags": ["note"]}"#]);
    let id = made["id"].as_str().unwrap();
    ours.run(&["crumb", "get", id]).ends_with(0);
    theirs.run(&["crumb", "get", id]).ends_with(3);
    assert_eq!(theirs.json(&["crumb", "list", "--tag", "note"]), serde_json::json!([]));
    theirs.run(&["call", "echo", r#"{"message": "hi"}"#]).ends_with(0);
    for up in [ours, theirs] {
        let (status, stderr) = up.stop();
        assert_eq!(status.code(), Some(0), "{stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn doctor_reports_missing_pgvector() {
    let database = TestDatabase::empty().await;
    let mut connection = PgConnection::connect(&database.admin_url).await.unwrap();
    // Hides the extension, as on a server that does not have it.
    for sql in [
        "CREATE VIEW public.pg_available_extensions AS
            SELECT * FROM pg_catalog.pg_available_extensions WHERE name <> 'vector'"
            .to_owned(),
        format!("ALTER DATABASE {} SET search_path = public, pg_catalog", database.name),
    ] {
        sqlx::query(AssertSqlSafe(sql)).execute(&mut connection).await.unwrap();
    }
    connection.close().await.unwrap();
    let folder = TempDir::new().unwrap();
    let doctor = |url: &str| {
        let mut command = rcrt();
        Ran::of(command.arg("doctor").current_dir(&folder).env("DATABASE_URL", url).output().unwrap())
    };
    let ran = doctor(&database.admin_url).ends_with(1);
    assert!(ran.stdout.contains("has no pgvector"), "{}", ran.stdout);
    let ran = doctor("mysql://me:s3cr3t@db/x").ends_with(1);
    assert!(ran.stdout.contains("mysql://") && !ran.stdout.contains("s3cr3t"), "{}", ran.stdout);
}

#[test]
fn doctor_works_without_a_server() {
    let folder = TempDir::new().unwrap();
    let doctor = || {
        let mut command = rcrt();
        command.args(["doctor", "--server", "http://127.0.0.1:1", "--data", "none"]).current_dir(&folder);
        command
    };
    let text = Ran::of(doctor().output().unwrap()).ends_with(0).stdout;
    for part in ["Engine", "not set up yet", "cannot be reached:", "does not exist yet"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
    assert_eq!(text.matches("cannot be reached").count(), 1, "{text}");
    let report = Ran::of(doctor().args(["--output", "json"]).output().unwrap()).ends_with(0).json();
    assert_eq!(report["server"]["reachable"], false, "{report}");
    assert!(!folder.path().join("none").exists());
}

/// Row-level security must not depend on a role that a statement could reset.
#[tokio::test(flavor = "multi_thread")]
async fn on_the_embedded_postgres_the_store_logs_in_as_its_role() {
    let folder = TempDir::new().unwrap();
    let up = Running::start(&folder.path().join("data"), &["up", "--listen", "127.0.0.1:0"]);
    let pid_file = std::fs::read_to_string(up.data.join("postgres/postmaster.pid")).unwrap();
    let lines: Vec<&str> = pid_file.lines().map(str::trim).collect();
    let options = PgConnectOptions::new()
        .socket(lines[4])
        .port(lines[3].parse().unwrap())
        .username(rcrt_postgres::SUPERUSER)
        .database(rcrt_postgres::DATABASE);
    let mut connection = PgConnection::connect_with(&options).await.unwrap();
    let users: Vec<String> = sqlx::query_scalar(
        "SELECT DISTINCT usename::text FROM pg_stat_activity
         WHERE datname = current_database() AND pid <> pg_backend_pid() AND backend_type = 'client backend'",
    )
    .fetch_all(&mut connection)
    .await
    .unwrap();
    assert_eq!(users, ["rcrt_app"]);
    connection.close().await.unwrap();
    assert_eq!(up.stop().0.code(), Some(0));
}
