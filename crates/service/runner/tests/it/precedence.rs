//! A `tool.code.v1` takes precedence over the `tool.v1` of its name, and the `tool.v1` serves while
//! the code cannot.

use std::collections::BTreeMap;
use std::sync::Arc;

use futures::StreamExt;
use rcrt_breadcrumb::{BreadcrumbChanges, NewBreadcrumb, NewSecret, ResponseStatus, ToolResponse, schema_names};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, PATIENCE, code, code_context, native};
use crate::rights::emitter;

/// The record and version that responded.
type Ran = (Uuid, &'static str, i64);

fn ran(response: &ToolResponse) -> Ran {
    let metadata = &response.metadata;
    let schema = match metadata["tool_schema_name"].as_str().unwrap() {
        schema_names::TOOL_CODE => schema_names::TOOL_CODE,
        schema_names::TOOL_V1 => schema_names::TOOL_V1,
        other => panic!("{other}"),
    };
    (metadata["tool_id"].as_str().unwrap().parse().unwrap(), schema, metadata["tool_version"].as_i64().unwrap())
}

/// Callers that call without a pause, and the versions that responded.
struct Load {
    answers: watch::Sender<Vec<ToolResponse>>,
    stop: CancellationToken,
    callers: JoinSet<()>,
}

impl Load {
    fn on(fixture: &Arc<Fixture>, tool: &'static str) -> Self {
        let (answers, stop, mut callers) = (watch::Sender::new(Vec::new()), CancellationToken::new(), JoinSet::new());
        for _ in 0..4 {
            let (fixture, answers, stop) = (fixture.clone(), answers.clone(), stop.clone());
            callers.spawn(async move {
                while !stop.is_cancelled() {
                    let mut events = fixture.person.events(None).await.unwrap();
                    let request = fixture.ask(tool, json!({})).await;
                    let tag = ToolResponse::tag(&request.to_string());
                    loop {
                        let event = events.next().await.unwrap().unwrap();
                        let is_answer = event.schema_name.as_deref() == Some(schema_names::TOOL_RESPONSE);
                        if is_answer && event.tags.contains(&tag) {
                            let answer = ToolResponse::from_context(&event.context).unwrap();
                            answers.send_modify(|all| all.push(answer));
                            break;
                        }
                    }
                }
            });
        }
        Self { answers, stop, callers }
    }

    /// Waits for ten more responses, the last four of them from this version.
    async fn until(&self, wanted: Ran) {
        let mut answers = self.answers.subscribe();
        let seen = answers.borrow_and_update().len();
        let holds = |all: &Vec<ToolResponse>| {
            all.len() >= seen + 10
                && all[all.len() - 4..].iter().all(|answer| is_success(answer) && ran(answer) == wanted)
        };
        let waited = tokio::time::timeout(PATIENCE, answers.wait_for(holds)).await;
        assert!(waited.is_ok(), "{wanted:?} did not respond; the last: {:?}", self.answers.borrow().last());
    }

    /// Stops, and returns how often each version responded. Asserts that every call succeeded.
    async fn end(mut self) -> BTreeMap<Ran, usize> {
        self.stop.cancel();
        while let Some(ended) = self.callers.join_next().await {
            ended.unwrap();
        }
        let mut counts = BTreeMap::new();
        for answer in self.answers.borrow().iter() {
            assert!(is_success(answer), "{answer:?}");
            *counts.entry(ran(answer)).or_default() += 1;
        }
        counts
    }
}

fn is_success(answer: &ToolResponse) -> bool {
    answer.status == ResponseStatus::Success
}

fn broken() -> Value {
    code_context("echo", json!({"code": {"language": "typescript", "source": "broken("}}))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_is_migrated_to_code_under_load_and_back_without_a_failed_call() {
    let (fixture, fake) = (Arc::new(Fixture::new().await), Fake::new());
    let native = fixture.create(native("echo", json!({}))).await;
    let by_native = (native, schema_names::TOOL_V1, 1);
    let runner = fixture.start(&fake);
    let load = Load::on(&fixture, "echo");
    load.until(by_native).await;

    // Never valid: the tool.v1 continues to serve.
    let never_good = NewBreadcrumb { context: broken().as_object().unwrap().clone(), ..code("echo", json!({})) };
    let first = fixture.create(never_good).await;
    fixture.tool_error(first, |error| error["running_version"].is_null()).await;
    load.until(by_native).await;
    // Fixed, then broken again: the last valid version stays, as with any tool.
    fixture.change(first, 1, code_context("echo", json!({}))).await;
    load.until((first, schema_names::TOOL_CODE, 2)).await;
    fixture.change(first, 2, broken()).await;
    fixture.tool_error(first, |error| error["running_version"] == 2).await;
    load.until((first, schema_names::TOOL_CODE, 2)).await;
    fixture.change(first, 3, code_context("echo", json!({"description": "better"}))).await;
    load.until((first, schema_names::TOOL_CODE, 4)).await;
    // With another name it is another tool.
    fixture.change(first, 4, code_context("other", json!({}))).await;
    load.until(by_native).await;
    fixture.change(first, 5, code_context("echo", json!({}))).await;
    load.until((first, schema_names::TOOL_CODE, 6)).await;
    fixture.person.delete(first, None).await.unwrap();
    load.until(by_native).await;

    // Valid from the first version on.
    let second = fixture.create(code("echo", json!({}))).await;
    load.until((second, schema_names::TOOL_CODE, 1)).await;
    let counts = load.end().await;
    assert_eq!(
        counts.into_keys().map(|(_, schema, version)| (schema, version)).collect::<std::collections::BTreeSet<_>>(),
        [("tool.code.v1", 1), ("tool.code.v1", 2), ("tool.code.v1", 4), ("tool.code.v1", 6), ("tool.v1", 1)].into()
    );
    // The replaced tool gets no report about its name.
    let reports = fixture.list(schema_names::TOOL_ERROR).await;
    assert!(reports.iter().all(|row| row.context.as_ref().unwrap()["tool_id"] != native.to_string()), "{reports:?}");
    runner.stop().await;
}

/// Grants belong to a record, so code that needs a secret always waits at first.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_replaced_tool_serves_while_its_code_waits_for_a_secret() {
    let (fixture, fake) = (Arc::new(Fixture::new().await), Fake::new());
    let native = fixture.create(native("echo", json!({}))).await;
    let by_native = (native, schema_names::TOOL_V1, 1);
    let runner = fixture.start_with(
        &fake,
        rcrt_runner::RunnerOptions { readiness: std::time::Duration::from_millis(50), ..crate::fixture::options() },
    );
    let load = Load::on(&fixture, "echo");
    load.until(by_native).await;
    let with_secret = fixture.create(code("echo", json!({"required_secrets": ["API_KEY"]}))).await;
    let secret = NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("API_KEY", "hunter2hunter2") };
    let secret = fixture.person.create_secret(secret).await.unwrap().id;
    load.until(by_native).await;
    fixture.person.grant_secret(secret, with_secret).await.unwrap();
    load.until((with_secret, schema_names::TOOL_CODE, 1)).await;
    fixture.person.revoke_secret(secret, with_secret).await.unwrap();
    load.until(by_native).await;
    fixture.person.grant_secret(secret, with_secret).await.unwrap();
    load.until((with_secret, schema_names::TOOL_CODE, 1)).await;
    // Its grants are deleted with the record, before the event arrives.
    fixture.person.delete(with_secret, None).await.unwrap();
    load.until(by_native).await;
    load.end().await;
    runner.stop().await;
}

