//! What a pod may do, and that its specification shows nothing of a script.
//! `deploy/tests/chart.py` validates the golden file for each version of Kubernetes.

use serde_json::{Value, json};

use crate::fixture::{Fixture, cluster, settings};

/// Replaces what differs in each pod.
fn stable(pod: &Value) -> Value {
    let mut pod = pod.clone();
    let name = pod["metadata"]["name"].as_str().unwrap().to_owned();
    pod["metadata"]["labels"]["rcrt/created-by"] = "00000000-0000-0000-0000-000000000000".into();
    pod["metadata"]["annotations"]["rcrt/expires"] = "1800000000".into();
    for of in ["initContainers", "containers"] {
        for container in pod["spec"][of].as_array_mut().unwrap() {
            // The wrapper is a file of its own.
            container["command"][3] = "…".into();
        }
    }
    serde_json::from_str(&pod.to_string().replace(&name, "rcrt-script-0")).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_match_the_golden_file() {
    let Some(cluster) = cluster().await else { return };
    let mut all = settings(&cluster);
    all.package_index = Some("http://127.0.0.1:1/simple".parse().unwrap());
    all.workdir_claim = Some("work".into());
    all.placement = json!({"nodeSelector": {"pool": "scripts"}}).as_object().unwrap().clone();
    let fixture = Fixture::with(&cluster, all).await;
    let secret = "print('only for this call')";
    for input in [
        json!({"script": secret, "input_data": "given"}),
        json!({"script": secret, "pip_packages": ["numpy"], "keep_files": true}),
    ] {
        let _ = fixture.programs.result("execute_python_script", input).await;
    }
    fixture.programs.bash("echo only for this call").await;
    let pods: Vec<Value> = fixture.created().iter().map(stable).collect();
    let text = serde_json::to_string_pretty(&pods).unwrap() + "\n";
    assert!(!text.contains("only for this call") && !text.contains("given"), "{text}");
    rcrt_test_tenant::golden(env!("CARGO_MANIFEST_DIR"), "pods.json", &text);
}
