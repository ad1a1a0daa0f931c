use std::sync::Arc;

use rcrt_breadcrumb::{BreadcrumbChanges, NewBreadcrumb, ToolFailure};
use rcrt_egress::{Egress, EgressOptions};
use rcrt_executors::CallHostOps;
use rcrt_sandbox::{ApiCall, HostOps};
use serde_json::{Value, json};
use sqlx::{Connection, PgConnection};

use crate::fake::{Fake, event_of};
use crate::fixture::{Fixture, code};

fn note(text: &str) -> NewBreadcrumb {
    let Value::Object(context) = json!({"text": text}) else { unreachable!() };
    NewBreadcrumb {
        title: "a note".into(),
        context,
        tags: vec!["note".into(), "workspace:notes".into()],
        schema_name: Some("note.v1".into()),
        ..NewBreadcrumb::default()
    }
}

fn on(selector: Value) -> Value {
    json!({"subscriptions": [selector]})
}

async fn triggered(fixture: &Fixture, tool: &str) -> Vec<Value> {
    let rows = fixture.list("tool.request.v1").await;
    let contexts = rows.into_iter().map(|row| Value::Object(row.context.unwrap()));
    contexts.filter(|context| context["tool"] == tool).collect()
}

fn answered(tool: &'static str) -> impl FnMut(&rcrt_breadcrumb::Event) -> bool {
    move |event| event.schema_name.as_deref() == Some("tool.response.v1") && event.context["tool"] == tool
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_matching_record_causes_one_request_across_runners() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fixture.create(code("reader", on(json!({"schema_name": "note.v1"})))).await;
    fixture.create(code("other", on(json!({"all_tags": ["elsewhere"]})))).await;
    fake.does("reader", |call, _| async move { Ok(event_of(&call)) });
    let runners = [fixture.start(&fake), fixture.start(&fake)];
    // A runner might not follow events until it has responded once.
    fixture.call("other", json!({})).await;
    let id = fixture.create(note("hello")).await;
    let event = fixture.event(answered("reader")).await;
    let output = &event.context["output"];
    assert_eq!((&output["breadcrumb_id"], &output["type"]), (&json!(id), &json!("breadcrumb.created")));
    assert_eq!(output["context"], json!({"text": "hello"}));
    assert!(event.tags.contains(&"workspace:notes".to_owned()));
    fixture.change(id, 1, json!({"text": "changed"})).await;
    fixture.events(2, answered("reader")).await;
    for runner in runners {
        runner.stop().await;
    }
    let requests = triggered(&fixture, "reader").await;
    assert_eq!(requests.len(), 2);
    assert!(requests.iter().all(|request| request["input"] == json!({})));
    assert_eq!(triggered(&fixture, "other").await.len(), 1, "only the direct call");
}

/// What a tool's code does through `context.api`.
async fn api(call: &rcrt_executors::ToolCall, egress: &Arc<Egress>, api: ApiCall) -> Result<Value, ToolFailure> {
    let world = CallHostOps::new(egress.clone(), call).unwrap();
    world
        .api(api)
        .await
        .map_err(|error| ToolFailure::new(rcrt_breadcrumb::ErrorCode::ExecutionFailed, error.to_string()))
}

#[tokio::test]
async fn tools_do_not_trigger_themselves_directly_or_through_others() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let egress = Arc::new(Egress::new(EgressOptions::default()).unwrap());
    for name in ["marker", "copier", "logger"] {
        let selector =
            if name == "logger" { json!({"schema_name": "tool.response.v1"}) } else { json!({"all_tags": ["note"]}) };
        fixture.create(code(name, on(selector))).await;
    }
    // Changes the record that triggered it.
    let shared = egress.clone();
    fake.does("marker", move |call, _| {
        let egress = shared.clone();
        async move {
            let event = event_of(&call);
            let id = event["breadcrumb_id"].as_str().unwrap().to_owned();
            let record = api(&call, &egress, ApiCall::GetBreadcrumb { id: id.clone() }).await?;
            let mut context = record["context"].clone();
            context["marked"] = json!(true);
            let (version, changes) = (record["version"].as_i64().unwrap(), json!({"context": context}));
            api(&call, &egress, ApiCall::UpdateBreadcrumb { id, version, changes }).await
        }
    });
    // Writes a record that matches both subscriptions.
    fake.does("copier", move |call, _| {
        let egress = egress.clone();
        async move {
            let record = json!({"title": "copy", "tags": ["note"], "context": {}, "schema_name": "note.v1"});
            api(&call, &egress, ApiCall::CreateBreadcrumb { record }).await
        }
    });
    let runner = fixture.start(&fake);
    fixture.call("none", json!({})).await;
    let id = fixture.create(note("hello")).await;
    // note → marker → changed note → copier → copy; note → copier → copy → marker → changed copy.
    // No tool occurs twice in a chain. A later note is handled only after all of these events.
    for _ in 0..2 {
        let mut left = 2;
        fixture
            .event(|event| {
                let is_mark =
                    event.context.get("marked").is_some() && event.kind == rcrt_breadcrumb::EventKind::Updated;
                left -= i32::from(is_mark);
                left == 0
            })
            .await;
    }
    let last = fixture.create(note("last")).await;
    fixture.event(|event| event.breadcrumb_id == last && event.version == 2).await;
    runner.stop().await;
    for tool in ["marker", "copier", "logger"] {
        let count = triggered(&fixture, tool).await.len();
        assert!((1..=20).contains(&count), "{tool} ran {count} times");
    }
    // A change by another agent makes a version without the chain: it triggers again.
    let record = fixture.person.get(id).await.unwrap();
    assert!(record.tags.iter().any(|tag| tag.starts_with("triggered:")));
    let before = triggered(&fixture, "marker").await.len();
    let runner = fixture.start(&fake);
    fixture.call("none", json!({})).await;
    fixture.change(id, record.version, json!({"text": "again"})).await;
    fixture.event(|event| event.breadcrumb_id == id && event.version == record.version + 2).await;
    runner.stop().await;
    assert!(triggered(&fixture, "marker").await.len() > before);
}