/// Callers trust the owner of the name, so only the owner or a curator can replace the tool.
#[tokio::test]
async fn an_emitter_cannot_take_a_name_by_writing_code() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let shipped = fixture.create(native("echo", json!({}))).await;
    let runner = fixture.start(&fake);
    let (_, stranger) = emitter(&fixture).await;
    let mut forged = code("echo", json!({}));
    forged.tags.push("author:curator".into());
    let forged = stranger.create(forged, None).await.unwrap().id;
    let error = fixture.tool_error(forged, |_| true).await;
    assert_eq!(
        error["errors"][0]["message"],
        format!(
            "the name \"echo\" is taken by a tool with the source native (record {shipped}); choose another, or have \
             this record written by a curator (`rcrt bootstrap` does so with a curator's token) or by the agent that \
             created that record"
        )
    );
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (shipped, schema_names::TOOL_V1, 1));

    // A curator's version takes the name; an emitter's later version loses it again.
    let there = fixture.person.get(forged).await.unwrap();
    fixture.change(forged, there.version, code_context("echo", json!({"description": "a curator's"}))).await;
    while ran(&fixture.call("echo", json!({})).await) != (forged, schema_names::TOOL_CODE, 2) {}
    let there = fixture.person.get(forged).await.unwrap();
    assert!(there.tags.contains(&"author:curator".to_owned()), "{:?}", there.tags);
    let Value::Object(context) = code_context("echo", json!({"description": "an emitter's"})) else { unreachable!() };
    let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
    let changed = stranger.update(forged, 2, changes).await.unwrap();
    assert!(!changed.tags.contains(&"author:curator".to_owned()), "{:?}", changed.tags);
    while ran(&fixture.call("echo", json!({})).await) != (shipped, schema_names::TOOL_V1, 1) {}
    runner.stop().await;

    // A runner that starts now decides the same.
    let runner = fixture.start(&fake);
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (shipped, schema_names::TOOL_V1, 1));
    runner.stop().await;
}

