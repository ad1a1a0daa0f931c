use rcrt_breadcrumb::{ErrorCode, Identity, NewAgent, Profile, ResponseStatus, Role, Tenancy, schema_names};
use rcrt_egress::PrivateHost;
use rcrt_runner::RunnerOptions;
use rcrt_test_tenant::FailingStore;
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, PATIENCE, Running, code, code_context, native, options};

fn bad_source() -> serde_json::Value {
    json!({"code": {"language": "typescript", "source": "export async function execute() {\n  return eval('1');\n}"}})
}

#[tokio::test]
async fn a_request_right_after_its_tool_finds_it() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    for n in 0..10 {
        let name = format!("tool{n}");
        fixture.create(code(&name, json!({}))).await;
        assert_eq!(fixture.call(&name, json!({})).await.status, ResponseStatus::Success, "{name}");
    }
    runner.stop().await;
}

#[tokio::test]
async fn changes_and_deletions_of_a_tool_take_effect() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(code("echo", json!({}))).await;
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("echo", json!({})).await.output.unwrap()["version"], 1);
    fixture.change(id, 1, code_context("echo", json!({"description": "second"}))).await;
    let mut seen = 1;
    while seen != 2 {
        seen = fixture.call("echo", json!({})).await.output.unwrap()["version"].as_i64().unwrap();
    }
    fixture.change(id, 2, code_context("renamed", json!({}))).await;
    while fixture.call("renamed", json!({})).await.status != ResponseStatus::Success {}
    assert_eq!(fixture.call("echo", json!({})).await.error_code, Some(ErrorCode::ToolNotFound));
    fixture.person.delete(id, None).await.unwrap();
    while fixture.call("renamed", json!({})).await.error_code != Some(ErrorCode::ToolNotFound) {}
    runner.stop().await;
}

#[tokio::test]
async fn a_broken_version_is_reported_and_never_replaces_a_working_one() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(code("echo", json!({}))).await;
    let runner = fixture.start(&fake);
    fixture.call("echo", json!({})).await;
    fixture.change(id, 1, code_context("echo", bad_source())).await;
    let error = fixture.tool_error(id, |_| true).await;
    assert_eq!((&error["tool"], &error["version"], &error["running_version"]), (&json!("echo"), &json!(2), &json!(1)));
    assert_eq!(error["errors"][0]["line"], 2);
    assert!(error["errors"][0]["message"].is_string());
    let listed = fixture.list(schema_names::TOOL_ERROR).await;
    assert_eq!(listed.len(), 1);
    assert_eq!(listed[0].tags, ["tool:error", "tool:echo", "workspace:tools"]);
    assert_eq!(fixture.call("echo", json!({})).await.output.unwrap()["version"], 1);

    // A second broken version changes the report; a working one removes it.
    fixture.change(id, 2, code_context("echo", json!({"description": 3}))).await;
    fixture.tool_error(id, |error| error["version"] == 3).await;
    assert_eq!(fixture.list(schema_names::TOOL_ERROR).await.len(), 1);
    fixture.change(id, 3, code_context("echo", json!({}))).await;
    let report = listed[0].id;
    fixture.event(|event| event.breadcrumb_id == report && event.kind == rcrt_breadcrumb::EventKind::Deleted).await;
    assert_eq!(fixture.call("echo", json!({})).await.output.unwrap()["version"], 4);
    runner.stop().await;
}

#[tokio::test]
async fn a_runner_that_starts_later_offers_the_same_version() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(code("echo", json!({}))).await;
    fixture.change(id, 1, code_context("echo", json!({"description": "second"}))).await;
    fixture.change(id, 2, code_context("echo", bad_source())).await;
    fixture.change(id, 3, code_context("echo", json!({"limits": {"timeout_ms": 0}}))).await;
    let runner = fixture.start(&fake);
    assert_eq!(fixture.call("echo", json!({})).await.output.unwrap()["version"], 2);
    assert_eq!(fixture.tool_error(id, |_| true).await["running_version"], 2);
    runner.stop().await;
}

#[tokio::test]
async fn a_tool_that_never_worked_is_distinguished_from_an_unknown_one() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let code_id = fixture.create(code("broken", bad_source())).await;
    let native_id = fixture.create(native("odd", json!({"implementation": {"type": "quantum"}}))).await;
    let runner = fixture.start(&fake);
    let response = fixture.call("broken", json!({})).await;
    assert_eq!(response.error_code, Some(ErrorCode::ExecutionFailed));
    assert!(response.error_details.unwrap()["errors"][0]["line"] == 2);
    let response = fixture.call("odd", json!({})).await;
    assert!(response.error.unwrap().contains("no executor for implementation.type \"quantum\""));
    for id in [code_id, native_id] {
        assert!(fixture.tool_error(id, |_| true).await["running_version"].is_null());
    }
    // The report is deleted with the tool.
    let reports = fixture.list(schema_names::TOOL_ERROR).await;
    fixture.person.delete(native_id, None).await.unwrap();
    let of_native = reports.iter().find(|row| row.context.as_ref().unwrap()["tool_id"] == json!(native_id)).unwrap().id;
    fixture.event(|event| event.breadcrumb_id == of_native && event.kind == rcrt_breadcrumb::EventKind::Deleted).await;
    runner.stop().await;
}

