//! Packages come from the index that the operator allows, by a step before the script.

use rcrt_breadcrumb::ErrorCode;
use rcrt_test_programs::failed;
use serde_json::{Value, json};

use crate::fixture::{Fixture, cluster, settings};

fn with_package(script: &str) -> Value {
    json!({"script": script, "pip_packages": ["no_such-package"]})
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_an_index_packages_are_refused() {
    let Some(fixture) = Fixture::new().await else { return };
    let result = fixture.programs.result("execute_python_script", with_package("print(1)")).await;
    let failure = failed(result, ErrorCode::PermissionDenied);
    assert!(failure.message.starts_with("pip_packages: ") && failure.message.contains("--package-index"), "{failure}");
    assert!(fixture.created().is_empty());
}

/// The index is asked, and its answer is the failure. The script does not run.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_index_of_the_operator_is_asked() {
    let Some(cluster) = cluster().await else { return };
    let index = rcrt_test_servers::service::Service::new(|_| axum::http::StatusCode::NOT_FOUND).await;
    let mut allowing = settings(&cluster);
    allowing.package_index = Some(format!("http://127.0.0.1:{}/simple", index.port).parse().unwrap());
    let fixture = Fixture::with(&cluster, allowing).await;
    let result = fixture.programs.result("execute_python_script", with_package("print(1)")).await;
    let failure = failed(result, ErrorCode::ExecutionFailed);
    assert!(failure.message.starts_with("no-such-package cannot be installed: "), "{failure}");
    assert_eq!(failure.details.unwrap()["stage"], "packages");
    assert!(index.seen().iter().any(|seen| seen.uri.path().contains("no-such-package")), "{:?}", index.seen());
    let created = fixture.created();
    assert_eq!(created[0]["metadata"]["labels"]["rcrt/packages"], "true");
    fixture.cluster.pods(<[_]>::is_empty).await;
}
