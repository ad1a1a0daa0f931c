//! Agents that send updates: the call follows them, and the runner continues when they end.

use rcrt_a2a::Status;
use serde_json::{Value, json};

use crate::world::{Agent, World, got, sent, task, until};

async fn world(updates: Vec<Value>, tasks: Vec<Value>) -> (Agent, World) {
    let agent = Agent::start().await;
    agent.plays(Vec::new(), tasks);
    {
        let mut script = agent.script.lock().unwrap();
        (script.card, script.updates) = (json!({"capabilities": {"streaming": true}}), Some(updates));
    }
    let world = World::of(agent.service.port).await;
    world.register().await;
    (agent, world)
}

fn status(state: &str, said: &str) -> Value {
    json!({"statusUpdate": {"taskId": "t1", "contextId": "c1", "status": task(state, said)["status"]}})
}

fn artifact(id: &str, text: &str, append: bool) -> Value {
    let artifact = json!({"artifactId": id, "parts": [{"text": text}]});
    json!({"artifactUpdate": {"taskId": "t1", "contextId": "c1", "artifact": artifact, "append": append}})
}

fn ask() -> Value {
    json!({"agent_name": "research", "message": "x"})
}

#[tokio::test]
async fn the_updates_of_a_task_are_its_result() {
    let of_another = json!({"statusUpdate": {"taskId": "t2", "status": {"state": "TASK_STATE_FAILED"}}});
    let updates = vec![
        json!({"task": task("SUBMITTED", "")}),
        status("WORKING", "half"),
        of_another,
        artifact("a", "one", false),
        artifact("a", " two", true),
        artifact("b", "wrong", false),
        artifact("b", "three", false),
        json!({"dream": {}}),
    ];
    // An update that is not known ends the stream, and the agent is asked for the rest.
    let (agent, world) = world(updates, vec![got(task("COMPLETED", "asked"))]).await;
    let following = world.follow();
    let done = world.ask("invoke_agent", ask()).await.unwrap();
    assert_eq!(done["result"]["text"], "asked");
    following.stop().await;

    let updates = vec![
        json!({"task": task("SUBMITTED", "")}),
        status("WORKING", "half"),
        artifact("a", "one", false),
        artifact("a", "two", true),
        artifact("b", "wrong", false),
        artifact("b", "three", false),
        json!({"statusUpdate": {"taskId": "t1", "status": {"state": "TASK_STATE_COMPLETED"}}}),
    ];
    agent.script.lock().unwrap().updates = Some(updates);
    let done = world.ask("invoke_agent", ask()).await.unwrap();
    assert_eq!((&done["status"], &done["result"]["text"]), (&json!("completed"), &json!("one\ntwo\nthree")));
    assert!(agent.calls("SendMessage").is_empty(), "each message was sent once");
}

#[tokio::test]
async fn a_message_and_a_question_can_be_updates() {
    let message = json!({"message": {"messageId": "m", "role": "ROLE_AGENT", "parts": [{"text": "hello"}]}});
    let (agent, world) = world(vec![message], Vec::new()).await;
    let done = world.ask("invoke_agent", ask()).await.unwrap();
    assert_eq!(done["result"]["text"], "hello");

    let asks = vec![json!({"task": task("WORKING", "")}), status("INPUT_REQUIRED", "Which year?")];
    agent.script.lock().unwrap().updates = Some(asks);
    let asked = world.ask("invoke_agent", ask()).await.unwrap();
    assert_eq!((&asked["status"], &asked["question"]), (&json!("input_required"), &json!("Which year?")));
    let ends = vec![status("WORKING", ""), status("COMPLETED", "2025 it is")];
    agent.script.lock().unwrap().updates = Some(ends);
    let answer = json!({"agent_name": "research", "message": "2025", "task_id": asked["task_id"]});
    assert_eq!(world.ask("invoke_agent", answer).await.unwrap()["result"]["text"], "2025 it is");
    assert_eq!(agent.calls("SendStreamingMessage")[2]["message"]["taskId"], "t1");
}

#[tokio::test]
async fn an_agent_that_sends_no_updates_after_all_is_asked_without_them() {
    let (agent, world) = world(Vec::new(), Vec::new()).await;
    {
        let mut script = agent.script.lock().unwrap();
        (script.updates, script.sent) = (None, vec![sent(task("COMPLETED", "plain"))].into());
    }
    assert_eq!(world.ask("invoke_agent", ask()).await.unwrap()["result"]["text"], "plain");
    assert_eq!(agent.calls("SendStreamingMessage").len(), 1);
    // A call that does not wait needs no updates.
    world.begin("x").await;
    assert_eq!(agent.calls("SendStreamingMessage").len(), 1);
}

#[tokio::test]
async fn a_stream_that_breaks_is_not_repeated() {
    let (agent, world) = world(Vec::new(), vec![got(task("COMPLETED", "late"))]).await;
    let failure = world.failure("invoke_agent", ask()).await;
    assert!(failure.message.contains("may have received the message or not"), "{failure}");
    assert_eq!(world.tasks().await[0].status, Status::Failed);
    assert!(agent.calls("SendMessage").is_empty());

    // After the first update the task is known, so it is followed.
    agent.script.lock().unwrap().updates = Some(vec![json!({"task": task("WORKING", "")})]);
    let mut events = world.events().await;
    let following = world.follow();
    let done = world.ask("invoke_agent", ask()).await.unwrap();
    assert_eq!(done["result"]["text"], "late");
    assert_eq!(until(&mut events, Status::Completed).await.result.unwrap().text, "late");
    following.stop().await;
}
