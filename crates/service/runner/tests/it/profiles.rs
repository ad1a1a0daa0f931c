//! The runner refuses tools that a profile denies.

use std::path::Path;

use rcrt_breadcrumb::{ErrorCode, NewBreadcrumb, Profile, ResponseStatus, ToolRequest};
use serde_json::json;

use crate::fake::Fake;
use crate::fixture::{Fixture, code, native};

async fn fixture() -> (Fixture, std::sync::Arc<Fake>) {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    for tool in ["cancel_scheduled_task", "spawn_subagent", "invoke_agent", "echo"] {
        fixture.create(native(tool, json!({}))).await;
    }
    (fixture, fake)
}

#[tokio::test]
async fn an_agents_calls_are_limited_by_its_profile() {
    let (fixture, fake) = fixture().await;
    let runner = fixture.start(&fake);
    let cases = [
        (Profile::Main, vec![]),
        (Profile::Subagent, vec!["cancel_scheduled_task", "spawn_subagent"]),
        (Profile::Scheduled, vec!["spawn_subagent"]),
        (Profile::A2aSynthesis, vec!["invoke_agent"]),
    ];
    for (profile, closed) in cases {
        let agent = fixture.agent_of(profile).await;
        for tool in ["cancel_scheduled_task", "spawn_subagent", "invoke_agent", "echo"] {
            let request = agent.create(ToolRequest::record(tool, json!({}), None, None), None).await.unwrap().id;
            let response = fixture.answer(request).await;
            if closed.contains(&tool) {
                assert_eq!(response.error_code, Some(ErrorCode::PermissionDenied), "{profile} {tool}");
                assert_eq!(response.is_retryable, Some(false));
                let why = format!("the profile {profile} does not allow the tool {tool}; ");
                assert!(response.error.as_ref().unwrap().starts_with(&why), "{response:?}");
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
async fn a_requests_profile_tag_applies_and_denied_names_are_not_suggested() {
    let (fixture, fake) = fixture().await;
    let runner = fixture.start(&fake);
    let ask = |tool: &str| {
        let mut request = ToolRequest::record(tool, json!({}), None, None);
        request.tags.push("profile:scheduled".into());
        request
    };
    let response = fixture.answer(fixture.create(ask("spawn_subagent")).await).await;
    let why = response.error.unwrap();
    assert!(why.starts_with("the profile scheduled does not allow the tool spawn_subagent; "), "{why}");
    let response = fixture.answer(fixture.create(ask("spawn_subagnet")).await).await;
    assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound));
    assert_eq!(response.error_details.unwrap(), json!({"nearest": []}));
    let response = fixture.answer(fixture.create(ask("cancel_scheduled_tsk")).await).await;
    assert_eq!(response.error_details.unwrap(), json!({"nearest": ["cancel_scheduled_task"]}));
    runner.stop().await;
}

/// The call has its profiles, and they also apply to a tool that its record triggers.
#[tokio::test]
async fn profiles_apply_to_nested_and_triggered_calls() {
    let (fixture, fake) = fixture().await;
    fixture.create(code("follower", json!({"subscriptions": [{"any_tags": ["news"]}]}))).await;
    fake.does("echo", |call, _| async move { Ok(json!(call.profiles.tags().collect::<Vec<_>>())) });
    fake.does("follower", |call, _| async move { Ok(json!(call.profiles.tags().collect::<Vec<_>>())) });
    let runner = fixture.start(&fake);
    let agent = fixture.agent_of(Profile::Subagent).await;
    let request = agent.create(ToolRequest::record("echo", json!({}), None, None), None).await.unwrap().id;
    assert_eq!(fixture.answer(request).await.output, Some(json!(["profile:subagent"])));
    let news = NewBreadcrumb {
        title: "news".into(),
        tags: vec!["news".into(), "profile:scheduled".into()],
        ..NewBreadcrumb::default()
    };
    fixture.create(news).await;
    let event = fixture
        .event(|event| event.context.get("tool") == Some(&json!("follower")) && event.context.contains_key("output"))
        .await;
    assert_eq!(event.context["output"], json!(["profile:scheduled"]));
    runner.stop().await;
}

/// A subagent cannot reach denied tools through a tool that it wrote: when triggered, that tool
/// runs under its author's profile.
#[tokio::test]
async fn triggered_tools_run_under_their_authors_profile() {
    let (fixture, fake) = fixture().await;
    let agent = fixture.agent_of(Profile::Subagent).await;
    let bootstrap = json!({"bootstrap": {"enabled": true, "mode": "once"}});
    agent.create(code("cancel_all", bootstrap), None).await.unwrap();
    agent.create(code("follower", json!({"subscriptions": [{"any_tags": ["news"]}]})), None).await.unwrap();
    for tool in ["cancel_all", "follower"] {
        fake.does(tool, |call, _| async move { Ok(json!(call.profiles.tags().collect::<Vec<_>>())) });
    }
    let runner = fixture.start(&fake);
    // Written by another agent: only the tool is the subagent's.
    fixture.catalog(|catalog| catalog.find("follower").is_some()).await;
    let news = NewBreadcrumb { title: "news".into(), tags: vec!["news".into()], ..NewBreadcrumb::default() };
    fixture.create(news).await;
    for tool in ["cancel_all", "follower"] {
        let is_answer = |event: &rcrt_breadcrumb::Event| {
            event.context.get("tool") == Some(&json!(tool)) && event.context.contains_key("output")
        };
        assert_eq!(fixture.event(is_answer).await.context["output"], json!(["profile:subagent"]), "{tool}");
    }
    // A direct call uses the caller's profile.
    assert_eq!(fixture.call("follower", json!({})).await.output, Some(json!([])));
    runner.stop().await;
}

/// Which tools each profile is offered: all shipped tools, and tools that are created at run time
/// (code, an http tool, an MCP tool, and code under a name that a profile denies). A new tool, a
/// new source or a changed rule changes this list. Then check `rcrt_breadcrumb::profile`, and
/// update the list with `GOLDEN=renew`.
#[tokio::test]
async fn each_profile_is_offered_the_tools_of_the_golden_list() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let mut tools = 0;
    for tool in ["tools-self-contained", "tools", "tools-native"].into_iter().flat_map(shipped) {
        fixture.create(tool).await;
        tools += 1;
    }
    let runner = fixture.start(&fake);
    let http = json!({"implementation": {"type": "http", "url": "https://api.example.com/"}});
    let mcp = json!({"implementation": {"type": "mcp", "server": "rain", "tool": "forecast"}});
    let made = [
        code("made-code", json!({})),
        native("made-http", http),
        native("rain__forecast", mcp),
        code("spawn_subagent", json!({})),
    ];
    for tool in made {
        fixture.create(tool).await;
        tools += 1;
    }
    let catalog = fixture.catalog(|catalog| catalog.names().count() == tools).await;
    let offered = catalog.tools.iter().map(|tool| (&tool.name, &tool.source));
    let waiting = catalog.waiting.iter().map(|tool| (&tool.name, &tool.source));
    let mut all: Vec<_> = offered.chain(waiting).collect();
    all.sort();
    let closes = |profile: Profile| {
        let open = catalog.clone().for_profile(profile);
        move |tool: &str| open.entry(tool).is_none()
    };
    let columns = Profile::ALL.map(|profile| (profile, closes(profile)));
    let heads = columns.iter().map(|(profile, _)| format!("{:<14}", profile.as_str())).collect::<Vec<_>>().concat();
    let mut text = format!("{:<28}{:<10}{}\n", "tool", "source", heads.trim_end());
    for (tool, source) in all {
        let sees = columns.iter().map(|(_, closes)| format!("{:<14}", if closes(tool) { "-" } else { "yes" }));
        let sees = sees.collect::<Vec<_>>().concat();
        let line = format!("{:<28}{:<10}{sees}", tool, source.to_string());
        text.extend([line.trim_end(), "\n"]);
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/profiles.txt");
    if std::env::var("GOLDEN").is_ok_and(|mode| mode == "renew") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, &text).unwrap();
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == text,
        "the list changed; check it, and update it with GOLDEN=renew:\n--- kept\n{kept}\n--- now\n{text}"
    );
    // The runner refuses the tools that the profile is not offered.
    for profile in Profile::ALL {
        let agent = fixture.agent_of(profile).await;
        let open = catalog.clone().for_profile(profile);
        for tool in ["made-code", "made-http", "spawn_subagent", "invoke_agent"] {
            let request = agent.create(ToolRequest::record(tool, json!({}), None, None), None).await.unwrap().id;
            let is_closed = fixture.answer(request).await.error_code == Some(ErrorCode::PermissionDenied);
            assert_eq!(is_closed, open.find(tool).is_none(), "{profile} {tool}");
        }
    }
    runner.stop().await;
}

/// The tools of a folder of `bootstrap-breadcrumbs`, as records.
fn shipped(folder: &str) -> Vec<NewBreadcrumb> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../bootstrap-breadcrumbs").join(folder);
    let paths = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    paths
        .filter(|path| path.extension().is_some_and(|extension| extension == "json"))
        .map(|path| {
            let source = std::fs::read_to_string(path.with_extension("ts")).ok();
            let json = std::fs::read_to_string(&path).unwrap();
            rcrt_validate::seed::read(&path.to_string_lossy(), &json, source.as_deref()).unwrap().record
        })
        .collect()
}
