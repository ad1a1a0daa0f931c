//! `rcrt cell`: a tenant moves to another database and back while its server and its runner work.

use rcrt_test_database::TestDatabase;
use serde_json::{Value, json};
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
        let moved = cell(&["move", "default", to]).ends_with(0).json();
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
    for (arguments, status) in [(["move", "nobody", "east"], 3), (["move", "default", "west"], 3)] {
        cell(&arguments).ends_with(status);
    }
    let (status, stderr) = up.stop();
    assert_eq!(status.code(), Some(0), "{stderr}");
}