/// A granted secret of the older tool makes no difference: only its creator and curators can take
/// its name.
#[tokio::test]
async fn only_its_author_or_a_curator_can_take_a_granted_tools_name() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let (_, author) = emitter(&fixture).await;
    let (_, stranger) = emitter(&fixture).await;
    let theirs = author.create(native("echo", json!({"required_secrets": ["API_KEY"]})), None).await.unwrap().id;
    let secret = NewSecret { hosts: vec!["api.example.com".into()], ..NewSecret::new("API_KEY", "hunter2hunter2") };
    let secret = fixture.person.create_secret(secret).await.unwrap().id;
    fixture.person.grant_secret(secret, theirs).await.unwrap();
    let runner = fixture.start(&fake);
    let hijack = stranger.create(code("echo", json!({})), None).await.unwrap().id;
    fixture.tool_error(hijack, |_| true).await;
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (theirs, schema_names::TOOL_V1, 1));
    let own = author.create(code("echo", json!({})), None).await.unwrap().id;
    while ran(&fixture.call("echo", json!({})).await) != (own, schema_names::TOOL_CODE, 1) {}
    // Between two code records the older keeps the name.
    let later = fixture.create(code("echo", json!({}))).await;
    let error = fixture.tool_error(later, |_| true).await;
    assert!(error["errors"][0]["message"].as_str().unwrap().contains(&own.to_string()), "{error}");
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (own, schema_names::TOOL_CODE, 1));
    runner.stop().await;
    let runner = fixture.start(&fake);
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (own, schema_names::TOOL_CODE, 1));
    runner.stop().await;
}

/// A record gets no name because the owner cannot run at the moment.
#[tokio::test]
async fn a_newer_native_tool_does_not_serve_while_code_waits() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let with_secret = fixture.create(code("echo", json!({"required_secrets": ["API_KEY"]}))).await;
    let runner = fixture.start(&fake);
    let younger = fixture.create(native("echo", json!({}))).await;
    fixture.tool_error(younger, |_| true).await;
    let response = fixture.call("echo", json!({})).await;
    assert_eq!((response.status, ran(&response).0), (ResponseStatus::Error, with_secret));
    runner.stop().await;
}

/// A new schema, and a new context with it.
fn becomes(schema: &str, context: Option<Value>) -> BreadcrumbChanges {
    BreadcrumbChanges {
        schema_name: Some(schema.into()),
        context: context.map(|context| context.as_object().unwrap().clone()),
        ..BreadcrumbChanges::default()
    }
}

/// The store checks `author:curator` on `tool.code.v1` only, so on a version of another schema the
/// tag proves nothing.
async fn a_version_of_another_schema_takes_no_name(is_runner_there: bool) {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let (_, stranger) = emitter(&fixture).await;
    let duplicate = NewBreadcrumb { schema_name: Some("note.v1".into()), ..native("echo", json!({})) };
    let duplicate = stranger.create(duplicate, None).await.unwrap().id;
    let shipped = fixture.create(native("echo", json!({}))).await;
    let early = is_runner_there.then(|| fixture.start(&fake));
    let mut forged = Vec::new();
    for mut record in
        [NewBreadcrumb { schema_name: Some("note.v1".into()), ..code("echo", json!({})) }, native("echo", json!({}))]
    {
        record.tags.push("author:curator".into());
        let is_tool = record.schema_name.as_deref() == Some(schema_names::TOOL_V1);
        let id = stranger.create(record, None).await.unwrap().id;
        if is_tool && is_runner_there {
            fixture.tool_error(id, |error| error["version"] == 1).await;
        }
        forged.push(id);
    }
    for id in &forged {
        stranger.update(*id, 1, becomes(schema_names::TOOL_CODE, Some(broken()))).await.unwrap();
    }
    stranger.update(duplicate, 1, becomes(schema_names::TOOL_V1, None)).await.unwrap();

    let runner = early.unwrap_or_else(|| fixture.start(&fake));
    for id in forged {
        let error = fixture.tool_error(id, |error| error["version"] == 2).await;
        assert!(error["running_version"].is_null(), "{error}");
    }
    fixture.tool_error(duplicate, |_| true).await;
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (shipped, schema_names::TOOL_V1, 1));
    runner.stop().await;
}

