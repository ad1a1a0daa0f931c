use std::os::unix::fs::PermissionsExt;
use std::sync::Mutex;

use sqlx::{Connection, Row};

use crate::{connect, options, start};

#[tokio::test]
async fn a_new_folder_gets_a_server_with_pgvector_and_the_database() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = start(folder.path()).await;
    assert!(postgres.version().split('.').next().unwrap().parse::<u32>().unwrap() >= 15);
    let mut connection = connect(&postgres).await;
    sqlx::query("CREATE EXTENSION vector").execute(&mut connection).await.unwrap();
    let near: f64 =
        sqlx::query_scalar("SELECT '[1,0]'::vector <-> '[0,0]'::vector").fetch_one(&mut connection).await.unwrap();
    assert!((near - 1.0).abs() < f64::EPSILON);
    postgres.stop().await;
}

/// A container has root and the users of the system only.
#[test]
fn root_needs_no_ordinary_user() {
    if !nix::unistd::Uid::effective().is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let passwd = folder.path().join("passwd");
    let nobody = "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin";
    std::fs::write(&passwd, format!("root:x:0:0:root:/root:/bin/sh\n{nobody}\n")).unwrap();
    let script = "mount --bind \"$1\" /etc/passwd && shift && exec \"$@\"";
    let output = std::process::Command::new("unshare")
        .args(["--mount", "--propagation", "private", "--", "sh", "-c", script, "sh"])
        .arg(&passwd)
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "lifecycle::a_new_folder_gets_a_server_with_pgvector_and_the_database"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr) + String::from_utf8_lossy(&output.stdout);
    if text.contains("unshare failed") {
        return;
    }
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

#[tokio::test]
async fn the_cluster_is_utf8_with_checksums_and_has_no_tcp_port() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = start(folder.path()).await;
    let mut connection = connect(&postgres).await;
    for (setting, value) in [
        ("server_encoding", "UTF8"),
        ("data_checksums", "on"),
        ("listen_addresses", ""),
        ("TimeZone", "UTC"),
        ("log_min_error_statement", "panic"),
    ] {
        let found: String =
            sqlx::query_scalar("SELECT current_setting($1)").bind(setting).fetch_one(&mut connection).await.unwrap();
        assert_eq!(found, value, "{setting}");
    }
    postgres.stop().await;
}

#[tokio::test]
async fn only_the_owner_can_enter_the_folders() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("deep/data");
    let postgres = start(&data_dir).await;
    for private in [data_dir.as_path(), postgres.socket_dir(), &data_dir.join("postgres")] {
        let mode = private.metadata().unwrap().permissions().mode();
        assert_eq!(mode & 0o077, 0, "{}", private.display());
    }
    postgres.stop().await;
}

#[tokio::test]
async fn data_survives_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = start(folder.path()).await;
    let mut connection = connect(&postgres).await;
    sqlx::query("CREATE TABLE kept AS SELECT 'Grüße' AS word").execute(&mut connection).await.unwrap();
    connection.close().await.unwrap();
    postgres.stop().await;

    let steps = Mutex::new(Vec::new());
    let postgres = rcrt_postgres::start(options(folder.path()), &|step| steps.lock().unwrap().push(step.to_owned()))
        .await
        .unwrap();
    let row = sqlx::query("SELECT word FROM kept").fetch_one(&mut connect(&postgres).await).await.unwrap();
    assert_eq!(row.get::<String, _>("word"), "Grüße");
    assert_eq!(*steps.lock().unwrap(), Vec::<String>::new(), "nothing is prepared a second time");
    postgres.stop().await;
}

#[tokio::test]
async fn stopping_does_not_wait_for_connections_and_leaves_no_process() {
    let folder = tempfile::tempdir().unwrap();
    let postgres = start(folder.path()).await;
    let mut connection = connect(&postgres).await;
    sqlx::query("BEGIN").execute(&mut connection).await.unwrap();
    postgres.stop().await;
    assert!(sqlx::query("SELECT 1").execute(&mut connection).await.is_err());
    assert!(!folder.path().join("postgres/postmaster.pid").exists());
}

#[tokio::test]
async fn a_path_that_is_too_long_for_a_socket_works() {
    let folder = tempfile::tempdir().unwrap();
    let data_dir = folder.path().join("a folder, with a comma".repeat(5)).join("ü'&%?#".repeat(10));
    let postgres = start(&data_dir).await;
    let socket_dir = postgres.socket_dir().to_owned();
    assert!(!socket_dir.starts_with(folder.path()));
    connect(&postgres).await.ping().await.unwrap();
    postgres.stop().await;
    std::fs::remove_dir_all(socket_dir).unwrap();
}
