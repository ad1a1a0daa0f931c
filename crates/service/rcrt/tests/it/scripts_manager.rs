//! The scripts manager beside a server and a runner, with a cluster that runs its pods.

use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use rcrt_jail::command::Helper;
use rcrt_test_kubernetes::Cluster;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::program::{Running, run};
use crate::server_and_runner::started;

const IMAGE: &str =
    "registry.example.com/python@sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
const SCRIPT: [&str; 3] = ["call", "execute_python_script", r#"{"script": "print(6 * 7)"}"#];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn scripts_run_in_pods_and_everything_else_on_the_runner() {
    let helper =
        Helper { program: PathBuf::from(env!("CARGO_BIN_EXE_rcrt")), arguments: vec!["jailed-command".into()] };
    let cluster = match Cluster::start(helper).await {
        Ok(cluster) => cluster,
        Err(reason) => {
            assert!(std::env::var_os("RCRT_TEST_NEEDS_JAIL").is_none(), "{reason}");
            return eprintln!("not tried, for this machine gives no jail: {reason}");
        }
    };
    let folder = TempDir::new().unwrap();
    let server = Running::start(&folder.path().join("data"), &["server", "--listen", "127.0.0.1:0"]);
    server.run(&["bootstrap"]).ends_with(0);
    let (authority, token) = (cluster.authority(), cluster.token());
    let options = [
        "scripts-manager",
        "--image",
        IMAGE,
        "--namespace",
        &cluster.namespace(),
        "--kubernetes",
        cluster.url.as_str(),
        "--kubernetes-ca",
        authority.to_str().unwrap(),
        "--kubernetes-token",
        token.to_str().unwrap(),
    ];
    let mut manager = started(&server, &options);
    let ran = |response: &Value| {
        assert_eq!((&response["status"], &response["output"]), (&json!("success"), &json!("42\n")), "{response}");
        let pod = response["metadata"]["pod"].as_str().unwrap_or_default();
        assert!(pod.starts_with("rcrt-script-"), "{response}");
    };
    ran(&server.json(&SCRIPT));

    // It takes no other call.
    let waits = server.run(&["call", "calculator", r#"{"expression": "6 * 7"}"#, "--timeout", "1"]).ends_with(1);
    assert!(waits.stderr.contains("no runner had started it"), "{}", waits.stderr);
    let mut runner = started(&server, &["runner", "--disable-tool", "execute_python_script"]);
    let response = server.json(&["call", "calculator", r#"{"expression": "6 * 7"}"#]);
    assert_eq!(response["status"], "success", "{response}");
    for _ in 0..3 {
        ran(&server.json(&SCRIPT));
    }
    assert_eq!(server.json(&["runners"]).as_array().unwrap().len(), 2);

    for child in [&mut manager, &mut runner] {
        kill(Pid::from_raw(child.id() as i32), Signal::SIGTERM).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0));
    }
    cluster.pods(<[_]>::is_empty).await;
    assert_eq!(cluster.forbidden(), Vec::<String>::new());
}

#[test]
fn wrong_options_are_refused() {
    for (options, says) in [
        (vec!["--image", "python:3.12-slim"], "must name the image by its digest"),
        (vec!["--image", IMAGE, "--package-index", "https://ada:secret@pypi.example.com/"], "no user and no password"),
        (vec!["--image", IMAGE, "--kubernetes", "http://10.96.0.1"], "must start with https://"),
        (vec!["--image", IMAGE, "--kubernetes", "https://10.96.0.1"], "set --namespace"),
        (vec!["--image", IMAGE], "set --kubernetes"),
        (vec!["--image", IMAGE, "--pod-tool", "read_file"], "execute_python_script"),
    ] {
        let ran = run(&[&["scripts-manager"], options.as_slice()].concat()).ends_with(2);
        assert!(ran.stderr.contains(says), "{options:?}: {}", ran.stderr);
    }
}
