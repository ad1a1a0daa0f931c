use rcrt_breadcrumb::Role;
use rcrt_server::AuthMode;
use serde_json::{Value, json};

use crate::harness::{World, answer, note};

#[tokio::test]
async fn a_record_is_created_updated_and_deleted() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    let created = world.post("/breadcrumbs", &token, note("first")).await;
    assert_eq!(created.status, 201);
    let id = created.json()["id"].as_str().unwrap().to_owned();
    assert_eq!(created.header("location"), format!("/breadcrumbs/{id}"));
    assert_eq!(created.header("etag"), "\"1\"");

    let short = world.get(&format!("/breadcrumbs/{id}"), &token).await.ok();
    assert_eq!(short.header("etag"), "\"1\"");
    let short = short.json();
    assert_eq!((&short["title"], &short["context"]), (&json!("first"), &json!({"text": "first"})));
    assert!(short.get("owner_id").is_none() && short.get("created_by").is_none() && short.get("ttl").is_none());
    let full = world.get(&format!("/breadcrumbs/{id}/full"), &token).await.ok().json();
    assert!(full["owner_id"].is_string() && full["created_by"].is_string() && full["size_bytes"].is_number());

    for (if_match, version) in [("\"1\"", 2), ("2", 3), ("W/\"3\"", 4)] {
        let sent = world.request("PATCH", &format!("/breadcrumbs/{id}"), &token).header("If-Match", if_match);
        let changed = answer(sent.json(&json!({"context": {"seen": version}}))).await.ok();
        assert_eq!(changed.header("etag"), format!("\"{version}\""));
        let changed = changed.json();
        assert_eq!((&changed["id"], &changed["version"]), (&json!(id), &json!(version)));
        assert_eq!((&changed["title"], &changed["context"]), (&json!("first"), &json!({"seen": version})));
    }
    let history = world.get(&format!("/breadcrumbs/{id}/history"), &token).await.ok().json();
    let versions: Vec<i64> = history.as_array().unwrap().iter().map(|one| one["version"].as_i64().unwrap()).collect();
    assert_eq!(versions, [4, 3, 2, 1]);
    assert_eq!(history[3]["context"], json!({"text": "first"}));

    let delete = |if_match: &'static str| {
        answer(world.request("DELETE", &format!("/breadcrumbs/{id}"), &token).header("If-Match", if_match))
    };
    delete("\"1\"").await.problem(412, "version_conflict");
    assert_eq!(delete("\"4\"").await.ok().json(), json!({"ok": true}));
    delete("*").await.problem(404, "not_found");
    world.get(&format!("/breadcrumbs/{id}"), &token).await.problem(404, "not_found");
    world.close().await;
}

