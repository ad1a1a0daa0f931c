//! Tests of `bash` that hold only in a jail; `suite.rs` has the others.

use std::fs;
use std::os::unix::fs::MetadataExt;

use serde_json::json;

use crate::fixture::{PATIENCE, Tools, needs_the_jail};

#[tokio::test]
async fn a_command_runs_in_the_working_folder() {
    needs_the_jail!();
    let tools = Tools::new().await;
    let output = tools.tried("pwd; echo words >&2; echo text > new.txt; exit 3").await;
    assert_eq!(output, json!({"exit_code": 3, "stdout": "/work\n", "stderr": "words\n"}));
    assert_eq!(fs::read_to_string(tools.work().join("new.txt")).unwrap(), "text\n");
}

#[tokio::test]
async fn files_belong_to_the_runners_user() {
    needs_the_jail!();
    let tools = Tools::new().await;
    tools.bash("mkdir -p a/b; echo one > a/b/one; chmod 600 a/b/one").await;
    let (folder, file) = (tools.work(), tools.work().join("a/b/one"));
    assert_eq!(fs::metadata(&file).unwrap().uid(), fs::metadata(&folder).unwrap().uid());
    // The next command can also change what the runner writes.
    fs::write(folder.join("by-runner"), "from outside\n").unwrap();
    assert_eq!(
        tools.bash("cat by-runner; echo more >> by-runner; mv by-runner moved; cat a/b/one").await,
        "from outside\none\n"
    );
    assert_eq!(fs::read_to_string(folder.join("moved")).unwrap(), "from outside\nmore\n");
}

#[tokio::test]
async fn commands_run_concurrently() {
    needs_the_jail!();
    let tools = Tools::new().await;
    // Each waits for the other, so one alone would never finish.
    let wait = |own: &str, other: &str| {
        tools.result(
            "bash",
            json!({"command": format!("touch {own}; until [ -e {other} ]; do sleep 0.02; done; echo met")}),
        )
    };
    let (one, two) = tokio::join!(wait("one", "two"), wait("two", "one"));
    assert_eq!((&one.unwrap()["stdout"], &two.unwrap()["stdout"]), (&json!("met\n"), &json!("met\n")));
    tokio::time::timeout(PATIENCE, tools.jail.ended()).await.unwrap();
}
