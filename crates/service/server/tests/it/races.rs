//! Fifty writers at once, on two servers with one database.

use std::collections::HashSet;

use futures::future::join_all;
use rcrt_breadcrumb::Role;
use serde_json::{Value, json};

use crate::harness::{Answer, World, answer, note};

const WRITERS: usize = 50;

/// The response to each of fifty writers. Every second one uses the second server.
async fn all_at_once(
    worlds: [&World; 2],
    ask: impl Fn(&World, usize) -> reqwest::RequestBuilder,
) -> Vec<(usize, Answer)> {
    join_all((0..WRITERS).map(|writer| {
        let request = ask(worlds[writer % 2], writer);
        async move { (writer, answer(request).await) }
    }))
    .await
}

fn of_status(answers: &[(usize, Answer)], status: u16) -> Vec<&(usize, Answer)> {
    answers.iter().filter(|(_, answer)| answer.status.as_u16() == status).collect()
}

#[tokio::test]
async fn one_of_fifty_updates_of_a_version_wins() {
    const ROUNDS: i64 = 6;
    let world = World::start().await;
    let second = world.beside().await;
    let token = world.token(&[Role::Emitter]).await;
    let id = world.create(&token, note("contended")).await;
    let path = format!("/breadcrumbs/{id}");
    let mut written = vec![json!({"text": "contended"})];
    for version in 1..=ROUNDS {
        let answers = all_at_once([&world, &second], |world, writer| {
            let changes = json!({"context": {"version": version, "writer": writer}});
            world.request("PATCH", &path, &token).header("If-Match", format!("\"{version}\"")).json(&changes)
        })
        .await;
        let won = of_status(&answers, 200);
        assert_eq!(won.len(), 1, "version {version}");
        let (writer, winner) = won[0];
        assert_eq!(winner.json()["version"], version + 1);
        assert_eq!(winner.header("etag"), format!("\"{}\"", version + 1));
        written.insert(0, json!({"version": version, "writer": writer}));
        let lost = of_status(&answers, 412);
        assert_eq!(lost.len(), WRITERS - 1, "version {version}");
        for (_, loser) in lost {
            let conflict = loser.problem(412, "version_conflict");
            assert_eq!((&conflict["expected"], &conflict["actual"]), (&json!(version), &json!(version + 1)));
        }
    }
    let history = second.get(&format!("{path}/history"), &token).await.ok().json();
    let values = |field: &str| history.as_array().unwrap().iter().map(|one| one[field].clone()).collect::<Vec<Value>>();
    assert_eq!(values("version"), (1..=ROUNDS + 1).rev().map(Value::from).collect::<Vec<_>>());
    assert_eq!(values("context"), written);
    second.close().await;
    world.close().await;
}

#[tokio::test]
async fn a_deletion_and_an_update_of_one_version_never_both_succeed() {
    let world = World::start().await;
    let second = world.beside().await;
    let token = world.token(&[Role::Curator]).await;
    for round in 0..8 {
        let id = world.create(&token, note("contended")).await;
        let path = format!("/breadcrumbs/{id}");
        let answers = all_at_once([&world, &second], |world, writer| {
            // Deletions go first in every second round.
            let is_deletion = (writer / 2 + round) % 2 == 0;
            let request = world.request(if is_deletion { "DELETE" } else { "PATCH" }, &path, &token);
            let request = request.header("If-Match", "1");
            if is_deletion { request } else { request.json(&json!({"title": "changed"})) }
        })
        .await;
        let won = of_status(&answers, 200);
        assert_eq!(won.len(), 1, "round {round}");
        let was_changed = won[0].1.json().get("version").is_some();
        let refused = of_status(&answers, if was_changed { 412 } else { 404 });
        assert_eq!(refused.len(), WRITERS - 1, "round {round}");
        let now = world.get(&format!("{path}/full"), &token).await;
        if was_changed {
            assert_eq!(now.ok().json()["version"], 2);
        } else {
            now.problem(404, "not_found");
        }
    }
    second.close().await;
    world.close().await;
}

