//! A tool is live when its record is written, and gone when it is deleted.

use std::sync::Arc;

use futures::StreamExt;
use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbQuery, ErrorCode, EventStream, Events, NewBreadcrumb, Records, ToolRequest,
    ToolResponse,
};
use rcrt_client::Client;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::process::{Installation, Rcrt};
use crate::tool_record;

struct LiveSystem {
    installation: Installation,
    up: Rcrt,
    store: Arc<Client>,
    events: EventStream,
}

impl LiveSystem {
    async fn start() -> Self {
        let installation = Installation::new();
        let up = installation.start(&["up", "--no-seed", "--listen", &installation.listen.to_string()]);
        let store = installation.client().await;
        installation.ready().await;
        let events = store.events(None).await.unwrap();
        Self { installation, up, store, events }
    }

    async fn call(&mut self, tool: &str, input: Value) -> ToolResponse {
        let request_id = Uuid::new_v4().to_string();
        self.store.create(ToolRequest::record(tool, input, Some(&request_id), None), None).await.unwrap();
        self.event(&ToolResponse::tag(&request_id)).await.1
    }

    /// Waits for the next response of this tool to any request.
    async fn response_of(&mut self, tool: &str) -> ToolResponse {
        loop {
            let (_, response) = self.event("tool:response").await;
            if response.tool == tool {
                return response;
            }
        }
    }

    /// Waits for the next record with this tag that is a response.
    async fn event(&mut self, tag: &str) -> (Uuid, ToolResponse) {
        let context = self.record(tag).await;
        (context.0, ToolResponse::from_context(&context.1).unwrap())
    }

    async fn record(&mut self, tag: &str) -> (Uuid, Map<String, Value>) {
        let waited = async {
            loop {
                let event = self.events.next().await.unwrap().unwrap();
                if event.tags.iter().any(|one| one == tag) {
                    return (event.breadcrumb_id, event.context.clone().into());
                }
            }
        };
        tokio::time::timeout(crate::process::PATIENCE, waited).await.expect("the record appears")
    }

    async fn stop(self) {
        assert_eq!(self.up.stop().await, Some(0), "{}", self.installation.log());
    }
}

fn tool(name: &str, source: &str, extra: &Value) -> NewBreadcrumb {
    tool_record::tool(name, source, &json!({"type": "object", "properties": {}}), extra)
}

fn says(text: &str) -> String {
    format!("export async function execute(): Promise<string> {{\n  return {text:?};\n}}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_created_changed_broken_fixed_and_deleted() {
    let mut system = LiveSystem::start().await;
    let unknown = system.call("greeter", json!({})).await;
    assert_eq!(unknown.error_code, Some(ErrorCode::ToolNotFound));

    let created = system.store.create(tool("greeter", &says("one"), &json!({})), None).await.unwrap();
    system.until("greeter", |response| response.output == Some(json!("one"))).await;

    let change = |source: &str| BreadcrumbChanges {
        context: Some(tool("greeter", source, &json!({})).context),
        ..BreadcrumbChanges::default()
    };
    system.store.update(created.id, created.version, change(&says("two"))).await.unwrap();
    system.until("greeter", |response| response.output == Some(json!("two"))).await;

    // A broken version does not replace the working one, and its author gets the position of the
    // error.
    system.store.update(created.id, 2, change("export async function execute( {")).await.unwrap();
    let (_, report) = system.record("tool:error").await;
    assert_eq!((&report["tool"], &report["version"]), (&json!("greeter"), &json!(3)));
    assert!(report["errors"][0]["line"].is_number(), "{report:?}");
    assert_eq!(system.call("greeter", json!({})).await.output, Some(json!("two")));

    system.store.update(created.id, 3, change(&says("three"))).await.unwrap();
    system.until("greeter", |response| response.output == Some(json!("three"))).await;
    system.store.delete(created.id, None).await.unwrap();
    system.until("greeter", |response| response.error_code == Some(ErrorCode::ToolNotFound)).await;
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_names_the_authors_line() {
    let mut system = LiveSystem::start().await;
    let source = "interface Far {\n  away: string;\n}\n\nfunction fall(far: Far): never {\n  throw new RangeError(far.away);\n}\n\n\
                  export async function execute() {\n  return fall({ away: \"too far\" });\n}\n";
    system.store.create(tool("faller", source, &json!({})), None).await.unwrap();
    system.until("faller", |response| response.error_code == Some(ErrorCode::ExecutionFailed)).await;
    let response = system.call("faller", json!({})).await;
    let details = serde_json::to_string(&response.error_details).unwrap();
    assert!(response.error.unwrap().contains("too far"));
    assert!(details.contains("faller.ts:6:9") && details.contains("faller.ts:10:10"), "{details}");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscribed_tool_runs_when_a_matching_record_appears() {
    let mut system = LiveSystem::start().await;
    let source = "export async function execute(input: unknown, context: any) {\n  \
                  return context.request.trigger_event.context.word ?? \"called\";\n}\n";
    let subscriptions = json!({"subscriptions": [{"schema_name": "note.v1"}]});
    system.store.create(tool("listener", source, &subscriptions), None).await.unwrap();
    // The trigger event of an ordinary call is the event of its request.
    system.until("listener", |response| response.output == Some(json!("called"))).await;

    let note = NewBreadcrumb {
        title: "A note".into(),
        context: json!({"word": "heard"}).as_object().unwrap().clone(),
        schema_name: Some("note.v1".into()),
        ..NewBreadcrumb::default()
    };
    system.store.create(note, None).await.unwrap();
    let response = system.response_of("listener").await;
    assert_eq!(response.output, Some(json!("heard")), "{response:?}");
    system.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_bootstraps_once_runs_once_also_after_a_restart() {
    let mut system = LiveSystem::start().await;
    let once = json!({"bootstrap": {"enabled": true, "mode": "once"}});
    system.store.create(tool("starter", &says("started"), &once), None).await.unwrap();
    assert_eq!(system.response_of("starter").await.output, Some(json!("started")));
    let LiveSystem { installation, up, .. } = system;
    assert_eq!(up.stop().await, Some(0));

    let up = installation.start(&["up", "--no-seed", "--listen", &installation.listen.to_string()]);
    let store = installation.client().await;
    installation.ready_again(2).await;
    let events = store.events(None).await.unwrap();
    let mut system = LiveSystem { installation, up, store, events };
    assert_eq!(system.call("starter", json!({})).await.output, Some(json!("started")));
    let requests = system.store.list(&BreadcrumbQuery::of_schema("tool.request.v1")).await.unwrap();
    let of_starter = requests.iter().filter(|item| item.context.as_ref().unwrap()["tool"] == "starter").count();
    assert_eq!(of_starter, 2, "one from the first start, and one from this test");
    system.stop().await;
}

impl LiveSystem {
    /// Calls until the runner has received the change.
    async fn until(&mut self, tool: &str, is_so: impl Fn(&ToolResponse) -> bool) {
        let begun = std::time::Instant::now();
        loop {
            let response = self.call(tool, json!({})).await;
            if is_so(&response) {
                return;
            }
            assert!(begun.elapsed() < crate::process::PATIENCE, "{response:?}");
        }
    }
}
