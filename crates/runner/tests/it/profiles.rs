//! What a profile closes, the runner refuses.

use breadcrumb::{ErrorCode, NewBreadcrumb, Profile, ResponseStatus, ToolRequest};
use serde_json::json;

use crate::fake::Fake;
use crate::place::{Place, code, native};

async fn place() -> (Place, std::sync::Arc<Fake>) {
    let (place, fake) = (Place::new().await, Fake::new());
    for tool in ["cancel_scheduled_task", "spawn_subagent", "invoke_agent", "echo"] {
        place.create(native(tool, json!({}))).await;
    }
    (place, fake)
}

#[tokio::test]
async fn an_agents_profile_keeps_its_calls_from_what_it_closes() {
    let (place, fake) = place().await;
    let runner = place.start(&fake);
    let cases = [
        (Profile::Main, vec![]),
        (Profile::Subagent, vec!["cancel_scheduled_task", "spawn_subagent"]),
        (Profile::Scheduled, vec!["spawn_subagent"]),
        (Profile::A2aSynthesis, vec!["invoke_agent"]),
    ];
    for (profile, closed) in cases {
        let agent = place.agent_of(profile).await;
        for tool in ["cancel_scheduled_task", "spawn_subagent", "invoke_agent", "echo"] {
            let request = agent.create(ToolRequest::record(tool, json!({}), None, None), None).await.unwrap().id;
            let response = place.answer(request).await;
            if closed.contains(&tool) {
                assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied), "{profile} {tool}");
                assert_eq!(response.is_retryable, Some(false));
                assert_eq!(response.error.unwrap(), format!("the profile {profile} has no {tool}"));
                assert_eq!(response.error_details.unwrap(), json!({"profile": profile, "tool": tool}));
                assert!(!fake.begun.lock().unwrap().contains(&request), "it never began");
            } else {
                assert_eq!(response.status, ResponseStatus::Success, "{profile} {tool}");
            }
        }
    }
    runner.stop().await;
}

#[tokio::test]
async fn a_requests_own_tag_closes_too_and_names_of_closed_tools_are_not_proposed() {
    let (place, fake) = place().await;
    let runner = place.start(&fake);
    let ask = |tool: &str| {
        let mut request = ToolRequest::record(tool, json!({}), None, None);
        request.tags.push("profile:scheduled".into());
        request
    };
    let response = place.answer(place.create(ask("spawn_subagent")).await).await;
    assert_eq!(response.error.unwrap(), "the profile scheduled has no spawn_subagent");
    let response = place.answer(place.create(ask("spawn_subagnet")).await).await;
    assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound));
    assert_eq!(response.error_details.unwrap(), json!({"nearest": []}));
    let response = place.answer(place.create(ask("cancel_scheduled_tsk")).await).await;
    assert_eq!(response.error_details.unwrap(), json!({"nearest": ["cancel_scheduled_task"]}));
    runner.stop().await;
}

/// The call itself knows its profiles, and a tool that its record triggers is under them too.
#[tokio::test]
async fn profiles_go_on_with_the_call_and_with_what_it_triggers() {
    let (place, fake) = place().await;
    place.create(code("follower", json!({"subscriptions": [{"any_tags": ["news"]}]}))).await;
    fake.does("echo", |call, _| async move { Ok(json!(call.profiles.tags().collect::<Vec<_>>())) });
    fake.does("follower", |call, _| async move { Ok(json!(call.profiles.tags().collect::<Vec<_>>())) });
    let runner = place.start(&fake);
    let agent = place.agent_of(Profile::Subagent).await;
    let request = agent.create(ToolRequest::record("echo", json!({}), None, None), None).await.unwrap().id;
    assert_eq!(place.answer(request).await.output, Some(json!(["profile:subagent"])));
    let news = NewBreadcrumb {
        title: "news".into(),
        tags: vec!["news".into(), "profile:scheduled".into()],
        ..NewBreadcrumb::default()
    };
    place.create(news).await;
    let event = place
        .event(|event| event.context.get("tool") == Some(&json!("follower")) && event.context.contains_key("output"))
        .await;
    assert_eq!(event.context["output"], json!(["profile:scheduled"]));
    runner.stop().await;
}

/// A tool that a subagent wrote is no way out of what is closed to the subagent: by itself it runs under its author's profile.
#[tokio::test]
async fn what_runs_by_itself_runs_under_the_profile_of_its_author() {
    let (place, fake) = place().await;
    let agent = place.agent_of(Profile::Subagent).await;
    let bootstrap = json!({"bootstrap": {"enabled": true, "mode": "once"}});
    agent.create(code("cancel_all", bootstrap), None).await.unwrap();
    agent.create(code("follower", json!({"subscriptions": [{"any_tags": ["news"]}]})), None).await.unwrap();
    for tool in ["cancel_all", "follower"] {
        fake.does(tool, |call, _| async move { Ok(json!(call.profiles.tags().collect::<Vec<_>>())) });
    }
    let runner = place.start(&fake);
    // Written by a person: only the tool is the subagent's.
    place.catalog(|catalog| catalog.find("follower").is_some()).await;
    let news = NewBreadcrumb { title: "news".into(), tags: vec!["news".into()], ..NewBreadcrumb::default() };
    place.create(news).await;
    for tool in ["cancel_all", "follower"] {
        let is_answer = |event: &breadcrumb::Event| {
            event.context.get("tool") == Some(&json!(tool)) && event.context.contains_key("output")
        };
        assert_eq!(place.event(is_answer).await.context["output"], json!(["profile:subagent"]), "{tool}");
    }
    // Whoever calls it, calls it under their own.
    assert_eq!(place.call("follower", json!({})).await.output, Some(json!([])));
    runner.stop().await;
}
