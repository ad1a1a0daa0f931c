//! Agents that misbehave. Each costs one call, and leaves one record that says why.

mod agents;
mod answers;
mod attacks;
mod cards;
mod streams;
mod tasks;

use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use rcrt_a2a::{Status, TASK_SCHEMA, TaskRecord};
use rcrt_breadcrumb::{AccessList, BreadcrumbQuery, ErrorCode, ToolFailure};
use rcrt_test_servers::PATIENCE;
use rcrt_test_servers::service::{Seen, Service};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::world::{Agent, HOST, World, got, sent, task, until};
use agents::Hostile;
use attacks::{Attack, Ending};

/// The most characters of a failure, and of a record.
const MAX_FAILURE: usize = 4500;
const MAX_RECORD: usize = 600_000;

/// The text changes nothing on a terminal.
fn assert_harmless(case: &str, text: &str) {
    let is_bad =
        |c: char| c.is_control() && !matches!(c, '\n' | '\t') || matches!(c, '\u{200b}' | '\u{202e}' | '\u{2066}');
    assert!(!text.chars().any(is_bad), "{case}: {text:.300?}");
}

/// The same of each text in a value.
fn assert_all_harmless(case: &str, value: &Value) {
    match value {
        Value::String(text) => assert_harmless(case, text),
        Value::Array(items) => items.iter().for_each(|item| assert_all_harmless(case, item)),
        Value::Object(fields) => fields.iter().for_each(|(key, value)| {
            assert_harmless(case, key);
            assert_all_harmless(case, value);
        }),
        _ => {}
    }
}

/// A call that can reach every public host.
async fn ask(world: &World, tool: &str, input: Value) -> Result<Value, ToolFailure> {
    let mut call = world.call(tool, input);
    let mut definition = (*call.definition).clone();
    definition.permissions.net = AccessList::All;
    call.definition = Arc::new(definition);
    timeout(PATIENCE, world.run(call)).await.expect("it ends")
}

#[track_caller]
fn assert_fails(case: &str, failure: &ToolFailure, why: &str) {
    assert!(failure.message.contains(why), "{case}: {failure}");
    assert!(failure.message.chars().count() <= MAX_FAILURE, "{case}: {} characters", failure.message.chars().count());
    assert_harmless(case, &failure.message);
}

/// Registers the agent, sends it a message, and checks what came of it.
async fn try_attack(world: &World, attack: &Attack) {
    let (name, ending) = (attack.name, attack.ending);
    let url = format!("http://{HOST}:{}/{name}", world.port);
    let register = || ask(world, "register_agent", json!({"url": url, "name": name}));
    let mut registered = register().await;
    if let Ending::Unknown(why) = ending {
        return assert_fails(name, &registered.unwrap_err(), why);
    }
    // With a short time, a right card can come too late.
    while attack.is_endless && registered.is_err() {
        registered = register().await;
    }
    let registered = registered.unwrap_or_else(|failure| panic!("{name}: {failure}"));
    assert_all_harmless(name, &registered);
    if matches!(ending, Ending::Changed) {
        let refreshed = ask(world, "refresh_agent_card", json!({"agent_name": name})).await.unwrap();
        assert_eq!(refreshed["changed"], true, "{name}: {refreshed}");
    }
    let input = json!({"agent_name": name, "message": "x", "wait_seconds": 100});
    let expected: &[Status] = match (ending, ask(world, "invoke_agent", input).await) {
        (Ending::Refused, Err(failure)) => {
            assert_eq!(failure.code, ErrorCode::PermissionDenied, "{name}: {failure}");
            assert_fails(name, &failure, "");
            assert!(!failure.message.contains("may have received"), "{name}: {failure}");
            &[Status::Failed]
        }
        (Ending::Fails(why), Err(failure)) => {
            assert_fails(name, &failure, why);
            &[Status::Failed, Status::Rejected]
        }
        (Ending::Asks, Ok(output)) => {
            assert_eq!(output["status"], "input_required", "{name}: {output:.300}");
            &[Status::InputRequired]
        }
        (Ending::Returns(_) | Ending::Completes | Ending::Changed, Ok(output)) => {
            let text = &output["result"]["text"];
            match ending {
                Ending::Returns(expected) => assert_eq!(text, expected, "{name}: {output:.300}"),
                Ending::Changed => assert_eq!(text, "done", "{name}: {output:.300}"),
                _ => assert_eq!(output["status"], "completed", "{name}: {output:.300}"),
            }
            &[Status::Completed]
        }
        (_, result) => panic!("{name}: {:.1000}", format!("{result:?}")),
    };
    // The records of the agent and of its one task.
    let rows = world.runner().list(&BreadcrumbQuery::tagged(format!("a2a:agent:{name}"))).await.unwrap();
    let mut tasks = 0;
    for row in rows {
        let context = row.context.unwrap();
        if row.schema_name.as_deref() == Some(TASK_SCHEMA) {
            let task = TaskRecord::read(&context).unwrap();
            assert!(expected.contains(&task.status), "{name}: {:?}", task.status);
            tasks += 1;
        }
        let context = Value::Object(context);
        assert!(context.to_string().len() <= MAX_RECORD, "{name}: {} bytes", context.to_string().len());
        assert_all_harmless(name, &context);
    }
    assert_eq!(tasks, 1, "{name}");
    ask(world, "unregister_agent", json!({"agent_name": name})).await.unwrap();
}

