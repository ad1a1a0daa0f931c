//! Tasks at an agent: results, questions, time, and the end of a runner.

use chrono::{TimeDelta, Utc};
use rcrt_a2a::Status;
use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbQuery, ErrorCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::world::{Agent, World, got, sent, task, until};

fn completed(text: &str) -> Value {
    let mut done = task("COMPLETED", "");
    done["artifacts"] = json!([{"artifactId": "a", "parts": [{"text": text}, {"data": {"sum": 3}}]}]);
    done["status"]["message"] = Value::Null;
    done
}

#[tokio::test]
async fn a_result_that_comes_at_once_is_returned() {
    let agent = Agent::start().await;
    agent.plays(vec![sent(completed("three"))], Vec::new());
    let world = World::of(agent.service.port).await;
    world.register().await;
    let input = json!({"agent_name": "research", "skill": "sum", "message": "1 + 2", "data": {"a": 1}});
    let done = world.ask("invoke_agent", input).await.unwrap();
    assert_eq!(
        (&done["status"], &done["result"]),
        (&json!("completed"), &json!({"text": "three", "data": [{"sum": 3}]}))
    );
    let asked = agent.calls("SendMessage").remove(0);
    assert_eq!(asked["message"]["parts"], json!([{"text": "1 + 2"}, {"data": {"a": 1}}]));
    assert_eq!(asked["message"]["metadata"], json!({"skill": "sum"}));
    assert_eq!(asked["configuration"], json!({"returnImmediately": true}));
    // Also an answer without a task.
    let message = json!({"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hello\u{0}\u{1b}[31m"}]});
    agent.plays(vec![json!({"result": {"message": message}})], Vec::new());
    let done = world.ask("invoke_agent", json!({"agent_name": "research", "message": "hi"})).await.unwrap();
    assert_eq!(done["result"]["text"], "hello[31m");
    let unknown =
        world.failure("invoke_agent", json!({"agent_name": "research", "skill": "fly", "message": "x"})).await;
    assert!(unknown.message.contains("its skills are: sum"), "{unknown}");
}

#[tokio::test]
async fn a_call_waits_for_the_result_and_a_failure_is_one() {
    let agent = Agent::start().await;
    agent.plays(vec![sent(task("SUBMITTED", ""))], vec![got(task("WORKING", "")), got(completed("later"))]);
    let world = World::of(agent.service.port).await;
    world.register().await;
    let following = world.follow();
    let done = world.ask("invoke_agent", json!({"agent_name": "research", "message": "x", "wait_seconds": 100})).await;
    assert_eq!(done.unwrap()["result"]["text"], "later");
    for (state, status) in [("FAILED", "failed"), ("CANCELED", "canceled"), ("REJECTED", "rejected")] {
        agent.plays(vec![sent(task("WORKING", ""))], vec![got(task(state, "no luck"))]);
        let failure =
            world.failure("invoke_agent", json!({"agent_name": "research", "message": "x", "wait_seconds": 100})).await;
        assert_eq!(
            (failure.code, &failure.details.as_ref().unwrap()["status"]),
            (ErrorCode::ExecutionFailed, &json!(status))
        );
        assert!(failure.message.contains("no luck"), "{failure}");
    }
    // The agent forgot it.
    agent.plays(vec![sent(task("WORKING", ""))], Vec::new());
    let failure =
        world.failure("invoke_agent", json!({"agent_name": "research", "message": "x", "wait_seconds": 100})).await;
    assert!(failure.message.contains("no longer knows the task"), "{failure}");
    following.stop().await;
}

#[tokio::test]
async fn a_result_after_the_end_of_the_runner_is_written_once() {
    let agent = Agent::start().await;
    agent.plays(vec![sent(task("WORKING", ""))], vec![got(task("WORKING", ""))]);
    let world = World::of(agent.service.port).await;
    world.register().await;
    let following = world.follow();
    let begun = world.begin("x").await;
    assert_eq!(begun["status"], "working");
    following.kill().await;
    world.restart();
    let mut events = world.events().await;
    agent.plays(Vec::new(), vec![got(completed("after all"))]);
    let (one, two) = (world.follow(), world.follow());
    let task = until(&mut events, Status::Completed).await;
    assert_eq!(task.result.unwrap().text, "after all");
    one.stop().await;
    two.stop().await;
    let id: Uuid = begun["task_id"].as_str().unwrap().parse().unwrap();
    let versions = world.tenant.breadcrumbs.history(id).await.unwrap();
    assert_eq!(versions.iter().filter(|version| version.context["status"] == "completed").count(), 1);
}

