use futures::StreamExt;
use rcrt_breadcrumb::{BreadcrumbQuery, ErrorCode, Events, Example, Records, ToolRequest, ToolResponse};
use serde::Deserialize;

use crate::process::Installation;

/// Tools whose examples have their own network and records: `rcrt tool test` runs them, in the
/// tests of the program.
const WITH_THEIR_OWN_WORLD: [&str; 8] = [
    "breadcrumb-search",
    "browser-context-capture",
    "context-builder",
    "ollama",
    "openrouter",
    "openrouter-models-sync",
    "venice",
    "workflow",
];

/// Every example of the other included tools runs in the sandbox. If it has an output, the tool
/// returns exactly that.
#[tokio::test(flavor = "multi_thread")]
async fn included_tools_return_what_their_examples_say() {
    let (installation, up, store) = Installation::up().await;
    let tools = store.list(&BreadcrumbQuery::of_schema("tool.code.v1")).await.unwrap();
    let mut names: Vec<&str> = Vec::new();

    let mut events = store.events(None).await.unwrap();
    for tool in &tools {
        let context = tool.context.as_ref().unwrap();
        let name = context["name"].as_str().unwrap();
        names.push(name);
        if WITH_THEIR_OWN_WORLD.contains(&name) {
            continue;
        }
        let examples = Vec::<Example>::deserialize(&context["examples"]).unwrap();
        assert!(!examples.is_empty(), "{name}");
        for (index, example) in examples.into_iter().enumerate() {
            let request_id = format!("{name}-{index}");
            let record = ToolRequest::record(name, example.input.clone(), Some(&request_id), None);
            store.create(record, None).await.unwrap();
            let response = loop {
                let event = events.next().await.unwrap().unwrap();
                if event.tags.contains(&ToolResponse::tag(&request_id)) {
                    break ToolResponse::from_context(&event.context).unwrap();
                }
            };
            assert_eq!(response.error_code, None::<ErrorCode>, "{name}, {}: {response:?}", example.description);
            if let Some(expected) = example.output {
                assert_eq!(response.output, Some(expected), "{name}, {}", example.description);
            }
        }
    }
    names.sort_unstable();
    let mut shipped = vec!["breadcrumb-create", "calculator", "echo", "json-transform", "random", "timer"];
    shipped.extend(WITH_THEIR_OWN_WORLD);
    shipped.sort_unstable();
    assert_eq!(names, shipped);
    assert_eq!(up.stop().await, Some(0), "{}", installation.log());
}
