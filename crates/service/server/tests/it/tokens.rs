//! The list of tokens: ids, last uses, and their revocation one by one.

use rcrt_breadcrumb::Role;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::harness::{World, key};

fn jti(token: &str) -> Uuid {
    key().verify(token).unwrap().id.jti
}

async fn listed(world: &World, path: &str, token: &str) -> Vec<Value> {
    world.get(path, token).await.ok().json()["tokens"].as_array().unwrap().clone()
}

fn find(tokens: &[Value], id: Uuid) -> Option<&Value> {
    tokens.iter().find(|token| token["id"] == json!(id))
}

#[tokio::test]
async fn tokens_are_listed_with_their_last_use_and_revoked_by_id() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let made = world.post("/agents", &curator, json!({"name": "bot", "roles": ["subscriber"]})).await.ok().json();
    let asked = json!({"owner_id": tenant, "agent_id": made["id"], "agent_key": made["agent_key"], "ttl_sec": 600});
    let issue = async || {
        let given = world.post("/auth/token", "", asked.clone()).await.ok().json();
        let token = given["token"].as_str().unwrap().to_owned();
        assert_eq!(given["id"], json!(jti(&token)));
        token
    };
    let (first, second) = (issue().await, issue().await);

    let tokens = listed(&world, "/auth/tokens", &curator).await;
    let ids: Vec<&Value> = tokens.iter().map(|token| &token["id"]).collect();
    assert_eq!(ids.len(), 3, "with the curator's own, which is listed from its first use: {tokens:?}");
    let one = find(&tokens, jti(&first)).unwrap();
    assert_eq!(
        (&one["agent_name"], &one["roles"], &one["revoked"]),
        (&json!("bot"), &json!(["subscriber"]), &json!(false))
    );
    assert!(one.get("last_used_at").is_none() && one["current"] == json!(false));
    assert!(one["issued_at"].as_str() < one["expires_at"].as_str());
    assert_eq!(find(&tokens, jti(&curator)).unwrap()["current"], json!(true));

    world.get("/breadcrumbs", &first).await.ok();
    let tokens = listed(&world, "/auth/tokens", &curator).await;
    let used = find(&tokens, jti(&first)).unwrap()["last_used_at"].clone();
    assert!(used.is_string() && find(&tokens, jti(&second)).unwrap().get("last_used_at").is_none());
    // Within a minute no other use is written.
    world.get("/breadcrumbs", &first).await.ok();
    let tokens = listed(&world, "/auth/tokens", &curator).await;
    assert_eq!(find(&tokens, jti(&first)).unwrap()["last_used_at"], used);

    // By its id alone.
    let done = world.post("/auth/revoke", &curator, json!({"jti": jti(&first)})).await.ok().json();
    assert_eq!(done["agent_id"], made["id"]);
    world.get("/breadcrumbs", &first).await.problem(401, "unauthorized");
    world.get("/breadcrumbs", &second).await.ok();
    let tokens = listed(&world, "/auth/tokens", &curator).await;
    assert_eq!(find(&tokens, jti(&first)).unwrap()["revoked"], json!(true));
    assert_eq!(find(&tokens, jti(&second)).unwrap()["revoked"], json!(false));
    world.close().await;
}

#[tokio::test]
async fn a_list_waits_for_tokens_that_are_being_written() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (mut lock, mut watch) = (world.admin().await, world.admin().await);
    sqlx::query("BEGIN").execute(&mut lock).await.unwrap();
    sqlx::query("LOCK TABLE tokens IN EXCLUSIVE MODE").execute(&mut lock).await.unwrap();

    let first = listed(&world, "/auth/tokens", &curator);
    let second = async {
        while !is_write_blocked(&mut watch).await {}
        let list = listed(&world, "/auth/tokens", &curator);
        let release = async {
            // Time for a list that does not wait.
            for _ in 0..20 {
                world.get("/health", "").await.ok();
            }
            sqlx::query("COMMIT").execute(&mut lock).await.unwrap();
        };
        tokio::join!(list, release).0
    };
    let (first, second) = tokio::join!(first, second);
    assert!(find(&first, jti(&curator)).is_some() && find(&second, jti(&curator)).is_some(), "{second:?}");
    world.close().await;
}