#[tokio::test]
async fn a_version_of_another_schema_takes_no_name_in_a_running_runner() {
    a_version_of_another_schema_takes_no_name(true).await;
}

#[tokio::test]
async fn a_version_of_another_schema_takes_no_name_in_a_runner_that_starts_later() {
    a_version_of_another_schema_takes_no_name(false).await;
}

/// A running runner falls back to the same version as a runner that starts now.
#[tokio::test]
async fn broken_code_falls_back_to_code_and_not_to_a_tool_v1_between() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(code("echo", json!({}))).await;
    let runner = fixture.start(&fake);
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (id, schema_names::TOOL_CODE, 1));
    let as_native = Value::Object(native("echo", json!({})).context);
    fixture.person.update(id, 1, becomes(schema_names::TOOL_V1, Some(as_native))).await.unwrap();
    while ran(&fixture.call("echo", json!({})).await) != (id, schema_names::TOOL_V1, 2) {}
    fixture.person.update(id, 2, becomes(schema_names::TOOL_CODE, Some(broken()))).await.unwrap();
    let error = fixture.tool_error(id, |error| error["version"] == 3).await;
    assert_eq!(error["running_version"], 1);
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (id, schema_names::TOOL_CODE, 1));
    runner.stop().await;
    let runner = fixture.start(&fake);
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (id, schema_names::TOOL_CODE, 1));
    runner.stop().await;
}

/// Among records of one schema the oldest keeps the name. The time as a `tool.v1` does not count
/// among code records.
#[tokio::test]
async fn a_replaced_tool_does_not_regain_its_name_by_becoming_code() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let (_, author) = emitter(&fixture).await;
    let theirs = author.create(native("echo", json!({})), None).await.unwrap().id;
    let runner = fixture.start(&fake);
    assert_eq!(ran(&fixture.call("echo", json!({})).await), (theirs, schema_names::TOOL_V1, 1));
    let curators = fixture.create(code("echo", json!({}))).await;
    let by_curators = (curators, schema_names::TOOL_CODE, 1);
    while ran(&fixture.call("echo", json!({})).await) != by_curators {}
    let good = code_context("echo", json!({}));
    author.update(theirs, 1, becomes(schema_names::TOOL_CODE, Some(good))).await.unwrap();
    let error = fixture.tool_error(theirs, |_| true).await;
    assert!(error["errors"][0]["message"].as_str().unwrap().contains(&curators.to_string()), "{error}");
    assert_eq!(ran(&fixture.call("echo", json!({})).await), by_curators);
    runner.stop().await;
    let runner = fixture.start(&fake);
    assert_eq!(ran(&fixture.call("echo", json!({})).await), by_curators);
    runner.stop().await;
}

/// A record that could not take a name does not get it when the owner changes its schema.
#[tokio::test]
async fn an_owner_that_changes_its_schema_keeps_its_name() {
    for (first, second) in
        [(native("echo", json!({})), code("echo", json!({}))), (code("echo", json!({})), native("echo", json!({})))]
    {
        let (fixture, fake) = (Fixture::new().await, Fake::new());
        let (_, author) = emitter(&fixture).await;
        let (_, stranger) = emitter(&fixture).await;
        let schema = second.schema_name.clone().unwrap();
        let theirs = author.create(first, None).await.unwrap().id;
        let runner = fixture.start(&fake);
        assert_eq!(ran(&fixture.call("echo", json!({})).await).0, theirs);
        let duplicate = stranger.create(second.clone(), None).await.unwrap().id;
        fixture.tool_error(duplicate, |_| true).await;
        author.update(theirs, 1, becomes(&schema, Some(Value::Object(second.context)))).await.unwrap();
        loop {
            let (id, _, version) = ran(&fixture.call("echo", json!({})).await);
            assert_eq!(id, theirs, "{schema}");
            if version == 2 {
                break;
            }
        }
        runner.stop().await;
        let runner = fixture.start(&fake);
        assert_eq!(ran(&fixture.call("echo", json!({})).await).0, theirs, "{schema}");
        runner.stop().await;
    }
}
