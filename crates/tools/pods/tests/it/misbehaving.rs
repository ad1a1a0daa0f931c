//! An API server and nodes that misbehave. What passes is waited for; what does not is a failure
//! that says what happened. Nothing is left behind either way.

use std::time::Duration;

use rcrt_breadcrumb::ErrorCode;
use rcrt_test_kubernetes::Fault;
use rcrt_test_programs::{failed, limited};
use serde_json::json;

use crate::fixture::{Fixture, cluster, script, settings};

/// What the server does wrong is not noticed by the caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn faults_of_the_api_server_are_waited_for() {
    let Some(fixture) = Fixture::new().await else { return };
    assert_eq!(fixture.python("print(1)").await.unwrap(), "1\n");
    for fault in [Fault::Busy, Fault::Conflict, Fault::LostResponse, Fault::CutWatch, Fault::OldVersion] {
        fixture.cluster.misbehave(fault);
        let result = fixture.python("print(6 * 7)").await;
        assert_eq!(result.unwrap_or_else(|failure| panic!("{fault:?}: {failure}")), "42\n");
        assert!(fixture.cluster.has_misbehaved(), "{fault:?}");
    }
    fixture.cluster.pods(<[_]>::is_empty).await;
    // One for each call, also if the response of its creation was lost.
    assert_eq!(fixture.created().len(), 6);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_token_is_read_again_when_it_was_replaced() {
    let Some(fixture) = Fixture::new().await else { return };
    assert_eq!(fixture.python("print(1)").await.unwrap(), "1\n");
    fixture.cluster.replace_token();
    assert_eq!(fixture.python("print(2)").await.unwrap(), "2\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_is_lost_is_a_retryable_failure() {
    let Some(fixture) = Fixture::new().await else { return };
    for (fault, says) in [
        (Fault::ImageMissing, "the pod cannot start: ImagePullBackOff: failed to resolve reference: not found"),
        (Fault::Evicted, "the pod was evicted: The node was low on resource: memory."),
        (Fault::Drained, "the pod was deleted while it ran, for example because its node was drained"),
    ] {
        fixture.cluster.misbehave(fault);
        let failure = failed(fixture.python("print(1)").await, ErrorCode::ExecutionFailed);
        assert_eq!((failure.message.as_str(), failure.is_retryable), (says, true));
    }
    fixture.cluster.pods(<[_]>::is_empty).await;
    assert_eq!(fixture.python("print(1)").await.unwrap(), "1\n");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_finds_no_node_is_not_waited_for_without_end() {
    let Some(cluster) = cluster().await else { return };
    let ready = Fixture::with(&cluster, settings(&cluster)).await;
    // The proof needs the usual time.
    assert_eq!(ready.python("print(1)").await.unwrap(), "1\n");
    let mut short = settings(&cluster);
    (short.start, short.accept_open_network) = (Duration::from_secs(5), true);
    let fixture = Fixture::with(&cluster, short).await;
    cluster.misbehave(Fault::Unschedulable);
    let failure = failed(fixture.python("print(1)").await, ErrorCode::ExecutionFailed);
    let says = "the pod did not start within 5 s: Unschedulable: 0/3 nodes are available: 3 Insufficient memory.";
    assert_eq!(failure.message, says);
    cluster.pods(<[_]>::is_empty).await;
}

/// The wrapper dies with the program, so the beginning of the output is all that is known.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_container_that_is_killed_for_its_memory_keeps_the_beginning_of_its_output() {
    let Some(fixture) = Fixture::new().await else { return };
    fixture.cluster.misbehave(Fault::OutOfMemory);
    let failure = failed(fixture.python("print(1)").await, ErrorCode::ResourceExhausted);
    assert_eq!(failure.message, "it used more than 256 MiB of memory and was killed");
    assert_eq!(failure.details.unwrap(), json!({"limit": "memory_mb", "allowed": 256, "stdout": "so far\n"}));
}

/// The call ends at its own limit, and its pod with it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_pod_that_never_ends_is_deleted_at_the_end_of_the_call() {
    let Some(fixture) = Fixture::new().await else { return };
    assert_eq!(fixture.python("print(1)").await.unwrap(), "1\n");
    fixture.cluster.misbehave(Fault::Hangs);
    let call = fixture.programs.call("execute_python_script", script("print(1)"));
    let call = limited(call, |limits| limits.timeout_ms = 2_000);
    let failure = failed(fixture.programs.execute(call).await.result, ErrorCode::Timeout);
    assert_eq!(failure.message, "the tool did not end within 2000 ms");
    fixture.cluster.pods(<[_]>::is_empty).await;
}