/// So they count among the calls below one call, whose number is limited.
#[tokio::test]
async fn a_call_that_a_triggered_call_triggers_is_below_it() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let egress = Arc::new(Egress::new(EgressOptions::default()).unwrap());
    fixture.create(code("writer", on(json!({"all_tags": ["note"]})))).await;
    fixture.create(code("reader", on(json!({"all_tags": ["copy"]})))).await;
    fake.does("writer", move |call, _| {
        let egress = egress.clone();
        async move {
            let record = json!({"title": "copy", "tags": ["copy"], "context": {}});
            api(&call, &egress, ApiCall::CreateBreadcrumb { record }).await
        }
    });
    let runner = fixture.start(&fake);
    fixture.call("none", json!({})).await;
    fixture.create(note("hello")).await;
    fixture.event(answered("reader")).await;
    runner.stop().await;
    let is_writers = |event: &rcrt_breadcrumb::Event| {
        event.schema_name.as_deref() == Some("tool.request.v1") && event.context["tool"] == "writer"
    };
    let writer = fixture.event(is_writers).await;
    assert_eq!(writer.context.get("parent"), None);
    let reader = &triggered(&fixture, "reader").await[0];
    assert_eq!(reader["parent"], json!(writer.breadcrumb_id));
}

/// Otherwise any writer could use up the calls that are allowed below the call of another agent.
#[tokio::test]
async fn a_forged_tag_does_not_decide_below_which_call_a_triggered_one_is() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let egress = Arc::new(Egress::new(EgressOptions::default()).unwrap());
    fixture.create(code("victim", json!({}))).await;
    fixture.create(code("forger", json!({}))).await;
    fixture.create(code("reader", on(json!({"all_tags": ["forged"]})))).await;
    let runner = fixture.start(&fake);
    let victim = fixture.ask("victim", json!({})).await;
    fixture.answer(victim).await;
    let forged = move |version: i64| {
        let marks = [format!("triggered:victim:{version}"), format!("triggered-by:{victim}:{version}")];
        ["forged".to_owned()].into_iter().chain(marks).collect::<Vec<_>>()
    };
    // An agent writes and changes a record, and a tool that no event led to does so too.
    let written = fixture.create(NewBreadcrumb { tags: forged(1), ..note("forged") }).await;
    let changes = BreadcrumbChanges { tags: Some(forged(2)), ..BreadcrumbChanges::default() };
    fixture.person.update(written, 1, changes).await.unwrap();
    fake.does("forger", move |call, _| {
        let egress = egress.clone();
        async move {
            let record = json!({"title": "forged", "tags": forged(1), "context": {}});
            let written = api(&call, &egress, ApiCall::CreateBreadcrumb { record }).await?;
            let (id, changes) = (written["id"].as_str().unwrap().to_owned(), json!({"tags": forged(2)}));
            api(&call, &egress, ApiCall::UpdateBreadcrumb { id, version: 1, changes }).await
        }
    });
    fixture.call("forger", json!({})).await;
    fixture.events(4, answered("reader")).await;
    runner.stop().await;
    let requests = triggered(&fixture, "reader").await;
    assert!(requests.len() == 4 && requests.iter().all(|request| request.get("parent").is_none()), "{requests:?}");
    let mut admin = PgConnection::connect(&fixture.database.admin_url).await.unwrap();
    let below = sqlx::query_scalar::<_, i32>("SELECT descendants FROM calls WHERE request = $1").bind(victim);
    assert_eq!(below.fetch_one(&mut admin).await.unwrap(), 0);
}

#[tokio::test]
async fn a_tool_that_calls_itself_is_stopped() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let egress = Arc::new(Egress::new(EgressOptions::default()).unwrap());
    fixture.create(code("again", json!({"permissions": {"tools": ["again"]}}))).await;
    fake.does("again", move |call, _| {
        let egress = egress.clone();
        async move {
            let record =
                json!({"title": "again", "schema_name": "tool.request.v1", "context": {"tool": "again", "input": {}}});
            api(&call, &egress, ApiCall::CreateBreadcrumb { record }).await
        }
    });
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("again", json!({})).await.status, rcrt_breadcrumb::ResponseStatus::Success);
    let last = fixture.event(|event| event.context.get("status") == Some(&json!("error"))).await;
    let error = last.context["error"].as_str().unwrap();
    assert!(error.contains("nested 8 deep"), "{error}");
    runner.stop().await;
    assert_eq!(fake.progress.borrow().begun, 9);
}
