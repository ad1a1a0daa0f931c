//! The working folder is a claim of the operator, or there is none.

use rcrt_breadcrumb::ErrorCode;
use rcrt_test_programs::failed;
use serde_json::json;

use crate::fixture::{Fixture, cluster, settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_claim_no_files_are_kept() {
    let Some(fixture) = Fixture::new().await else { return };
    let input = json!({"script": "print(1)", "keep_files": true});
    let failure = failed(fixture.programs.result("execute_python_script", input).await, ErrorCode::InvalidArguments);
    assert!(failure.message.starts_with("keep_files: "), "{failure}");
    let output = fixture.programs.execute(fixture.programs.call("bash", json!({"command": "ls -A"}))).await;
    assert_eq!(output.result.unwrap()["stdout"], "");
    assert!(output.metadata["notice"].as_str().unwrap().contains("working folder"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn files_stay_in_a_claim() {
    let Some(cluster) = cluster().await else { return };
    let mut kept = settings(&cluster);
    kept.workdir_claim = Some("work".into());
    let fixture = Fixture::with(&cluster, kept).await;
    std::fs::write(cluster.claim("work").join("doubling.py"), "def twice(x): return 2 * x").unwrap();
    fixture.programs.bash("echo 21 > number.txt").await;
    let script = "import doubling\nprint(doubling.twice(int(open('number.txt').read())))";
    let input = json!({"script": script, "keep_files": true});
    assert_eq!(fixture.programs.result("execute_python_script", input).await.unwrap(), "42\n");
}