#[tokio::test]
async fn fifty_creates_with_one_key_are_one_record() {
    let world = World::start().await;
    let second = world.beside().await;
    let token = world.token(&[Role::Emitter, Role::Subscriber]).await;
    for round in 0..4 {
        let title = format!("round {round}");
        let answers = all_at_once([&world, &second], |world, _| {
            world.request("POST", "/breadcrumbs", &token).header("Idempotency-Key", &title).json(&note(&title))
        })
        .await;
        assert_eq!(of_status(&answers, 201).len(), WRITERS);
        let values =
            |field: &str| answers.iter().map(|(_, answer)| answer.json()[field].to_string()).collect::<HashSet<_>>();
        assert_eq!((values("id").len(), values("version").len()), (1, 1));
        for (_, answer) in &answers {
            assert_eq!(answer.json()["replayed"] == json!(true), answer.header("idempotency-replayed") == "true");
        }
        let first = answers.iter().filter(|(_, answer)| answer.header("idempotency-replayed").is_empty()).count();
        assert_eq!(first, 1, "one of them wrote it");
    }
    let listed = world.get("/breadcrumbs?tag=note", &token).await.ok().json();
    assert_eq!(listed.as_array().unwrap().len(), 4);
    second.close().await;
    world.close().await;
}

#[tokio::test]
async fn one_of_two_bodies_with_the_same_key_is_refused() {
    let world = World::start().await;
    let second = world.beside().await;
    let token = world.token(&[Role::Emitter]).await;
    let says_one = |writer: usize| (writer / 2).is_multiple_of(2);
    let answers = all_at_once([&world, &second], |world, writer| {
        let record = note(if says_one(writer) { "one" } else { "other" });
        world.request("POST", "/breadcrumbs", &token).header("Idempotency-Key", "the key").json(&record)
    })
    .await;
    let first = of_status(&answers, 201)[0];
    for (writer, answer) in &answers {
        if says_one(*writer) == says_one(first.0) {
            assert_eq!((answer.status.as_u16(), &answer.json()["id"]), (201, &first.1.json()["id"]));
        } else {
            answer.problem(422, "idempotency_mismatch");
        }
    }
    assert_eq!(world.get("/breadcrumbs", &token).await.ok().json().as_array().unwrap().len(), 1);
    second.close().await;
    world.close().await;
}

#[tokio::test]
async fn one_of_fifty_claims_and_one_of_fifty_responses_wins() {
    let world = World::start().await;
    let second = world.beside().await;
    let token = world.token(&[Role::Curator, Role::Runner]).await;
    let request = world.create(&token, crate::harness::request_for("echo")).await;
    let claims = all_at_once([&world, &second], |world, _| {
        let claim = json!({"runner_id": uuid::Uuid::new_v4(), "limit": 5, "lease_ms": 60_000});
        world.request("POST", "/calls/claim", &token).json(&claim)
    })
    .await;
    let got: Vec<Value> =
        claims.iter().map(|(_, answer)| answer.json()).filter(|claims| claims != &json!([])).collect();
    assert_eq!(got.len(), 1);
    let lease = got[0][0]["lease"].clone();
    world.post("/calls/start", &token, json!({"lease": lease, "max_attempts": 1})).await.ok();
    let answers = all_at_once([&world, &second], |world, _| {
        world
            .request("POST", "/calls/complete", &token)
            .json(&json!({"lease": lease, "response": crate::harness::response()}))
    })
    .await;
    assert!(answers.iter().all(|(_, answer)| matches!(answer.status.as_u16(), 200 | 409)));
    let values: HashSet<&str> = of_status(&answers, 200).iter().map(|(_, answer)| answer.text.as_str()).collect();
    assert_eq!(values.len(), 1, "{values:?}");
    let responses = world.get("/breadcrumbs?schema_name=tool.response.v1", &token).await.ok().json();
    assert_eq!(responses.as_array().unwrap().len(), 1);
    assert_eq!(world.get(&format!("/calls/{request}"), &token).await.ok().json()["state"], "finished");
    second.close().await;
    world.close().await;
}
