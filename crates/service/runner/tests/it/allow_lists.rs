//! The runner refuses tools that are not on the allow list of the agent that asked.

use std::sync::Arc;

use rcrt_breadcrumb::{
    AgentRegistration, AllowedTools, Breadcrumbs, ErrorCode, Identity, LARGE_RESULT_READERS, NewAgent, NewBreadcrumb,
    Profile, ResponseStatus, Role, Tenancy, ToolRequest, ToolResponse,
};
use serde_json::json;
use uuid::Uuid;

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, code, native, options};

fn list(names: &[&str], sources: &[&str], tags: &[&str]) -> AllowedTools {
    let texts = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    AllowedTools { names: texts(names), sources: texts(sources), tags: texts(tags) }
}

/// A caller with this list: its id, and the tenant as it sees it, through the dispatcher.
async fn caller(fixture: &Fixture, tools: Option<AllowedTools>) -> (Uuid, Arc<dyn Breadcrumbs>) {
    let agent = NewAgent { name: Uuid::new_v4().to_string(), roles: vec![Role::Caller], profile: Profile::Main, tools };
    let agent = fixture.store.create_agent(fixture.owner, None, agent).await.unwrap().agent;
    let identity = Identity { owner_id: fixture.owner, agent_id: agent.id, roles: agent.roles, profile: Profile::Main };
    (agent.id, fixture.dispatch.acting_as(identity))
}

async fn called(fixture: &Fixture, store: &Arc<dyn Breadcrumbs>, tool: &str) -> (Uuid, ToolResponse) {
    let request = store.create(ToolRequest::record(tool, json!({}), None, None), None).await.unwrap().id;
    (request, fixture.answer(request).await)
}

fn tagged(tool: NewBreadcrumb, tag: &str) -> NewBreadcrumb {
    let mut tool = tool;
    tool.tags.push(tag.into());
    tool
}

async fn fixture() -> (Fixture, Arc<Fake>) {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for tool in [native("echo", json!({})), native("other", json!({})), tagged(code("coded", json!({})), "weather")] {
        fixture.create(tool).await;
    }
    (fixture, fake)
}

/// Through the queue only, and through local dispatch.
fn runners(fixture: &Fixture, fake: &Arc<Fake>, is_local: bool) -> Running {
    if is_local { fixture.start(fake) } else { Running::start(fixture.runner.clone(), fake, options()) }
}

#[tokio::test]
async fn a_call_outside_the_list_gets_permission_denied() {
    for is_local in [false, true] {
        let (fixture, fake) = fixture().await;
        let runner = runners(&fixture, &fake, is_local);
        fixture.catalog(|catalog| catalog.find("coded").is_some() && catalog.find("other").is_some()).await;
        for (allowed, open) in [
            (None, vec!["echo", "other", "coded"]),
            (Some(list(&["echo"], &[], &[])), vec!["echo"]),
            (Some(list(&[], &["sandbox"], &[])), vec!["coded"]),
            (Some(list(&[], &["native"], &[])), vec!["echo", "other"]),
            (Some(list(&[], &[], &["weather"])), vec!["coded"]),
            (Some(list(&["other"], &[], &["weather"])), vec!["other", "coded"]),
        ] {
            let (_, store) = caller(&fixture, allowed.clone()).await;
            for tool in ["echo", "other", "coded"] {
                let (request, response) = called(&fixture, &store, tool).await;
                if open.contains(&tool) {
                    assert_eq!(response.status, ResponseStatus::Success, "{allowed:?} {tool} {:?}", response.error);
                    continue;
                }
                assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied), "{allowed:?} {tool}");
                assert_eq!(response.is_retryable, Some(false));
                assert_eq!(response.error_details.unwrap(), json!({"tool": tool}));
                let error = response.error.unwrap();
                assert!(error.starts_with(&format!("the tool {tool} is not on the allow list")), "{error}");
                assert!(!fake.begun.lock().unwrap().contains(&request), "it never began");
            }
        }
        runner.stop().await;
    }
}