#[tokio::test]
async fn a_question_is_answered_by_its_task() {
    let agent = Agent::start().await;
    agent.plays(vec![sent(task("INPUT_REQUIRED", "Which year?"))], Vec::new());
    let world = World::of(agent.service.port).await;
    world.register().await;
    let asked = world.begin("summarize").await;
    assert_eq!((&asked["status"], &asked["question"]), (&json!("input_required"), &json!("Which year?")));
    agent.plays(vec![sent(completed("done"))], Vec::new());
    let answer = json!({"agent_name": "research", "message": "2025", "task_id": asked["task_id"]});
    // Only the agent that asked can answer.
    let mut foreign = world.call("invoke_agent", answer.clone());
    foreign.request.agent_id = Some(Uuid::new_v4());
    assert!(world.run(foreign).await.unwrap_err().message.contains("there is no task"));
    let done = world.ask("invoke_agent", answer.clone()).await.unwrap();
    assert_eq!(done["result"]["text"], "done");
    let sent = agent.calls("SendMessage").remove(1);
    assert_eq!((&sent["message"]["taskId"], &sent["message"]["contextId"]), (&json!("t1"), &json!("c1")));
    let again = world.failure("invoke_agent", answer).await;
    assert!(again.message.contains("does not wait for an answer"), "{again}");
}

#[tokio::test]
async fn an_agent_that_repeats_its_question_fails_the_task() {
    let agent = Agent::start().await;
    let world = World::of(agent.service.port).await;
    world.register().await;
    let ask = || vec![sent(task("INPUT_REQUIRED", "Are you sure?"))];
    agent.plays(ask(), Vec::new());
    let asked = world.begin("x").await;
    let answer = json!({"agent_name": "research", "message": "yes", "task_id": asked["task_id"]});
    agent.plays(ask(), Vec::new());
    assert_eq!(world.ask("invoke_agent", answer.clone()).await.unwrap()["status"], "input_required");
    agent.plays(ask(), Vec::new());
    let failure = world.failure("invoke_agent", answer).await;
    assert!(failure.message.contains("the same question 3 times"), "{failure}");
    assert_eq!(world.tasks().await[0].rounds, 3);
    assert_eq!(agent.calls("CancelTask").len(), 1);
}

#[tokio::test]
async fn a_task_whose_time_is_up_says_so_and_takes_a_late_reply() {
    let agent = Agent::start().await;
    agent.plays(vec![sent(task("WORKING", ""))], vec![got(task("WORKING", ""))]);
    let world = World::of(agent.service.port).await;
    world.register().await;
    world.begin("x").await;
    // Its time is over.
    let store = &world.tenant.breadcrumbs;
    let row = store.list(&BreadcrumbQuery::tagged("a2a:task")).await.unwrap().remove(0);
    let mut context = row.context.unwrap();
    context.insert("deadline_at".into(), json!(Utc::now() - TimeDelta::minutes(1)));
    let mut events = world.events().await;
    let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
    store.update(row.id, row.version, changes).await.unwrap();
    let following = world.follow();
    let late = until(&mut events, Status::TimedOut).await;
    assert!(late.error.unwrap().contains("did not finish in time") && !late.late);
    agent.plays(Vec::new(), vec![got(completed("sorry"))]);
    let done = until(&mut events, Status::Completed).await;
    assert!(done.late);
    assert_eq!((done.result.unwrap().text.as_str(), done.error), ("sorry", None));
    following.stop().await;
}

#[tokio::test]
async fn a_repeated_attempt_of_a_call_sends_its_message_once() {
    let agent = Agent::start().await;
    agent.plays(vec![sent(completed("three"))], Vec::new());
    let world = World::of(agent.service.port).await;
    world.register().await;
    let call = || world.call("invoke_agent", json!({"agent_name": "research", "message": "1 + 2"}));
    let (first, mut second) = (call(), call());
    second.request.id = first.request.id;
    let one = world.run(first).await.unwrap();
    assert_eq!(world.run(second).await.unwrap(), one);
    assert_eq!(agent.calls("SendMessage").len(), 1);
}

#[tokio::test]
async fn this_installation_does_not_invoke_itself() {
    let agent = Agent::start().await;
    let mut world = World::of(agent.service.port).await;
    world.settings.own_origins = vec![format!("http://{}:{}/", crate::world::HOST, world.port)];
    world.register().await;
    let failure = world.failure("invoke_agent", json!({"agent_name": "research", "message": "x"})).await;
    assert_eq!(failure.code, ErrorCode::InvalidArguments);
    assert!(failure.message.contains("is this installation itself"), "{failure}");
    assert!(agent.calls("SendMessage").is_empty());
}
