//! Push notifications of other agents: who can send one, and what it changes.

use rcrt_breadcrumb::{PUSH_HASH, PushToken, Role, WOKEN_AT, push_path};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{Answer, World, answer};

const HEADER: &str = "X-A2A-Notification-Token";

/// A task at another agent, and the token of its notifications.
struct Task {
    owner: Uuid,
    id: Uuid,
    path: String,
    token: PushToken,
}

async fn task(world: &World, status: &str) -> Task {
    let (owner, token) = (world.tenant().await, PushToken::random());
    let context = json!({"agent": "research", "status": status, PUSH_HASH: token.hash()});
    let record = json!({"title": "a task", "schema_name": "a2a.task.v1", "context": context,
        "visibility": "private", "tags": ["a2a:task"]});
    let created = world.runner(owner).create(serde_json::from_value(record).unwrap(), None).await.unwrap();
    Task { owner, id: created.id, path: push_path(owner, created.id), token }
}

impl Task {
    /// When a notification came.
    async fn woken_at(&self, world: &World) -> Option<Value> {
        world.runner(self.owner).get(self.id).await.unwrap().context.get(WOKEN_AT).cloned()
    }
}

async fn post(world: &World, path: &str, header: Option<(&str, String)>, body: String) -> Answer {
    let request =
        world.http.post(format!("{}{path}", world.base)).header("content-type", "application/json").body(body);
    answer(match header {
        Some((name, value)) => request.header(name, value),
        None => request,
    })
    .await
}

#[tokio::test]
async fn a_notification_with_the_token_of_its_task_wakes_the_follower() {
    let world = World::start().await;
    let task = task(&world, "working").await;
    let token = task.token.as_str();
    let mut before = task.woken_at(&world).await;
    assert!(before.is_none());
    // The body is worth nothing, whatever it is.
    let bodies = ["{}".to_owned(), String::new(), "not JSON".into(), "[".repeat(5 << 20)];
    let headers = [(HEADER, token.to_owned()), ("Authorization", format!("Bearer {token}"))];
    for (header, body) in headers.iter().flat_map(|header| bodies.iter().map(move |body| (header, body))) {
        let notified = post(&world, &task.path, Some((header.0, header.1.clone())), body.clone()).await;
        assert_eq!(notified.status, 204, "{}: {}", header.0, notified.text);
        let after = task.woken_at(&world).await;
        assert!(after.is_some() && after != before, "{after:?}");
        before = after;
    }
    let record = world.runner(task.owner).get(task.id).await.unwrap();
    assert_eq!((&record.context["status"], &record.context["agent"]), (&json!("working"), &json!("research")));
    world.close().await;
}

#[tokio::test]
async fn a_notification_without_the_token_of_its_task_changes_nothing() {
    let world = World::start().await;
    let (own, other) = (task(&world, "working").await, task(&world, "working").await);
    let record = json!({"title": "a note", "schema_name": "note.v1", "context": {PUSH_HASH: own.token.hash()}});
    let note = world.runner(own.owner).create(serde_json::from_value(record).unwrap(), None).await.unwrap().id;
    let right = || own.token.as_str().to_owned();
    let (id, owner) = (own.id, own.owner);
    let (_, agents) = world.agent(own.owner, &[Role::Curator]).await;
    for (path, header) in [
        (own.path.clone(), None),
        (own.path.clone(), Some((HEADER, String::new()))),
        (own.path.clone(), Some((HEADER, other.token.as_str().to_owned()))),
        (own.path.clone(), Some((HEADER, own.token.hash()))),
        (own.path.clone(), Some(("Authorization", right()))),
        (own.path.clone(), Some(("Authorization", format!("Bearer {agents}")))),
        (other.path.clone(), Some((HEADER, right()))),
        (push_path(other.owner, id), Some((HEADER, right()))),
        (push_path(Uuid::new_v4(), id), Some((HEADER, right()))),
        (push_path(owner, Uuid::new_v4()), Some((HEADER, right()))),
        // The hash is there, but it is no task.
        (push_path(owner, note), Some((HEADER, right()))),
        ("/a2a/push/x/y".to_owned(), Some((HEADER, right()))),
    ] {
        let case = format!("{path} {header:?}");
        let refused = post(&world, &path, header, "{}".into()).await;
        let problem = refused.problem(401, "unauthorized");
        // Nobody learns which of them exist.
        assert_eq!(problem["detail"], "this is not the token of a task at another agent", "{case}");
    }
    assert!(own.woken_at(&world).await.is_none() && other.woken_at(&world).await.is_none());
    world.close().await;
}

#[tokio::test]
async fn notifications_about_one_task_are_limited_and_an_ended_task_is_not_changed() {
    let world = World::start().await;
    let ended = task(&world, "completed").await;
    let notified = post(&world, &ended.path, Some((HEADER, ended.token.as_str().to_owned())), "{}".into()).await;
    assert_eq!((notified.status.as_u16(), ended.woken_at(&world).await), (204, None));

    let busy = task(&world, "working").await;
    let mut statuses = Vec::new();
    while statuses.last() != Some(&429) && statuses.len() < 10_000 {
        let answer = post(&world, &busy.path, Some((HEADER, busy.token.as_str().to_owned())), "{}".into()).await;
        statuses.push(answer.status.as_u16());
    }
    assert!(statuses.len() > 10 && statuses.last() == Some(&429), "{} answers", statuses.len());
    // Those about another task are not affected.
    let other = task(&world, "working").await;
    let answer = post(&world, &other.path, Some((HEADER, other.token.as_str().to_owned())), "{}".into()).await;
    assert_eq!(answer.status, 204);
    world.close().await;
}
