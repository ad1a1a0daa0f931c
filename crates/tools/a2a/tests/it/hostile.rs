//! Agents that misbehave. Each costs one call, and leaves one record that says why.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use rcrt_a2a::Status;
use rcrt_breadcrumb::{AccessList, ErrorCode};
use rcrt_test_servers::service::{Seen, Service};
use serde_json::{Value, json};

use crate::world::{Agent, HOST, World, got, sent, task, until};

/// An agent whose card is right and whose other answers are these.
async fn agent(answer: impl Fn(&Seen) -> Response + Clone + Send + Sync + 'static) -> Service {
    with_capabilities(json!({}), answer).await
}

/// The same of an agent that says that it sends updates.
async fn streaming(answer: impl Fn(&Seen) -> Response + Clone + Send + Sync + 'static) -> Service {
    with_capabilities(json!({"streaming": true}), answer).await
}

async fn with_capabilities(
    capabilities: Value,
    answer: impl Fn(&Seen) -> Response + Clone + Send + Sync + 'static,
) -> Service {
    Service::new(move |seen: Seen| {
        if !seen.uri.path().ends_with("agent-card.json") {
            return answer(&seen);
        }
        let port = seen.header("host").unwrap().rsplit(':').next().unwrap().to_owned();
        let url = format!("http://{HOST}:{port}/rpc");
        let interface = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
        json!({"name": "Bad", "supportedInterfaces": [interface], "capabilities": capabilities})
            .to_string()
            .into_response()
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
        let url = format!("http://{HOST}:{silent}/");
        let interface = json!({"url": url, "protocolBinding": "HTTP+JSON", "protocolVersion": "1.0"});
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

/// A card of an agent at this interface.
fn card(url: &str) -> Value {
    let interface = json!({"url": url, "protocolBinding": "JSONRPC", "protocolVersion": "1.0"});
    json!({"name": "Bad", "supportedInterfaces": [interface]})
}

#[tokio::test]
async fn a_card_that_leads_elsewhere_gets_no_message() {
    let shown = Arc::new(Mutex::new(Value::Null));
    let cards = shown.clone();
    let service = Service::new(move |_: Seen| cards.lock().unwrap().to_string()).await;
    let world = World::of(service.port).await;
    // It is not registered at all.
    for (url, expected) in [
        ("ftp://agent.example/", "no http or https URL"),
        ("file:///etc/passwd", "no http or https URL"),
        ("/rpc", "no http or https URL"),
        ("https://user:password@agent.example/", "without a password"),
        ("javascript:alert(1)", "no http or https URL"),
    ] {
        *shown.lock().unwrap() = card(url);
        let input = json!({"url": format!("http://{HOST}:{}", world.port), "name": "bad"});
        let failure = world.failure("register_agent", input).await;
        assert!(failure.message.contains(expected), "{url}: {failure}");
    }
    let long = format!("https://agent.example/{}", "x".repeat(3000));
    *shown.lock().unwrap() = card(&long);
    world.failure("register_agent", json!({"url": format!("http://{HOST}:{}", world.port), "name": "bad"})).await;
    *shown.lock().unwrap() = card("https://agent.example/");
    shown.lock().unwrap()["supportedInterfaces"][0]["tenant"] = "a\nb".into();
    world.failure("register_agent", json!({"url": format!("http://{HOST}:{}", world.port), "name": "bad"})).await;
    assert_eq!(world.ask("list_known_agents", json!({})).await.unwrap(), json!([]));

    // It is registered, and the egress gate refuses the message.
    for url in [
        "http://127.0.0.1:1/",
        "http://[::1]/",
        "http://169.254.169.254/latest/meta-data/",
        "http://10.0.0.1/",
        "http://0x7f000001/",
        "https://other.example:25/",
    ] {
        *shown.lock().unwrap() = card(url);
        world.register().await;
        let mut call = world.call("invoke_agent", json!({"agent_name": "research", "message": "x"}));
        let mut definition = (*call.definition).clone();
        definition.permissions.net = AccessList::All;
        call.definition = Arc::new(definition);
        let failure = world.run(call).await.unwrap_err();
        assert!(!failure.message.contains("may have received"), "{url}: {failure}");
        assert_eq!(failure.code, ErrorCode::PermissionDenied, "{url}: {failure}");
        world.ask("unregister_agent", json!({"agent_name": "research"})).await.unwrap();
    }
}

#[tokio::test]
async fn the_texts_of_a_card_are_bounded_and_cleaned() {
    let mut bad = card("https://agent.example/");
    let skill = |number: u32| json!({"id": format!("s{number}"), "description": "d".repeat(5000)});
    bad["skills"] = (0..60).map(skill).collect();
    let service = Service::new(move |_: Seen| bad.to_string()).await;
    let world = World::of(service.port).await;
    let input = json!({"url": format!("http://{HOST}:{}", world.port), "name": "research"});
    // A card that is too large is refused; the texts of a smaller one are cut.
    let message = world.failure("register_agent", input).await.message;
    assert!(message.contains("is larger than"), "{message}");

    let mut bad = card("https://agent.example/");
    bad["description"] = format!("{}\r\n\u{7}end", "x".repeat(10_000)).into();
    bad["version"] = "v".repeat(1000).into();
    let skill =
        json!({"id": "s", "name": "n\u{202e}ame\u{0}", "description": "d".repeat(5000), "tags": vec!["t"; 100]});
    bad["skills"] = json!([skill, 7, {}, {"id": {}}]);
    let service = Service::new(move |_: Seen| bad.to_string()).await;
    let world = World::of(service.port).await;
    let registered = world.register().await;
    assert!(registered["description"].as_str().unwrap().chars().count() <= 2001);
    assert!(registered["version"].as_str().unwrap().chars().count() <= 51);
    let skills = registered["skills"].as_array().unwrap();
    assert_eq!((skills.len(), &skills[0]["name"]), (1, &json!("n ame")));
    assert_eq!(skills[0]["tags"].as_array().unwrap().len(), 10);
    let text = registered.to_string();
    assert!(!text.contains("\\u00") && !text.contains('\u{202e}'), "{text:.300}");
}

#[tokio::test]
async fn the_results_of_an_agent_are_bounded_and_cleaned() {
    let agent = Agent::start().await;
    let world = World::of(agent.service.port).await;
    world.register().await;
    let result = async |parts: Value| {
        let mut done = task("COMPLETED", "");
        done["artifacts"] = json!([{"artifactId": "a", "parts": parts}]);
        agent.plays(vec![sent(done)], Vec::new());
        world.ask("invoke_agent", json!({"agent_name": "research", "message": "x"})).await.unwrap()["result"].clone()
    };
    let long = result(json!([{"text": "x".repeat(300_000)}])).await;
    assert_eq!((&long["is_cut"], long["text"].as_str().unwrap().chars().count()), (&json!(true), 100_001));
    let control = result(json!([{"text": "a\u{0}\u{1b}[2J\u{202e}b\r\nc\u{85}"}])).await;
    assert_eq!(control["text"], "a[2Jb\nc\n");
    let data = result(json!([{"data": {"k\u{0}ey": "v\u{7}"}}, {"data": "d".repeat(300_000)}])).await;
    assert_eq!((&data["data"], &data["is_cut"]), (&json!([{"k ey": "v"}]), &json!(true)));
    let files: Vec<Value> =
        (0..50).map(|_| json!({"url": "http://x/\n\u{1b}", "filename": "../../etc\u{0}"})).collect();
    let files = result(json!(files)).await;
    assert_eq!((files["files"].as_array().unwrap().len(), &files["is_cut"]), (20, &json!(true)));
    assert!(!files.to_string().contains("\\u00"), "{files}");
    let raw = result(json!([{"raw": "A".repeat(100_000), "mediaType": "image/png"}])).await;
    assert_eq!(raw["files"], json!([{"base64_chars": 100_000, "media_type": "image/png"}]));
    // A part with two contents, or none, has no content.
    assert_eq!(result(json!([{"text": "a", "url": "b"}, {}])).await, json!({}));
}

#[tokio::test]
async fn an_agent_cannot_change_a_task_that_has_ended_or_that_is_another() {
    let agent = Agent::start().await;
    let world = World::of(agent.service.port).await;
    world.register().await;
    let mut events = world.events().await;
    let following = world.follow();
    agent.plays(vec![sent(task("WORKING", ""))], vec![got(task("COMPLETED", "first"))]);
    world.begin("x").await;
    until(&mut events, Status::Completed).await;
    // Another task with the same id, so that the agent is asked again.
    agent.plays(vec![sent(task("WORKING", ""))], vec![got(task("FAILED", "second"))]);
    world.begin("y").await;
    until(&mut events, Status::Failed).await;
    let tasks = world.tasks().await;
    assert_eq!((tasks[0].status, tasks[0].result.as_ref().unwrap().text.as_str()), (Status::Completed, "first"));
    following.stop().await;
}

#[tokio::test]
async fn an_agent_that_asks_and_asks_is_given_up() {
    let agent = Agent::start().await;
    let world = World::of(agent.service.port).await;
    world.register().await;
    let ask =
        |number: u32| vec![sent(task("INPUT_REQUIRED", &format!("\u{1b}]0;Question {number}?{}", "y".repeat(9000))))];
    agent.plays(ask(0), Vec::new());
    let asked = world.begin("x").await;
    let question = asked["question"].as_str().unwrap();
    assert!(question.starts_with("]0;Question 0?") && question.chars().count() <= 4001, "{question:.100}");
    let answer = json!({"agent_name": "research", "message": "yes", "task_id": asked["task_id"]});
    for number in 1..20 {
        agent.plays(ask(number), Vec::new());
        assert_eq!(world.ask("invoke_agent", answer.clone()).await.unwrap()["status"], "input_required", "{number}");
    }
    agent.plays(ask(20), Vec::new());
    let failure = world.failure("invoke_agent", answer).await;
    assert!(failure.message.contains("asked more than 20 questions"), "{failure}");
    assert_eq!(agent.calls("CancelTask").len(), 1);
}

#[tokio::test]
async fn streams_that_are_no_a2a_end_without_harm() {
    let stream = |body: String| ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response();
    let event = |value: Value| format!("data: {}\n\n", json!({"jsonrpc": "2.0", "id": 1, "result": value}));
    let begun = event(json!({"task": task("WORKING", "")}));
    let huge = event(json!({"artifactUpdate": {"taskId": "t1", "artifact":
        {"artifactId": "a", "parts": [{"text": "x".repeat(5 * 1024 * 1024)}]}}}));
    // Before the first update the task fails, because the message may have been accepted.
    for body in [
        String::new(),
        "data: {\n\n".into(),
        ": ping\n\n".repeat(1000),
        "x".repeat(5 * 1024 * 1024),
        huge.clone(),
        event(json!({"task": {"id": 7}})),
        event(json!([])),
    ] {
        let shown: String = body.chars().take(60).collect();
        let service = streaming(move |_| stream(body.clone())).await;
        let message = failed(service).await;
        assert!(
            message.contains("may have received") || message.contains("not what A2A describes"),
            "{shown}: {message}"
        );
        assert!(message.len() < 2000 && message.chars().all(|c| !c.is_control()), "{shown}: {message}");
    }
    // After it, the agent is asked for the state.
    for rest in ["data: garbage\n\n".to_owned(), huge, event(json!({"task": {"id": 7}})), String::new()] {
        let body = format!("{begun}{rest}");
        let service =
            streaming(move |seen| match serde_json::from_str::<Value>(&seen.body).unwrap()["method"].as_str() {
                Some("SendStreamingMessage") => stream(body.clone()),
                _ => {
                    json!({"jsonrpc": "2.0", "id": 1, "result": task("COMPLETED", "asked")}).to_string().into_response()
                }
            })
            .await;
        let world = World::of(service.port).await;
        world.register().await;
        let following = world.follow();
        let done = world.ask("invoke_agent", json!({"agent_name": "research", "message": "x"})).await.unwrap();
        assert_eq!(done["result"]["text"], "asked");
        following.stop().await;
    }
}
