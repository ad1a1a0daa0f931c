//! Push notifications: what an agent gets to send them, and what one makes of its task. The server
//! that receives them writes `woken_at`, as these tests do.

use std::time::Duration;

use chrono::Utc;
use rcrt_a2a::{Status, TASK_SCHEMA};
use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbQuery, PUSH_HASH, PushToken, StoreError, WOKEN_AT, push_path};
use serde_json::{Value, json};

use crate::world::{Agent, World, got, sent, task, until};

const PUBLIC: &str = "https://rcrt.example/base";

/// An agent that sends notifications, and a runner that looks at a task by itself after an hour.
async fn scene() -> (Agent, World) {
    let agent = Agent::start().await;
    agent.script.lock().unwrap().card = json!({"capabilities": {"pushNotifications": true}});
    let mut world = World::of(agent.service.port).await;
    let hour = Duration::from_hours(1);
    (world.settings.first_poll, world.settings.longest_poll, world.settings.help_after) = (hour, hour, hour);
    world.settings.public_url = Some(PUBLIC.into());
    (agent, world)
}

fn config(message: &Value) -> &Value {
    &message["configuration"]["taskPushNotificationConfig"]
}

/// What the server does with a notification.
async fn notify(world: &World) {
    let store = world.runner();
    loop {
        let row = store.list(&BreadcrumbQuery::of_schema(TASK_SCHEMA)).await.unwrap().remove(0);
        let mut context = row.context.unwrap();
        context.insert(WOKEN_AT.into(), json!(Utc::now()));
        let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
        match store.update(row.id, row.version, changes).await {
            Err(StoreError::VersionConflict { .. }) => {}
            written => break drop(written.unwrap()),
        }
    }
}

#[tokio::test]
async fn each_message_has_a_token_of_its_own_and_the_record_its_hash() {
    let (agent, world) = scene().await;
    world.register().await;
    agent.plays(vec![sent(task("INPUT_REQUIRED", "Which year?"))], Vec::new());
    let asked = world.begin("x").await;
    let hash = async || {
        let row = world.runner().list(&BreadcrumbQuery::of_schema(TASK_SCHEMA)).await.unwrap().remove(0);
        row.context.unwrap()[PUSH_HASH].as_str().unwrap().to_owned()
    };
    let first = config(&agent.calls("SendMessage")[0]).clone();
    let path = push_path(world.tenant.owner, asked["task_id"].as_str().unwrap().parse().unwrap());
    let token = first["token"].as_str().unwrap();
    assert_eq!(first["url"], format!("{PUBLIC}{path}"));
    assert_eq!(first["authentication"], json!({"scheme": "Bearer", "credentials": token}));
    let kept = hash().await;
    assert!(token.len() == 64 && PushToken::is(token, &kept) && !kept.contains(token));
    assert!(!PushToken::is("", &kept) && !PushToken::is(&kept, &kept) && !PushToken::is(token, ""));

    agent.plays(vec![sent(task("WORKING", ""))], Vec::new());
    let answer = json!({"agent_name": "research", "message": "2025", "task_id": asked["task_id"], "wait_seconds": 0});
    world.ask("invoke_agent", answer).await.unwrap();
    let second = config(&agent.calls("SendMessage")[1]).clone();
    // The agent replaces the first one.
    assert_eq!((&second["id"], &second["url"]), (&first["id"], &first["url"]));
    let kept = hash().await;
    assert!(PushToken::is(second["token"].as_str().unwrap(), &kept) && !PushToken::is(token, &kept));
}

#[tokio::test]
async fn an_agent_that_sends_none_and_an_installation_without_a_url_need_no_token() {
    let (agent, mut world) = scene().await;
    agent.plays(vec![sent(task("COMPLETED", ""))], Vec::new());
    agent.script.lock().unwrap().card = json!({});
    world.register().await;
    world.begin("x").await;
    world.ask("unregister_agent", json!({"agent_name": "research"})).await.unwrap();
    agent.script.lock().unwrap().card = json!({"capabilities": {"pushNotifications": true}});
    world.settings.public_url = None;
    world.restart();
    world.register().await;
    world.begin("x").await;
    let messages = agent.calls("SendMessage");
    assert!(messages.len() == 2 && messages.iter().all(|message| config(message).is_null()), "{messages:?}");
    assert!(world.tasks().await.iter().all(|task| task.push_hash.is_none()));
}

#[tokio::test]
async fn an_agent_that_refuses_the_configuration_gets_the_message_without() {
    let (agent, world) = scene().await;
    world.register().await;
    for (code, message) in [(-32003, "no notifications"), (-32602, "not to this URL")] {
        let refused = json!({"error": {"code": code, "message": message}});
        agent.plays(vec![refused, sent(task("COMPLETED", "after all"))], Vec::new());
        assert_eq!(world.begin("x").await["status"], "completed");
        let messages = agent.calls("SendMessage");
        let [.., first, second] = messages.as_slice() else { panic!("{messages:?}") };
        assert!(config(first).is_object() && config(second).is_null(), "{messages:?}");
        assert_eq!(first["message"], second["message"]);
    }
    // Another refusal is one.
    agent.plays(vec![json!({"error": {"code": -32603, "message": "no luck"}})], Vec::new());
    world.failure("invoke_agent", json!({"agent_name": "research", "message": "x", "wait_seconds": 0})).await;
    assert_eq!(agent.calls("SendMessage").len(), 5);
}

#[tokio::test]
async fn a_notification_makes_the_runner_ask_at_once() {
    let (agent, world) = scene().await;
    world.register().await;
    agent.plays(vec![sent(task("WORKING", ""))], vec![got(task("WORKING", ""))]);
    let mut events = world.events().await;
    let following = world.follow();
    world.begin("x").await;
    // The first one is about progress; the second one about the end.
    notify(&world).await;
    while agent.calls("GetTask").is_empty() {
        tokio::task::yield_now().await;
    }
    agent.plays(Vec::new(), vec![got(task("COMPLETED", "pushed"))]);
    notify(&world).await;
    assert_eq!(until(&mut events, Status::Completed).await.result.unwrap().text, "pushed");
    following.stop().await;
}
