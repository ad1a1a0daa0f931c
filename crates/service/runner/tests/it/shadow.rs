//! A shadow runs beside the `tool.v1` of its name, and only the `tool.v1` answers.

use std::sync::Arc;

use chrono::TimeDelta;
use rcrt_breadcrumb::{
    BreadcrumbChanges, Breadcrumbs, DRAFT_TAG, ErrorCode, NewBreadcrumb, ShadowReport, StoreError, ToolFailure,
    ToolRequest, ToolResponse, Visibility, schema_names, shadow_tag,
};
use rcrt_runner::RunnerOptions;
use serde_json::{Map, Value, json};
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, code, native, options};
use crate::rights::emitter;

fn http(name: &str, annotations: Value) -> NewBreadcrumb {
    let implementation = json!({"type": "http", "url": "https://api.example.com/"});
    native(name, json!({"implementation": implementation, "annotations": annotations}))
}

/// A draft of code that is a shadow for all calls.
fn shadow(name: &str, annotations: Value) -> NewBreadcrumb {
    let mut record = code(name, json!({"annotations": annotations}));
    record.tags.extend([DRAFT_TAG.to_owned(), shadow_tag(100)]);
    record
}

fn read_only() -> Value {
    json!({"read_only": true})
}

/// A tenant with a `tool.v1` named `twin` and its shadow, and an agent that calls it.
struct Twin {
    fixture: Fixture,
    fake: Arc<Fake>,
    runner: Running,
    caller: Arc<dyn Breadcrumbs>,
    legacy: Uuid,
    draft: Uuid,
}

impl Twin {
    async fn start(options: RunnerOptions) -> Self {
        let (fixture, fake) = (Fixture::new().await, Fake::new());
        let runner = fixture.start_with(&fake, options);
        let (_, caller) = emitter(&fixture).await;
        let legacy = fixture.create(http("twin", read_only())).await;
        let draft = fixture.create(shadow("twin", read_only())).await;
        let twin = Self { fixture, fake, runner, caller, legacy, draft };
        twin.validate("twin").await;
        twin
    }

    /// The runner has validated the draft when its author has called it.
    async fn validate(&self, name: &str) {
        let response = self.fixture.call(name, json!({})).await;
        assert_eq!(response.metadata["tool_schema_name"], schema_names::TOOL_CODE, "{response:?}");
    }

    async fn call(&self, name: &str, input: Value) -> ToolResponse {
        let request = ToolRequest::record(name, input, None, None);
        let request = self.caller.create(request, None).await.unwrap().id;
        self.fixture.answer(request).await
    }

    /// The report, once it counts so many calls.
    async fn report(&self, calls: u64) -> ShadowReport {
        report(&self.fixture, |report| report.same + report.different + report.failed + report.skipped == calls).await
    }

    /// The runs of shadows wait for the semaphore.
    fn shadows_wait(&self) -> Arc<Semaphore> {
        let gate = Arc::new(Semaphore::new(0));
        let shared = gate.clone();
        self.fake.does("twin", move |call, _| {
            let gate = shared.clone();
            async move {
                if call.definition.is_code() {
                    gate.acquire().await.unwrap().forget();
                }
                Ok(call.input)
            }
        });
        gate
    }
}

