//! What the program deletes after its retention.

use std::process::Stdio;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcrt_test_database::TestDatabase;
use serde_json::{Value, json};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;

use crate::program::{Ran, Running};

/// Makes calls and events 40 days older.
const MAKE_OLDER: &str = "UPDATE breadcrumbs SET updated_at = updated_at - interval '40 days'
        WHERE schema_name IN ('tool.request.v1', 'tool.response.v1');
     UPDATE calls SET queued_at = queued_at - interval '40 days', finished_at = finished_at - interval '40 days';
     UPDATE events SET at = at - interval '40 days'";
const CALLS: &str = "SELECT count(*) FROM breadcrumbs
    WHERE schema_name IN ('tool.request.v1', 'tool.response.v1') AND updated_at < now() - interval '35 days'";
const EVENTS: &str = "SELECT count(*) FROM events WHERE at < now() - interval '35 days'";

async fn number(admin: &mut PgConnection, sql: &str) -> i64 {
    sqlx::query_scalar(AssertSqlSafe(sql.to_owned())).fetch_one(admin).await.unwrap()
}

async fn execute(admin: &mut PgConnection, sql: &str) {
    sqlx::raw_sql(AssertSqlSafe(sql.to_owned())).execute(admin).await.unwrap();
}

async fn until_none(admin: &mut PgConnection, sql: &str) {
    while number(admin, sql).await > 0 {
        tokio::task::yield_now().await;
    }
}

fn doctor(up: &Running, database: &TestDatabase) -> Value {
    let mut command = up.command(&["doctor", "-o", "json"]);
    Ran::of(command.env("DATABASE_URL", &database.admin_url).output().unwrap()).json()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_deletes_by_its_options_and_a_runner_deletes_nothing() {
    let database = TestDatabase::empty().await;
    let folder = TempDir::new().unwrap();
    let start = |options: &[&str]| {
        let common = ["up", "--listen", "127.0.0.1:0", "--database-url", &database.admin_url];
        Running::start(&folder.path().join("data"), &[&common, options].concat())
    };
    let up = start(&["--keep-calls", "forever"]);
    let request = json!({
        "title": "r",
        "schema_name": "tool.request.v1",
        "context": {"tool": "calculator", "input": {"expression": "6 * 7"}, "requestId": "order-7"},
    });
    up.json(&["crumb", "create", &request.to_string()]);
    while up.json(&["calls", "show", "order-7"])["state"] != "finished" {}
    let notes =
        ["one", "two"].map(|title| up.json(&["crumb", "create", &json!({"title": title}).to_string()])["id"].clone());
    // Of the server, not of this command.
    let report = doctor(&up, &database);
    assert_eq!(report["stored"]["retention"]["keep_calls"], "forever", "{report}");
    assert_eq!(up.stop().0.code(), Some(0));

    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    execute(&mut admin, MAKE_OLDER).await;
    let before = (number(&mut admin, CALLS).await, number(&mut admin, EVENTS).await);
    assert!(before.0 >= 2 && before.1 >= 2, "{before:?}");

    let mut command = up_command(&folder, &["runner", "--database-url", &database.admin_url]);
    let mut runner = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    // What has expired is deleted by each sweep, before what is past its retention. The second note
    // is deleted by a later sweep than the first.
    for note in notes {
        let note = note.as_str().unwrap();
        execute(&mut admin, &format!("UPDATE breadcrumbs SET ttl = now() WHERE id = '{note}'")).await;
        until_none(&mut admin, &format!("SELECT count(*) FROM breadcrumbs WHERE id = '{note}'")).await;
    }
    assert_eq!((number(&mut admin, CALLS).await, number(&mut admin, EVENTS).await), before);
    kill(Pid::from_raw(runner.id() as i32), Signal::SIGTERM).unwrap();
    assert_eq!(runner.wait().unwrap().code(), Some(0));

    let up = start(&["--keep-calls", "30d", "--keep-events", "1d"]);
    until_none(&mut admin, CALLS).await;
    until_none(&mut admin, EVENTS).await;
    let report = doctor(&up, &database);
    let kept = &report["stored"]["retention"];
    assert_eq!((&kept["keep_calls"], &kept["keep_events"]), (&json!("30d"), &json!("1d")), "{report}");
    let shown = up.json(&["calls", "show", "order-7"]);
    assert_eq!((&shown["state"], &shown["tool"]), (&json!("finished"), &json!("calculator")), "{shown}");
    assert!(shown.get("request_record").is_none() && shown.get("response_record").is_none(), "{shown}");
    assert_eq!(up.stop().0.code(), Some(0));
}

fn up_command(folder: &TempDir, arguments: &[&str]) -> std::process::Command {
    let mut command = crate::program::rcrt();
    command.args(arguments).arg("--data").arg(folder.path().join("data")).current_dir(folder.path());
    command
}

/// Also by a server that is killed meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_server_deletes_is_archived_and_can_be_imported() {
    let database = TestDatabase::empty().await;
    let folder = TempDir::new().unwrap();
    let archive = folder.path().join("archive");
    let start = |options: &[&str]| {
        let common = ["up", "--listen", "127.0.0.1:0", "--database-url", &database.admin_url];
        Running::start(&folder.path().join("data"), &[&common, options].concat())
    };
    let up = start(&["--keep-calls", "forever"]);
    for n in 0..3 {
        let input = json!({"expression": format!("{n} + 1")});
        up.json(&["call", "calculator", &input.to_string()]);
    }
    assert_eq!(up.stop().0.code(), Some(0));
    let mut admin = PgConnection::connect(&database.admin_url).await.unwrap();
    execute(&mut admin, MAKE_OLDER).await;
    let calls = number(&mut admin, CALLS).await;
    assert!(calls >= 6, "{calls}");

    let archiving = ["--keep-events", "1d", "--archive", archive.to_str().unwrap()];
    let killed = start(&archiving);
    // It may be anywhere between the plan and the deletion.
    while !archive.join("default").exists() {
        tokio::task::yield_now().await;
    }
    killed.end_by(Signal::SIGKILL);
    let up = start(&archiving);
    until_none(&mut admin, CALLS).await;
    until_none(&mut admin, EVENTS).await;
    assert_eq!(doctor(&up, &database)["stored"]["retention"]["archive"], true);
    assert_eq!(up.stop().0.code(), Some(0));

    let mut imported = 0;
    for file in std::fs::read_dir(archive.join("default")).unwrap().map(|entry| entry.unwrap().path()) {
        let name = file.file_name().unwrap().to_str().unwrap().to_owned();
        assert!(name.ends_with(".jsonl.gz"), "{name}");
        let mut command =
            up_command(&folder, &["import", file.to_str().unwrap(), "--on-conflict", "fail", "-o", "json"]);
        let done = Ran::of(command.env("DATABASE_URL", &database.admin_url).output().unwrap()).ends_with(0).json();
        let (created, skipped) = (done["created"].as_i64().unwrap(), done["skipped"].as_i64().unwrap());
        assert!(
            if name.starts_with("calls-") { created > 0 && skipped == 0 } else { created == 0 && skipped > 0 },
            "{done}"
        );
        imported += created;
    }
    assert_eq!((imported, number(&mut admin, CALLS).await), (calls, calls));
}
