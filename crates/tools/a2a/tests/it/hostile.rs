//! Agents that misbehave. Each costs one call, and leaves one record that says why.

use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use rcrt_a2a::Status;
use rcrt_test_servers::service::{Seen, Service};
use serde_json::json;

use crate::world::{Agent, HOST, World, got, sent, task, until};

/// An agent whose card is right and whose other answers are these.
async fn agent(answer: impl Fn(&Seen) -> Response + Clone + Send + Sync + 'static) -> Service {
    Service::new(move |seen: Seen| {
        if !seen.uri.path().ends_with("agent-card.json") {
            return answer(&seen);
        }
        let port = seen.header("host").unwrap().rsplit(':').next().unwrap().to_owned();
        let url = format!("http://{HOST}:{port}/rpc");
        let interface = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        json!({"name": "Bad", "supportedInterfaces": [interface]}).to_string().into_response()
    })
    .await
}

/// What came of a message to it.
async fn failed(service: Service) -> String {
    let world = World::of(service.port).await;
    world.register().await;
    let failure = world.failure("invoke_agent", json!({"agent_name": "research", "message": "x"})).await;
    let task = world.tasks().await.remove(0);
    assert_eq!(task.status, Status::Failed);
    assert_eq!(task.error.as_ref(), Some(&failure.message));
    failure.message
}

#[tokio::test]
async fn answers_that_are_no_a2a_fail_the_task() {
    let large = || "x".repeat(10 * 1024 * 1024 - 100);
    for (answer, expected) in [
        ("garbage \u{7}".to_owned(), "is not JSON"),
        ("[]".to_owned(), "is not an object"),
        ("{}".to_owned(), "is not what A2A describes"),
        (r#"{"result": {"task": {"id": 7}}}"#.to_owned(), "is not what A2A describes"),
        (r#"{"result": {"task": {"id": "t", "status": {"state": ["x"]}}}}"#.to_owned(), "is not what A2A describes"),
        (r#"{"error": {"code": -32603, "message": "bad\u0000\u001b[31m"}}"#.to_owned(), "the agent refused: bad [31m"),
        (large(), "is larger than"),
        ("[".repeat(100_000), "is not JSON"),
    ] {
        let shown: String = answer.chars().take(40).collect();
        let message = failed(agent(move |_| answer.clone().into_response()).await).await;
        assert!(message.contains(expected), "{shown}: {message}");
        assert!(message.chars().all(|c| !c.is_control()) && message.len() < 2000, "{shown}: {message}");
    }
}

#[tokio::test]
async fn a_status_or_a_redirect_fails_the_task() {
    let message = failed(agent(|_| StatusCode::SERVICE_UNAVAILABLE.into_response()).await).await;
    assert!(message.contains("answered with 503; the agent may have received the message or not"), "{message}");
    let message = failed(agent(|_| (StatusCode::NOT_FOUND, "{}").into_response()).await).await;
    assert!(message.contains("answered with 404") && !message.contains("may have received"), "{message}");
    let redirect =
        |_: &Seen| (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, "http://127.0.0.1:1/")]).into_response();
    let message = failed(agent(redirect).await).await;
    assert!(message.contains("redirect"), "{message}");
}

#[tokio::test]
async fn a_card_that_is_not_one_registers_no_agent() {
    let redirect = (StatusCode::FOUND, [(header::LOCATION, "http://127.0.0.1:1/agent-card.json")]).into_response();
    let (status, headers) = (redirect.status(), redirect.headers().clone());
    let service = Service::new(move |seen: Seen| match seen.uri.path() {
        "/redirect/.well-known/agent-card.json" => (status, headers.clone(), String::new()),
        "/garbage/.well-known/agent-card.json" => (StatusCode::OK, headers.clone(), "<html>".to_owned()),
        "/old/.well-known/agent-card.json" => (
            StatusCode::OK,
            headers.clone(),
            json!({"name": "Old", "url": "http://x/", "protocolVersion": "0.3"}).to_string(),
        ),
        "/large/.well-known/agent-card.json" => (StatusCode::OK, headers.clone(), " ".repeat(10 * 1024 * 1024 - 1)),
        _ => (StatusCode::NOT_FOUND, headers.clone(), String::new()),
    })
    .await;
    let world = World::of(service.port).await;
    for (path, expected) in [
        ("redirect", "127.0.0.1"),
        ("garbage", "card cannot be read"),
        ("old", "agents of other versions are not supported"),
        ("large", "is larger than"),
        ("missing", "answered with 404"),
    ] {
        let url = format!("http://{HOST}:{}/{path}", world.port);
        let failure = world.failure("register_agent", json!({"url": url, "name": "bad"})).await;
        assert!(failure.message.contains(expected), "{path}: {failure}");
    }
    for url in ["ftp://agent.example", "agent.example", ""] {
        world.failure("register_agent", json!({"url": url})).await;
    }
    assert_eq!(world.ask("list_known_agents", json!({})).await.unwrap(), json!([]));
}

#[tokio::test]
async fn an_agent_that_never_answers_is_given_up() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let silent = listener.local_addr().unwrap().port();
    let service = Service::new(move |_: Seen| {
        let interface = json!({"url": format!("http://{HOST}:{silent}/"), "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"});
        json!({"name": "Silent", "supportedInterfaces": [interface]}).to_string()
    })
    .await;
    let mut world = World::of(service.port).await;
    world.network = world.network.inside(&format!("{HOST}:{silent}"));
    world.settings.request_time = Duration::from_millis(300);
    world.register().await;
    let mut call = world.call("invoke_agent", json!({"agent_name": "research", "message": "x"}));
    let mut definition = (*call.definition).clone();
    definition.permissions.net = rcrt_breadcrumb::AccessList::Listed(vec![format!("{HOST}:{silent}")]);
    call.definition = std::sync::Arc::new(definition);
    let failure = world.run(call).await.unwrap_err();
    assert!(failure.message.contains("did not answer completely within 300ms"), "{failure}");
    assert!(failure.message.contains("may have received the message or not"), "{failure}");
    drop(listener);
}

#[tokio::test]
async fn an_agent_that_works_forever_is_asked_until_the_time_is_up() {
    let agent = Agent::start().await;
    agent.plays(vec![sent(task("WORKING", ""))], vec![got(task("WORKING", ""))]);
    let mut world = World::of(agent.service.port).await;
    world.settings.keep_late = Duration::ZERO;
    world.register().await;
    let mut events = world.events().await;
    let following = world.follow();
    world.begin("x").await;
    // Garbage and errors in between change nothing.
    for answer in [json!({"result": 7}), json!({"result": {"id": "t1", "status": {"state": "TASK_STATE_DREAMING"}}})] {
        let asked = agent.calls("GetTask").len();
        agent.plays(Vec::new(), vec![answer]);
        while agent.calls("GetTask").len() < asked + 2 {
            tokio::task::yield_now().await;
        }
    }
    assert_eq!(world.tasks().await[0].status, Status::Working);
    agent.plays(Vec::new(), vec![got(task("COMPLETED", "at last"))]);
    assert_eq!(until(&mut events, Status::Completed).await.result.unwrap().text, "at last");
    following.stop().await;
}