async fn report(fixture: &Fixture, is_it: impl Fn(&ShadowReport) -> bool) -> ShadowReport {
    let read = |context: &Map<String, Value>| ShadowReport::from_context(context).unwrap();
    let event = fixture
        .event(|event| event.schema_name.as_deref() == Some(schema_names::TOOL_SHADOW) && is_it(&read(&event.context)));
    read(&event.await.context)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_old_tool_answers_and_the_results_are_compared() {
    let twin = Twin::start(options()).await;
    twin.fake.does("twin", |call, _| async move {
        match (call.definition.is_code(), call.input["n"].as_i64()) {
            (true, Some(2)) => Ok(json!({"n": 0, "list": [1]})),
            (true, Some(3)) => Err(ToolFailure::new(ErrorCode::ExecutionFailed, "not here")),
            (_, Some(4)) => Err(ToolFailure::new(ErrorCode::ExecutionFailed, "both fail")),
            (is_code, n) => Ok(json!({"n": n, "list": if is_code { json!([1.0]) } else { json!([1]) }})),
        }
    });
    for n in 1..=4 {
        let response = twin.call("twin", json!({"n": n})).await;
        assert_eq!(response.metadata["tool_id"], json!(twin.legacy), "{response:?}");
        match n {
            4 => assert_eq!(response.error_code, Some(ErrorCode::ExecutionFailed)),
            _ => assert_eq!(response.output, Some(json!({"n": n, "list": [1]}))),
        }
    }
    let report = twin.report(4).await;
    assert_eq!((report.same, report.different, report.failed, report.skipped), (2, 1, 1, 0), "{report:?}");
    assert_eq!((report.tool_id, report.legacy_id), (twin.draft, twin.legacy));
    let mut found: Vec<(&str, &str)> = report
        .differences
        .iter()
        .map(|one| (one["path"].as_str().unwrap(), one["message"].as_str().unwrap()))
        .collect();
    found.sort_unstable();
    assert!(found[0].1.contains("not here"), "{found:?}");
    assert_eq!(found[1], ("$.n", "is a different number"));
    assert!(!report.is_ready());
    // Parts of outputs are not for every agent of the tenant.
    let query = rcrt_breadcrumb::BreadcrumbQuery::of_schema(schema_names::TOOL_SHADOW);
    assert!(twin.caller.list(&query).await.unwrap().is_empty());
    twin.runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_does_not_wait_for_the_shadow() {
    let twin = Twin::start(options()).await;
    let gate = twin.shadows_wait();
    let response = twin.call("twin", json!({"n": 1})).await;
    assert_eq!(response.output, Some(json!({"n": 1})));
    twin.fake.until(|runs| runs.running.get("twin") == Some(&1)).await;
    assert!(twin.fixture.list(schema_names::TOOL_SHADOW).await.is_empty());
    gate.add_permits(1);
    assert_eq!(twin.report(1).await.same, 1);
    // A runner that stops does not wait either, and writes what it counted.
    twin.call("twin", json!({"n": 2})).await;
    twin.fake.until(|runs| runs.running.get("twin") == Some(&1)).await;
    twin.runner.stop().await;
    let records = twin.fixture.list(schema_names::TOOL_SHADOW).await;
    let report = ShadowReport::from_context(records[0].context.as_ref().unwrap()).unwrap();
    assert_eq!((records.len(), report.same, report.skipped), (1, 1, 1), "{report:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shadow_leaves_the_last_slot_free() {
    let twin = Twin::start(RunnerOptions { max_calls: 2, max_calls_per_tool: 2, ..options() }).await;
    let gate = twin.shadows_wait();
    twin.call("twin", json!({"n": 1})).await;
    twin.fake.until(|runs| runs.running.get("twin") == Some(&1)).await;
    // One of two slots is taken by a shadow.
    twin.call("twin", json!({"n": 2})).await;
    assert_eq!(twin.report(1).await.skipped, 1);
    gate.add_permits(1);
    let report = twin.report(2).await;
    assert_eq!((report.same, report.skipped), (1, 1), "{report:?}");
    twin.runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_right_or_the_hint_there_is_no_shadow() {
    let twin = Twin::start(options()).await;
    let (_, stranger) = emitter(&twin.fixture).await;
    twin.fixture.create(http("unsafe", json!({}))).await;
    twin.fixture.create(shadow("unsafe", read_only())).await;
    twin.fixture.create(http("changing", read_only())).await;
    twin.fixture.create(shadow("changing", json!({}))).await;
    twin.fixture.create(http("taken", read_only())).await;
    stranger.create(shadow("taken", read_only()), None).await.unwrap();
    for name in ["unsafe", "changing"] {
        twin.validate(name).await;
    }
    let request = stranger.create(ToolRequest::record("taken", json!({}), None, None), None).await.unwrap().id;
    assert_eq!(twin.fixture.answer(request).await.metadata["tool_schema_name"], schema_names::TOOL_CODE);
    let before = twin.fake.progress.borrow().begun;
    for name in ["unsafe", "changing", "taken", "twin"] {
        let response = twin.call(name, json!({})).await;
        assert_eq!(response.metadata["tool_schema_name"], schema_names::TOOL_V1, "{name}: {response:?}");
    }
    // The default behaviour returns the version too, which is the same.
    assert_eq!(twin.report(1).await.same, 1);
    assert_eq!(twin.fake.progress.borrow().begun, before + 5, "four calls and one shadow");
    assert_eq!(twin.fixture.list(schema_names::TOOL_SHADOW).await.len(), 1);
    twin.runner.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_published_shadow_takes_the_name() {
    let twin = Twin::start(options()).await;
    twin.call("twin", json!({})).await;
    assert_eq!(twin.report(1).await.same, 1);
    let tags = vec!["tool".to_owned(), "tool:twin".to_owned()];
    let changes = BreadcrumbChanges { tags: Some(tags), ..BreadcrumbChanges::default() };
    twin.fixture.person.update(twin.draft, 1, changes).await.unwrap();
    let response = twin.call("twin", json!({})).await;
    assert_eq!(response.metadata["tool_id"], json!(twin.draft), "{response:?}");
    twin.runner.stop().await;
}

/// It has parts of the outputs of calls, but of private ones only the counts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_author_reads_the_report_until_it_expires() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    fake.does(
        "twin",
        |call, _| async move { Ok(if call.definition.is_code() { json!({"n": 0}) } else { call.input }) },
    );
    let runner = fixture.start(&fake);
    let ((author_id, author), (_, caller)) = (emitter(&fixture).await, emitter(&fixture).await);
    author.create(http("twin", read_only()), None).await.unwrap();
    let draft = author.create(shadow("twin", read_only()), None).await.unwrap().id;
    let call = async |by: &Arc<dyn Breadcrumbs>, visibility| {
        let request = ToolRequest::record("twin", json!({"n": 1}), None, None);
        let request = by.create(NewBreadcrumb { visibility, ..request }, None).await.unwrap().id;
        fixture.answer(request).await
    };
    let of_schema = rcrt_breadcrumb::BreadcrumbQuery::of_schema(schema_names::TOOL_SHADOW);
    let record = async || {
        let found = author.list(&of_schema).await.unwrap();
        assert_eq!(found.len(), 1);
        author.get(found[0].id).await.unwrap()
    };
    // Validates the draft.
    assert_eq!(call(&author, Visibility::Team).await.metadata["tool_schema_name"], schema_names::TOOL_CODE);
    call(&caller, Visibility::Private).await;
    let first = report(&fixture, |report| report.different == 1).await;
    assert_eq!((first.author, first.differences.len()), (Some(author_id), 0), "{first:?}");
    let written = record().await;
    let lives = written.ttl.unwrap() - written.updated_at;
    let expected = TimeDelta::seconds(ShadowReport::TTL_SECONDS.cast_signed());
    assert!((lives - expected).abs() < TimeDelta::minutes(2), "{lives}");

    call(&caller, Visibility::Team).await;
    let second = report(&fixture, |report| report.different == 2).await;
    assert_eq!(second.differences[0]["code"], json!(0), "{second:?}");
    let renewed = record().await;
    assert!(renewed.id == written.id && renewed.ttl > written.ttl, "each change renews it");
    assert_eq!(ShadowReport::from_context(&renewed.context), Some(second));
    assert!(caller.list(&of_schema).await.unwrap().is_empty());
    let forged = BreadcrumbChanges { title: Some("mine".into()), ..BreadcrumbChanges::default() };
    let refused = author.update(renewed.id, renewed.version, forged).await;
    assert!(matches!(refused, Err(StoreError::Forbidden(_))), "{refused:?}");
    assert!(matches!(author.delete(renewed.id, None).await, Err(StoreError::Forbidden(_))));

    // A curator takes the draft over: its definition, and the report on it.
    let mut context = shadow("twin", read_only()).context;
    context.insert("description".into(), json!("Now of a curator."));
    let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
    let curator = fixture.person.update(draft, 1, changes).await.unwrap().updated_by;
    assert_eq!(call(&fixture.person, Visibility::Team).await.metadata["tool_schema_name"], schema_names::TOOL_CODE);
    call(&caller, Visibility::Team).await;
    let third = report(&fixture, |report| report.author == curator).await;
    assert_eq!(third.different, 1, "{third:?}");
    assert!(author.list(&of_schema).await.unwrap().is_empty());
    runner.stop().await;
}
