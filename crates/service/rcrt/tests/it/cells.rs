//! `rcrt cell`: a tenant moves to another database and back while its server and its runner work,
//! and new tenants begin in either.

use std::process::Stdio;

use rcrt_test_database::TestDatabase;
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};
use tempfile::TempDir;

use crate::program::{Ran, Running, rcrt};
use crate::replaced::until;

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_moves_to_another_database_and_back() {
    let (home, east) = (TestDatabase::empty().await, TestDatabase::empty().await);
    let folder = TempDir::new().unwrap();
    let cell = |arguments: &[&str]| {
        let mut rcrt = rcrt();
        rcrt.arg("cell").args(arguments).args(["--output", "json"]).current_dir(&folder);
        Ran::of(rcrt.env("DATABASE_URL", &home.admin_url).output().unwrap())
    };
    let added = cell(&["add", "east", &east.admin_url]).ends_with(0).json();
    assert_eq!(added["cell"], "east", "{added}");
    let up = Running::start(
        &folder.path().join("data"),
        &["up", "--listen", "127.0.0.1:0", "--database-url", &home.admin_url],
    );
    let kept = up.json(&["crumb", "create", r#"{"title": "kept"}"#])["id"].as_str().unwrap().to_owned();
    for (to, from) in [("east", "home"), ("home", "east")] {
        let ran = cell(&["move", "default", to]).ends_with(0);
        assert!(ran.stderr.contains("moved the tenant") && ran.stderr.contains("paused_ms"), "{}", ran.stderr);
        let moved = ran.json();
        assert!(moved["paused_ms"].as_u64().unwrap() >= 250, "{moved}");
        assert_eq!((&moved["moved"], &moved["cell"], &moved["from"]), (&json!(true), &json!(to), &json!(from)));
        let again = cell(&["move", "default", to]).ends_with(0).json();
        assert_eq!(again["moved"], false, "{again}");
        let cells: Vec<Value> = serde_json::from_value(cell(&["list"]).ends_with(0).json()).unwrap();
        for listed in cells {
            let tenants = if listed["cell"] == to { json!(["default"]) } else { json!([]) };
            assert_eq!((&listed["tenants"], &listed["unfinished"]), (&tenants, &json!([])), "{listed}");
        }
        // The server and its runner may need a moment to see it.
        let called = until(|| {
            let ran = up.run(&["call", "calculator", r#"{"expression": "6 * 7"}"#]);
            (ran.status == 0).then_some(ran.stdout)
        });
        assert!(called.contains("42"), "{called}");
        assert_eq!(up.json(&["crumb", "get", &kept])["title"], "kept");
    }
    for arguments in [&["move", "nobody", "east"][..], &["move", "default", "west"], &["default", "west"]] {
        cell(arguments).ends_with(3);
    }

    let operator = up.json(&["token", "--operator"]);
    let tenant = |arguments: &[&str]| {
        let mut rcrt = up.command(&["tenant", "new"]);
        Ran::of(rcrt.args(arguments).env("RCRT_TOKEN", operator["token"].as_str().unwrap()).output().unwrap())
    };
    let begun = tenant(&["second", "--cell", "east", "-o", "json"]).ends_with(0).json();
    // Its first agent has a key at once.
    up.run_as(&begun, &["crumb", "list"]).ends_with(0);
    assert_eq!(cell(&["default", "east"]).ends_with(0).json()["cell"], "east");
    tenant(&["third"]).ends_with(0);
    tenant(&["fourth", "--cell", "home"]).ends_with(0);
    let unknown = tenant(&["fifth", "--cell", "west"]).ends_with(1).stderr;
    assert!(unknown.contains("there is no such cell"), "{unknown}");
    let cells: Vec<Value> = serde_json::from_value(cell(&["list"]).ends_with(0).json()).unwrap();
    let of = |cell: &Value| (cell["tenants"].clone(), cell["new_tenants"].clone());
    let [home, east] = cells.as_slice() else { panic!("{cells:?}") };
    assert_eq!(of(home), (json!(["default", "fourth"]), json!(false)));
    assert_eq!(of(east), (json!(["second", "third"]), json!(true)));
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}

/// The command that `rcrt doctor` names is the one that finishes the move.
#[tokio::test(flavor = "multi_thread")]
async fn doctor_shows_a_move_that_was_killed_and_how_to_finish_it() {
    let (home, east) = (TestDatabase::empty().await, TestDatabase::empty().await);
    let folder = TempDir::new().unwrap();
    let command = |arguments: &[&str]| {
        let mut rcrt = rcrt();
        rcrt.args(arguments).arg("--data").arg(folder.path()).env("DATABASE_URL", &home.admin_url);
        rcrt
    };
    let run = |arguments: &[&str]| Ran::of(command(arguments).output().unwrap());
    let found = || {
        let report = run(&["doctor", "-o", "json"]).json();
        report["runbooks"].as_array().unwrap().iter().find(|one| one["runbook"] == "cells").unwrap().clone()
    };
    run(&["cell", "add", "east", &east.admin_url]).ends_with(0);
    let mut database = PgConnection::connect(&home.admin_url).await.unwrap();
    let tenant: String = sqlx::query_scalar("SELECT id::text FROM ensure_tenant(gen_random_uuid(), 'acme')")
        .fetch_one(&mut database)
        .await
        .unwrap();
    assert_eq!(found()["state"], "good");

    // As a write that has not ended: the move waits for it.
    let mut writing = database.begin().await.unwrap();
    let lock = "SELECT pg_advisory_xact_lock_shared(hashtextextended('rcrt.cells ' || $1, 0))";
    sqlx::query(lock).bind(&tenant).execute(&mut *writing).await.unwrap();
    let mut moving = command(&["cell", "move", "acme", "east"]).stderr(Stdio::null()).spawn().unwrap();
    let unfinished = until(|| Some(found()).filter(|found| found["state"] == "look"));
    moving.kill().unwrap();
    moving.wait().unwrap();
    writing.rollback().await.unwrap();
    let text = unfinished["finding"].as_str().unwrap();
    assert!(text.contains("the tenant acme to the cell east"), "{text}");
    let named = text.split('`').nth(1).unwrap().strip_prefix("rcrt ").unwrap();
    // Its lock ends when Postgres has noticed that it is gone.
    until(|| {
        let ran = run(&named.split(' ').collect::<Vec<_>>());
        assert!(ran.status == 0 || ran.stderr.contains("wait for its end"), "{}", ran.stderr);
        (ran.status == 0).then_some(())
    });
    assert_eq!(found()["state"], "good");
    let cells = run(&["cell", "list", "-o", "json"]).json();
    assert_eq!(cells[1]["tenants"], json!(["acme"]), "{cells}");
}