/// A good agent, whose calls work whatever the others do.
async fn works(world: &World, good: &Agent) {
    good.plays(vec![sent(task("COMPLETED", "hello"))], Vec::new());
    let done = ask(world, "invoke_agent", json!({"agent_name": "good", "message": "x"})).await.unwrap();
    assert_eq!(done["result"]["text"], "hello");
}

async fn world(hostile: &Hostile, good: &Agent) -> World {
    let mut world = World::of(hostile.port).await;
    world.network = world.network.inside(&format!("{HOST}:{}", good.service.port));
    world
}

async fn add_good(world: &World, good: &Agent) {
    let url = format!("http://{HOST}:{}", good.service.port);
    ask(world, "register_agent", json!({"url": url, "name": "good"})).await.unwrap();
}

#[test]
fn the_tables_have_many_attacks_with_names_of_their_own() {
    let mut names: Vec<&str> = attacks::all().map(|attack| attack.name).collect();
    let all = names.len();
    names.sort_unstable();
    names.dedup();
    assert!(names.len() == all && all >= 120, "{all} attacks, {} names", names.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_agent_does_harm() {
    let (hostile, good) = (Hostile::new().await, Agent::start().await);
    let world = world(&hostile, &good).await;
    add_good(&world, &good).await;
    let following = world.follow();
    for attack in attacks::all().filter(|attack| !attack.is_endless) {
        try_attack(&world, attack).await;
    }
    works(&world, &good).await;
    assert!(hostile.inner.seen().is_empty(), "{:?}", hostile.inner.seen());
    timeout(PATIENCE, following.stop()).await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_agent_that_never_finishes_is_given_up_beside_others() {
    let (hostile, good) = (Hostile::new().await, Agent::start().await);
    let mut world = world(&hostile, &good).await;
    world.settings.request_time = Duration::from_secs(3);
    let following = world.follow();
    add_good(&world, &good).await;
    join_all(attacks::all().filter(|attack| attack.is_endless).map(|attack| try_attack(&world, attack))).await;
    works(&world, &good).await;
    timeout(PATIENCE, following.stop()).await.expect("it stops");
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
    let skill = json!({"id": "s", "name": "n\u{202e}ame\u{0}\u{e0041}", "description": "d".repeat(5000), "tags": vec!["t"; 100]});
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
    let control = result(json!([{"text": "a\u{0}\u{1b}[2J\u{202e}\u{e0041}b\r\nc\u{85}"}])).await;
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