#[tokio::test]
async fn what_is_ignored_in_a_tool_is_a_warning_of_the_write() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    let tool = json!({"name": "old", "capabilities": {}, "limits": {"timeout_ms": 86_400_000}});
    let record = json!({"title": "Old", "schema_name": "tool.code.v1", "tags": ["tool"], "context": tool});
    let created = world.post("/breadcrumbs", &token, record.clone()).await.ok().json();
    let fields = |answer: &Value| {
        let warnings = answer["warnings"].as_array().unwrap().iter();
        warnings.map(|warning| warning["field"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(fields(&created), ["context.capabilities", "context.limits.timeout_ms"], "{created}");
    let path = format!("/breadcrumbs/{}", created["id"].as_str().unwrap());
    let sent =
        world.request("PATCH", &path, &token).header("If-Match", "1").json(&json!({"context": record["context"]}));
    let changed = answer(sent).await.ok().json();
    assert_eq!(fields(&changed), fields(&created), "{changed}");
    assert!(world.get(&format!("{path}/full"), &token).await.ok().json().get("warnings").is_none());
    world.close().await;
}

#[tokio::test]
async fn the_same_idempotency_key_gets_the_first_response_again() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    let send = |body: Value| {
        answer(world.request("POST", "/breadcrumbs", &token).header("Idempotency-Key", "order-1").json(&body))
    };
    let first = send(note("once")).await.ok();
    assert_eq!(first.header("idempotency-replayed"), "");
    let again = send(note("once")).await;
    assert_eq!((again.status.as_u16(), again.header("idempotency-replayed")), (201, "true"));
    assert_eq!((&again.json()["id"], again.header("location")), (&first.json()["id"], first.header("location")));
    send(note("twice")).await.problem(422, "idempotency_mismatch");
    assert_eq!(world.get("/breadcrumbs", &token).await.json().as_array().unwrap().len(), 1);
    world.close().await;
}

#[tokio::test]
async fn lists_select_by_tag_schema_and_context() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    for (title, tags, size) in [("one", json!(["a"]), 1), ("two", json!(["a", "b"]), 2), ("three", json!(["c"]), 3)] {
        world
            .create(&token, json!({"title": title, "tags": tags, "schema_name": "s.v1", "context": {"size": size}}))
            .await;
    }
    world.create(&token, note("other")).await;
    let titles = async |query: &str| -> Vec<String> {
        let list = world.get(&format!("/breadcrumbs{query}"), &token).await.ok().json();
        list.as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(titles("").await, ["other", "three", "two", "one"]);
    assert_eq!(titles("?tag=a").await, ["two", "one"]);
    assert_eq!(titles("?tag=a&tag=b").await, ["two"]);
    assert_eq!(titles("?any_tag=b&any_tag=c").await, ["three", "two"]);
    assert_eq!(titles("?schema_name=s.v1&limit=1&offset=1").await, ["two"]);
    let bigger = "?schema_name=s.v1&context_match=%5B%7B%22path%22:%22$.size%22,%22op%22:%22gt%22,%22value%22:1%7D%5D";
    assert_eq!(titles(bigger).await, ["three", "two"]);
    let plain = world.get("/breadcrumbs?tag=b", &token).await.json();
    assert!(plain[0].get("context").is_none());
    let with = world.get("/breadcrumbs?tag=b&include_context=true", &token).await.json();
    assert_eq!(with[0]["context"], json!({"size": 2}));
    let found =
        world.get("/breadcrumbs/search?q=three&nn=1&schema_name=s.v1&include_context=true", &token).await.ok().json();
    assert_eq!((&found[0]["title"], &found[0]["context"]), (&json!("three"), &json!({"size": 3})));
    world.close().await;
}

#[tokio::test]
async fn a_query_accepts_the_field_names_of_a_selector() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    for (title, tags) in [("both", json!(["a", "b"])), ("one", json!(["a"])), ("other", json!(["c"]))] {
        world.create(&token, json!({"title": title, "tags": tags, "context": {"text": "whales"}})).await;
    }
    for (query, expected) in [
        ("all_tags=a&all_tags=b", vec!["both"]),
        ("all_tags=a&tag=b", vec!["both"]),
        ("any_tags=b&any_tags=c", vec!["both", "other"]),
        ("any_tags=b&any_tag=c&all_tags=a", vec!["both"]),
    ] {
        for path in [format!("/breadcrumbs?{query}"), format!("/breadcrumbs/search?q=whales&{query}")] {
            let found = world.get(&path, &token).await.ok().json();
            let mut titles: Vec<&str> =
                found.as_array().unwrap().iter().map(|one| one["title"].as_str().unwrap()).collect();
            titles.sort_unstable();
            assert_eq!(titles, expected, "{path}");
        }
    }
    world.close().await;
}

#[tokio::test]
async fn a_limit_above_the_maximum_or_given_twice_is_refused() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    for (path, field, says) in [
        ("/breadcrumbs?limit=1001", "limit", "a number from 1 to 1000"),
        ("/breadcrumbs?nn=0", "nn", "a number from 1 to 1000"),
        ("/breadcrumbs/search?q=note&nn=101", "nn", "a number from 1 to 100"),
        ("/breadcrumbs/search?q=note&limit=1000", "limit", "a number from 1 to 100"),
        ("/breadcrumbs?nn=2&limit=1", "nn", "means the same as limit"),
        ("/breadcrumbs/search?q=note&nn=2&limit=2", "limit", "means the same as nn"),
    ] {
        let found = world.get(path, &token).await.violation(field);
        assert!(found.contains(says), "{path}: {found}");
    }
    for path in ["/breadcrumbs?limit=1000", "/breadcrumbs?nn=2", "/breadcrumbs/search?q=note&limit=100"] {
        assert_eq!(world.get(path, &token).await.ok().header("limit-applied"), "", "{path}");
    }
    world.close().await;
}

#[tokio::test]
async fn a_limit_of_rcrts_clients_that_is_too_large_is_reduced() {
    let world = World::start_for_rcrt(AuthMode::Keys).await;
    let token = world.token(&Role::ALL).await;
    for title in ["one", "two", "three"] {
        world.create(&token, note(title)).await;
    }
    let asked = async |path: &str| {
        let answer = world.get(path, &token).await.ok();
        let applied = answer.header("limit-applied").to_owned();
        (answer.json().as_array().unwrap().len(), applied)
    };
    for (path, found, applied) in [
        ("/breadcrumbs?limit=2", 2, ""),
        ("/breadcrumbs?nn=2", 2, ""),
        ("/breadcrumbs?nn=2&limit=1", 1, ""),
        ("/breadcrumbs?limit=1000", 3, ""),
        ("/breadcrumbs?limit=1001", 3, "1000"),
        ("/breadcrumbs?nn=10000", 3, "1000"),
        ("/breadcrumbs?limit=2147483647", 3, "1000"),
        ("/breadcrumbs/search?q=note&nn=2", 2, ""),
        ("/breadcrumbs/search?q=note&limit=2", 2, ""),
        ("/breadcrumbs/search?q=note&nn=100", 3, ""),
        ("/breadcrumbs/search?q=note&nn=10000", 3, "100"),
    ] {
        assert_eq!(asked(path).await, (found, applied.to_owned()), "{path}");
    }
    world.close().await;
}