/// Without them a caller could not read the results of the tools on its list.
#[tokio::test]
async fn native_tools_that_read_large_results_are_on_every_list() {
    for is_local in [false, true] {
        let (fixture, fake) = fixture().await;
        for name in LARGE_RESULT_READERS {
            fixture.create(native(name, json!({}))).await;
        }
        let runner = runners(&fixture, &fake, is_local);
        fixture.catalog(|catalog| LARGE_RESULT_READERS.iter().all(|name| catalog.find(name).is_some())).await;
        let (_, store) = caller(&fixture, Some(list(&["echo"], &[], &[]))).await;
        for name in LARGE_RESULT_READERS {
            assert_eq!(called(&fixture, &store, name).await.1.status, ResponseStatus::Success, "{name}");
        }
        runner.stop().await;
    }
    // Another agent's code under such a name is not.
    let (fixture, fake) = fixture().await;
    fixture.create(code("result_slice", json!({}))).await;
    let runner = fixture.start(&fake);
    let (_, store) = caller(&fixture, Some(list(&["echo"], &[], &[]))).await;
    let (_, response) = called(&fixture, &store, "result_slice").await;
    assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied));
    runner.stop().await;
}

#[tokio::test]
async fn names_that_are_not_on_the_list_are_not_suggested() {
    let (fixture, fake) = fixture().await;
    let runner = fixture.start(&fake);
    let (_, store) = caller(&fixture, Some(list(&["echo"], &[], &[]))).await;
    for (asked, suggested) in [("ecko", json!(["echo"])), ("othr", json!([]))] {
        let (_, response) = called(&fixture, &store, asked).await;
        assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound));
        assert_eq!(response.error_details.unwrap(), json!({"nearest": suggested}));
    }
    runner.stop().await;
}

/// A tool cannot call for a caller what the caller cannot call itself.
#[tokio::test]
async fn a_list_applies_to_what_a_tool_calls_for_the_caller() {
    let (fixture, fake) = fixture().await;
    fake.does("echo", |call, _| async move {
        let asked = ToolRequest::record("other", json!({}), None, None);
        Ok(json!(call.breadcrumbs.create(asked, None).await.unwrap().id))
    });
    let runner = fixture.start(&fake);
    for (allowed, expected) in
        [(list(&["echo"], &[], &[]), Some(ErrorCode::PermissionDenied)), (list(&["echo", "other"], &[], &[]), None)]
    {
        let (_, store) = caller(&fixture, Some(allowed)).await;
        let (_, response) = called(&fixture, &store, "echo").await;
        let nested: Uuid = serde_json::from_value(response.output.unwrap()).unwrap();
        assert_eq!(fixture.answer(nested).await.error_code, expected);
    }
    runner.stop().await;
}

#[tokio::test]
async fn a_changed_list_applies_to_the_next_call() {
    let (fixture, fake) = fixture().await;
    let runner = fixture.start(&fake);
    let (id, store) = caller(&fixture, Some(list(&["echo"], &[], &[]))).await;
    assert_eq!(called(&fixture, &store, "echo").await.1.status, ResponseStatus::Success);
    let set = async |tools: Option<AllowedTools>| {
        let change = AgentRegistration { roles: vec![Role::Caller], name: None, profile: None, tools: tools.into() };
        fixture.store.put_agent(fixture.owner, None, id, change).await.unwrap();
    };
    set(Some(list(&["other"], &[], &[]))).await;
    assert_eq!(called(&fixture, &store, "echo").await.1.error_code, Some(ErrorCode::PermissionDenied));
    assert_eq!(called(&fixture, &store, "other").await.1.status, ResponseStatus::Success);
    set(None).await;
    assert_eq!(called(&fixture, &store, "echo").await.1.status, ResponseStatus::Success);
    runner.stop().await;
}
