//! A tool is live when its record is written, and gone when it is deleted.

use std::sync::Arc;

use breadcrumb::{
    BreadcrumbChanges, BreadcrumbQuery, Breadcrumbs, ErrorCode, EventStream, NewBreadcrumb, ToolRequest, ToolResponse,
};
use client::Client;
use futures::StreamExt;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::process::{Place, Rcrt};
use crate::written;

struct House {
    place: Place,
    up: Rcrt,
    store: Arc<Client>,
    events: EventStream,
}

impl House {
    async fn start() -> Self {
        let place = Place::new();
        let up = place.start(&["up", "--no-seed", "--listen", &place.listen.to_string()]);
        let store = place.client().await;
        place.ready().await;
        let events = store.events(None).await.unwrap();
        Self { place, up, store, events }
    }

    async fn call(&mut self, tool: &str, input: Value) -> ToolResponse {
        let request_id = Uuid::new_v4().to_string();
        self.store.create(ToolRequest::record(tool, input, Some(&request_id), None), None).await.unwrap();
        self.event(&ToolResponse::tag(&request_id)).await.1
    }

    /// Waits for the next response of this tool, whoever asked for it.
    async fn response_of(&mut self, tool: &str) -> ToolResponse {
        loop {
            let (_, response) = self.event("tool:response").await;
            if response.tool == tool {
                return response;
            }
        }
    }

    /// Waits for the next record with this tag that reads as a response.
    async fn event(&mut self, tag: &str) -> (Uuid, ToolResponse) {
        let context = self.record(tag).await;
        (context.0, ToolResponse::from_context(&context.1).unwrap())
    }

    async fn record(&mut self, tag: &str) -> (Uuid, Map<String, Value>) {
        let waited = async {
            loop {
                let event = self.events.next().await.unwrap().unwrap();
                if event.tags.iter().any(|one| one == tag) {
                    return (event.breadcrumb_id, event.context);
                }
            }
        };
        tokio::time::timeout(crate::process::PATIENCE, waited).await.expect("the record comes")
    }

    async fn stop(self) {
        assert_eq!(self.up.stop().await, Some(0), "{}", self.place.log());
    }
}

fn tool(name: &str, source: &str, extra: &Value) -> NewBreadcrumb {
    written::tool(name, source, &json!({"type": "object", "properties": {}}), extra)
}

fn says(text: &str) -> String {
    format!("export async function execute(): Promise<string> {{\n  return {text:?};\n}}\n")
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_is_written_changed_broken_mended_and_deleted() {
    let mut house = House::start().await;
    let unknown = house.call("greeter", json!({})).await;
    assert_eq!(unknown.error_code, Some(ErrorCode::ToolNotFound));

    let created = house.store.create(tool("greeter", &says("one"), &json!({})), None).await.unwrap();
    house.until("greeter", |response| response.output == Some(json!("one"))).await;

    let change = |source: &str| BreadcrumbChanges {
        context: Some(tool("greeter", source, &json!({})).context),
        ..BreadcrumbChanges::default()
    };
    house.store.update(created.id, created.version, change(&says("two"))).await.unwrap();
    house.until("greeter", |response| response.output == Some(json!("two"))).await;

    // A broken version does not replace the working one, and its author is told where it is broken.
    house.store.update(created.id, 2, change("export async function execute( {")).await.unwrap();
    let (_, report) = house.record("tool:error").await;
    assert_eq!((&report["tool"], &report["version"]), (&json!("greeter"), &json!(3)));
    assert!(report["errors"][0]["line"].is_number(), "{report:?}");
    assert_eq!(house.call("greeter", json!({})).await.output, Some(json!("two")));

    house.store.update(created.id, 3, change(&says("three"))).await.unwrap();
    house.until("greeter", |response| response.output == Some(json!("three"))).await;
    house.store.delete(created.id, None).await.unwrap();
    house.until("greeter", |response| response.error_code == Some(ErrorCode::ToolNotFound)).await;
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stack_names_the_authors_line() {
    let mut house = House::start().await;
    let source = "interface Far {\n  away: string;\n}\n\nfunction fall(far: Far): never {\n  throw new RangeError(far.away);\n}\n\n\
                  export async function execute() {\n  return fall({ away: \"too far\" });\n}\n";
    house.store.create(tool("faller", source, &json!({})), None).await.unwrap();
    house.until("faller", |response| response.error_code == Some(ErrorCode::ExecutionFailed)).await;
    let response = house.call("faller", json!({})).await;
    let told = serde_json::to_string(&response.error_details).unwrap();
    assert!(response.error.unwrap().contains("too far"));
    assert!(told.contains("faller.ts:6:9") && told.contains("faller.ts:10:10"), "{told}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_subscribed_tool_runs_when_a_matching_record_appears() {
    let mut house = House::start().await;
    let source = "export async function execute(input: unknown, context: any) {\n  \
                  return context.request.trigger_event.context.word ?? \"called\";\n}\n";
    let subscriptions = json!({"subscriptions": [{"schema_name": "note.v1"}]});
    house.store.create(tool("listener", source, &subscriptions), None).await.unwrap();
    // A call's own event is that of its request.
    house.until("listener", |response| response.output == Some(json!("called"))).await;

    let note = NewBreadcrumb {
        title: "A note".into(),
        context: json!({"word": "heard"}).as_object().unwrap().clone(),
        schema_name: Some("note.v1".into()),
        ..NewBreadcrumb::default()
    };
    house.store.create(note, None).await.unwrap();
    let response = house.response_of("listener").await;
    assert_eq!(response.output, Some(json!("heard")), "{response:?}");
    house.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tool_that_bootstraps_once_runs_once_also_after_a_restart() {
    let mut house = House::start().await;
    let once = json!({"bootstrap": {"enabled": true, "mode": "once"}});
    house.store.create(tool("starter", &says("started"), &once), None).await.unwrap();
    assert_eq!(house.response_of("starter").await.output, Some(json!("started")));
    let House { place, up, .. } = house;
    assert_eq!(up.stop().await, Some(0));

    let up = place.start(&["up", "--no-seed", "--listen", &place.listen.to_string()]);
    let store = place.client().await;
    place.ready_again(2).await;
    let events = store.events(None).await.unwrap();
    let mut house = House { place, up, store, events };
    assert_eq!(house.call("starter", json!({})).await.output, Some(json!("started")));
    let requests = house.store.list(&BreadcrumbQuery::of_schema("tool.request.v1")).await.unwrap();
    let of_starter = requests.iter().filter(|item| item.context.as_ref().unwrap()["tool"] == "starter").count();
    assert_eq!(of_starter, 2, "the one of the first start, and ours");
    house.stop().await;
}

impl House {
    /// Calls until the runner has heard of the change; the issue gives it a second.
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
