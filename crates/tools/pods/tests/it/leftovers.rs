//! No pod and no secret outlives its call, also not if the process is killed, and there are never
//! more pods than allowed.

use rcrt_executors::Executor;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::fixture::{Fixture, cluster, is_named, script, settings};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_leaves_no_pod_and_no_secret() {
    let Some(fixture) = Fixture::new().await else { return };
    let input = json!({"script": "import os; print(os.environ['RCRT_INPUT'])", "input_data": "given"});
    assert_eq!(fixture.programs.result("execute_python_script", input).await.unwrap(), "given\n");
    fixture.cluster.pods(<[_]>::is_empty).await;
    assert_eq!(fixture.cluster.secrets(), Vec::<Value>::new());
    // The role of the chart allows everything that was asked for.
    assert_eq!(fixture.cluster.forbidden(), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_call_deletes_its_pod() {
    let Some(fixture) = Fixture::new().await else { return };
    assert_eq!(fixture.python("print(1)").await.unwrap(), "1\n");
    let call = fixture.programs.call("execute_python_script", script("import time; time.sleep(600)"));
    let cancelled = CancellationToken::new();
    let running = async {
        let runs = |pods: &[Value]| pods.iter().any(|pod| pod["status"]["phase"] == "Running");
        fixture.cluster.pods(runs).await;
        cancelled.cancel();
    };
    let (output, ()) = tokio::join!(fixture.programs.executor.execute(call, cancelled.clone()), running);
    assert!(output.result.is_err());
    fixture.cluster.pods(<[_]>::is_empty).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn there_are_never_more_pods_than_allowed() {
    let Some(cluster) = cluster().await else { return };
    let mut few = settings(&cluster);
    few.max_pods = 2;
    let fixture = Fixture::with(&cluster, few).await;
    let (one, two, three, four) = tokio::join!(
        fixture.python("print(1)"),
        fixture.python("print(2)"),
        fixture.python("print(3)"),
        fixture.python("print(4)"),
    );
    for (result, printed) in [(one, "1\n"), (two, "2\n"), (three, "3\n"), (four, "4\n")] {
        assert_eq!(result.unwrap(), printed);
    }
    assert!(cluster.most_pods() <= 2, "{}", cluster.most_pods());
}

/// Pods of a process that was killed are found by their label when they have expired. Those of
/// others that live, and pods of other programs, stay.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_a_killed_process_are_swept_when_they_have_expired() {
    let Some(cluster) = cluster().await else { return };
    let pod = |name: &str, manager: &str, expires: &str| {
        json!({"metadata": {
            "name": name,
            "labels": {"app.kubernetes.io/managed-by": manager, "rcrt/created-by": "another"},
            "annotations": {"rcrt/expires": expires},
        }, "spec": {}})
    };
    let ours = "rcrt-scripts-manager";
    // More than a page of them.
    for number in 0..5 {
        cluster.create(pod(&format!("old-{number}"), ours, "1"));
    }
    cluster.create(pod("new", ours, "99999999999"));
    cluster.create(pod("foreign", "somebody", "1"));
    let _fixture = Fixture::with(&cluster, settings(&cluster)).await;
    let is_kept = |pod: &&Value| !is_named(pod, "rcrt-probe-");
    let names =
        |pods: &[Value]| pods.iter().filter(is_kept).map(|pod| pod["metadata"]["name"].clone()).collect::<Vec<_>>();
    cluster.pods(|pods| names(pods) == ["foreign", "new"]).await;
}
