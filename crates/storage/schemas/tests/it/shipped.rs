//! The shipped definitions: they only warn, and refuse no record of another author's tools or
//! clients.

use rcrt_breadcrumb::{NewBreadcrumb, Role};
use rcrt_conformance::Harness;
use rcrt_conformance::harness::object;
use serde_json::{Value, json};

use crate::harness::LayerHarness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_shipped_definition_refuses_a_record() {
    let harness = LayerHarness::start().await;
    let agent = harness.agent_with(harness.tenant().await, &Role::ALL).await;
    let mut names = Vec::new();
    for file in std::fs::read_dir("../../../bootstrap-breadcrumbs/schemas").unwrap() {
        let text = std::fs::read_to_string(file.unwrap().path()).unwrap();
        let record: NewBreadcrumb = serde_json::from_str(&text).unwrap();
        names.push(record.context["schema_name"].as_str().unwrap().to_owned());
        agent.create(record, None).await.unwrap();
    }
    assert!(names.len() >= 13, "{names:?}");
    // The format of requests, and that only runners respond, are rules of the runtime and not of a
    // definition.
    // Other programs have no records of MCP servers and A2A, and only curators and runners write
    // them.
    let judged_elsewhere = [
        "tool.request.v1",
        "tool.response.v1",
        "tool.create.request.v1",
        "tool.create.response.v1",
        "mcp.server.v1",
        "a2a.agent.v1",
        "a2a.card.v1",
        "a2a.task.v1",
    ];
    for name in names.into_iter().filter(|name| !judged_elsewhere.contains(&name.as_str())) {
        let foreign = NewBreadcrumb {
            title: "As another program writes it".into(),
            schema_name: Some(name.clone()),
            context: object(json!({"name": 5, "shape": ["of", "their", "own"], "tools": {}})),
            ..NewBreadcrumb::default()
        };
        let written = agent.create(foreign, None).await.unwrap_or_else(|error| panic!("{name}: {error}"));
        let read = agent.get(written.id).await.unwrap();
        assert_eq!(Value::Object(read.context)["shape"], json!(["of", "their", "own"]), "{name}");
    }
    harness.close().await;
}