/// Whether a write of tokens waits for a lock.
async fn is_write_blocked(watch: &mut sqlx::PgConnection) -> bool {
    let waiting = "SELECT EXISTS (SELECT FROM pg_locks WHERE NOT granted AND relation = 'tokens'::regclass
        AND database = (SELECT oid FROM pg_database WHERE datname = current_database()))";
    sqlx::query_scalar(waiting).fetch_one(watch).await.unwrap()
}

#[tokio::test]
async fn an_agent_lists_its_own_tokens_and_a_curator_page_by_page() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let (agent, token) = world.agent(tenant, &[Role::Caller]).await;
    let (other, others_token) = world.agent(tenant, &[Role::Emitter]).await;
    world.get("/breadcrumbs", &others_token).await.ok();
    let own = listed(&world, "/auth/tokens", &token).await;
    assert_eq!(own.len(), 1);
    assert_eq!((&own[0]["id"], &own[0]["agent_id"]), (&json!(jti(&token)), &json!(agent.id)));
    world.get(&format!("/auth/tokens?agent_id={}", other.id), &token).await.problem(403, "forbidden");
    // To an agent, another agent's token does not exist.
    world.post("/auth/revoke", &token, json!({"jti": jti(&others_token)})).await.problem(404, "not_found");
    world.get("/breadcrumbs", &others_token).await.ok();

    let of_other = listed(&world, &format!("/auth/tokens?agent_id={}", other.id), &curator).await;
    assert_eq!(of_other.len(), 1);
    let mut seen = Vec::new();
    let mut path = "/auth/tokens?limit=2".to_owned();
    loop {
        let page = world.get(&path, &curator).await.ok().json();
        seen.extend(page["tokens"].as_array().unwrap().iter().map(|token| token["id"].clone()));
        let Some(next) = page.get("next") else { break };
        path = format!("/auth/tokens?limit=2&before={next}");
    }
    let mut expected = [&curator, &token, &others_token].map(|token| json!(jti(token))).to_vec();
    expected.sort_by_key(Value::to_string);
    seen.sort_by_key(Value::to_string);
    assert_eq!(seen, expected);
    world.get("/auth/tokens?limit=0", &curator).await.violation("limit");
    let elsewhere = world.token(&[Role::Curator]).await;
    assert_eq!(listed(&world, "/auth/tokens", &elsewhere).await.len(), 1, "only its own");
    world.close().await;
}

#[tokio::test]
async fn uses_are_written_at_the_shutdown_and_survive_it() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let beside = world.beside().await;
    beside.get("/breadcrumbs", &curator).await.ok();
    beside.close().await;
    let used = rcrt_breadcrumb::TokenQuery { limit: 10, ..rcrt_breadcrumb::TokenQuery::default() };
    let tokens = rcrt_breadcrumb::Tenancy::tokens(&*world.store, tenant, &used).await.unwrap();
    assert!(tokens.len() == 1 && tokens[0].last_used_at.is_some(), "{tokens:?}");
    world.close().await;
}

#[tokio::test]
async fn a_rotated_key_replaces_the_old_one_and_keeps_tokens() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, curator) = world.agent(tenant, &[Role::Curator]).await;
    let made = world.post("/agents", &curator, json!({"name": "bot", "roles": ["subscriber"]})).await.ok().json();
    let id = made["id"].as_str().unwrap();
    let ask = |key: &Value| {
        let asked = json!({"owner_id": tenant, "agent_id": id, "agent_key": key});
        let world = &world;
        async move { world.post("/auth/token", "", asked).await }
    };
    let token = ask(&made["agent_key"]).await.ok().json()["token"].as_str().unwrap().to_owned();
    let rotated = world.post(&format!("/agents/{id}/rotate-key"), &curator, json!({})).await.ok();
    assert_eq!(rotated.header("cache-control"), "no-store");
    let rotated = rotated.json();
    assert_eq!((&rotated["id"], &rotated["name"]), (&made["id"], &json!("bot")));
    assert_ne!(rotated["agent_key"], made["agent_key"]);
    ask(&made["agent_key"]).await.problem(401, "unauthorized");
    ask(&rotated["agent_key"]).await.ok();
    world.get("/breadcrumbs", &token).await.ok();
    world.post(&format!("/agents/{}/rotate-key", Uuid::new_v4()), &curator, json!({})).await.problem(404, "not_found");
    world.close().await;
}