/// The runner starts with the existing reports, and does not know a tool that was written
/// meanwhile.
#[tokio::test]
async fn a_runner_keeps_a_report_on_a_tool_it_has_not_read() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runner = fixture.start(&fake);
    let behind = FailingStore::new(fixture.runner.clone());
    let reports = behind.tool_error_lists.close().await;
    let late = Running::start(behind.clone(), &Fake::new(), options());
    // It has read all tools, and next it checks the reports.
    behind.tool_error_lists.reached().await;
    let gets = behind.gets.close().await;
    let id = fixture.create(code("broken", bad_source())).await;
    fixture.tool_error(id, |_| true).await;
    let report = fixture.list(schema_names::TOOL_ERROR).await[0].id;
    drop(reports);
    let mut given = behind.tool_errors_listed.subscribe();
    tokio::time::timeout(PATIENCE, given.wait_for(|given| *given >= 2)).await.unwrap().unwrap();
    drop(gets);
    tokio::time::timeout(PATIENCE, given.wait_for(|given| *given >= 3)).await.unwrap().unwrap();
    late.stop().await;
    runner.stop().await;
    let left = fixture.list(schema_names::TOOL_ERROR).await;
    assert_eq!(left.iter().map(|row| row.id).collect::<Vec<_>>(), [report]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn several_runners_write_one_report() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let runners = [fixture.start(&fake), fixture.start(&fake), fixture.start(&fake)];
    for runner in ["one", "two"] {
        // Both tools exist before the reports: a runner that handled the second tool has read the
        // first.
        let id = fixture.create(code(runner, bad_source())).await;
        fixture.tool_error(id, |_| true).await;
    }
    for runner in runners {
        runner.stop().await;
    }
    assert_eq!(fixture.list(schema_names::TOOL_ERROR).await.len(), 2);
}

#[tokio::test]
async fn a_private_host_waits_until_the_operator_allows_it() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let net = |hosts: &[&str]| json!({"permissions": {"net": hosts}});
    let allowed =
        ["127.0.0.1:8080", "db.internal", "friend=one.internal"].map(|host| host.parse::<PrivateHost>().unwrap());
    let runner = fixture.start_with(&fake, RunnerOptions { allowed_private: allowed.into(), ..options() });
    fixture
        .create(code("allowed", net(&["127.0.0.1:8080", "db.internal", "db.internal:5432", "api.example.com"])))
        .await;
    assert_eq!(fixture.call("allowed", json!({})).await.status, ResponseStatus::Success);
    fixture.create(code("friend", net(&["db.internal", "one.internal"]))).await;
    assert_eq!(fixture.call("friend", json!({})).await.status, ResponseStatus::Success);
    for (name, host) in
        [("stranger", "one.internal"), ("no-port", "127.0.0.1"), ("port", "127.0.0.1:81"), ("host", "x.db.internal")]
    {
        // The fixture's agent is a curator.
        fixture.create(code(name, net(&["db.internal", host]))).await;
        let response = fixture.call(name, json!({})).await;
        assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied), "{name}");
        let message = response.error.unwrap();
        assert!(message.contains(&format!("--allow-private-host {name}={host}")), "{message}");
    }
    // No operator can allow a pattern of private hosts.
    fixture.create(code("all", net(&["*.internal"]))).await;
    let response = fixture.call("all", json!({})).await;
    assert_eq!(response.error_code, Some(ErrorCode::ExecutionFailed));
    assert!(response.error.as_ref().unwrap().contains("*.internal"), "{response:?}");
    // Another agent's tool does not wait: it is not valid.
    let author = NewAgent { name: "author".into(), roles: vec![Role::Emitter], profile: Profile::Main, tools: None };
    let author = fixture.store.create_agent(fixture.owner, None, author).await.unwrap().agent;
    let identity =
        Identity { owner_id: fixture.owner, agent_id: author.id, roles: author.roles, profile: Profile::Main };
    let theirs = fixture.dispatch.acting_as(identity).create(code("theirs", net(&["one.internal"])), None).await;
    let error = fixture.tool_error(theirs.unwrap().id, |_| true).await;
    assert_eq!(error["errors"][0]["field"], "permissions.net[0]", "{error}");
    // A host that cannot be read is an error of the record.
    let tool = fixture.create(code("malformed", net(&["db.internal", "https://one.internal"]))).await;
    let error = fixture.tool_error(tool, |_| true).await;
    assert_eq!(error["errors"][0]["field"], "permissions.net[1]", "{error}");
    runner.stop().await;
}
