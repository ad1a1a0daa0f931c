use std::process::Command;

use metrics_exporter_prometheus::PrometheusBuilder;
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, code};

/// In a process of its own: a process has one recorder and a bounded number of tools with labels,
/// which the tools of other tests can use up.
#[test]
fn invocations_are_counted_by_known_tools_and_status() {
    let test = ["--exact", "telemetry::count_invocations", "--ignored", "--nocapture"];
    let child = Command::new(std::env::current_exe().unwrap()).args(test).output().unwrap();
    let text = String::from_utf8_lossy(&child.stdout);
    assert!(child.status.success() && text.contains("1 passed"), "{text}{}", String::from_utf8_lossy(&child.stderr));
}

#[tokio::test]
#[ignore = "runs in the child process of the test above"]
async fn count_invocations() {
    let metrics = PrometheusBuilder::new().install_recorder().unwrap();
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("counted", json!({}))).await;
    let runner = fixture.start(&fake);
    fixture.call("counted", json!({})).await;
    fixture.call("counted", json!([])).await;
    fixture.call("made-up-1", json!({})).await;
    fixture.call("made-up-2", json!({})).await;
    runner.stop().await;
    let text = metrics.render();
    assert!(text.contains("rcrt_tool_invocations_total{tool=\"counted\",status=\"success\"} 1"), "{text}");
    assert!(text.contains("rcrt_tool_invocations_total{tool=\"counted\",status=\"error\"} 1"), "{text}");
    assert!(text.contains("rcrt_tool_invocations_total{tool=\"(unknown)\",status=\"error\"}"), "{text}");
    assert!(text.contains("rcrt_tool_invoke_duration_seconds_count{tool=\"counted\",status=\"success\"} 1"), "{text}");
    assert!(!text.contains("made-up"), "{text}");
}
