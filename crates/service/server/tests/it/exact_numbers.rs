//! Numbers that a value cannot hold are refused, and not rounded.

use rcrt_breadcrumb::Role;
use serde_json::json;

use crate::harness::{World, answer};

const BIG: &str = "123456789012345678901234567890";

#[tokio::test]
async fn an_integer_beyond_64_bits_is_refused_with_its_path() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter, Role::Curator]).await;
    let send = |method: &'static str, path: String, body: String| {
        let request = world.request(method, &path, &token).header("If-Match", "1");
        answer(request.header("content-type", "application/json").body(body))
    };
    let record = format!(r#"{{"title": "t", "context": {{"list": [1, {{"n": {BIG}}}]}}}}"#);
    let refused = send("POST", "/breadcrumbs".into(), record).await;
    let message = refused.violation("context.list[1].n");
    assert!(message.contains(BIG) && message.contains("as a string"), "{message}");
    let refused = send("POST", "/tools/echo/invoke".into(), format!(r#"{{"input": {{"n": -{BIG}}}}}"#)).await;
    refused.violation("input.n");

    let kept = json!({"most": u64::MAX, "least": i64::MIN, "float": 1.5e300, "text": BIG});
    let created = world.post("/breadcrumbs", &token, json!({"title": "t", "context": kept})).await.json();
    let path = format!("/breadcrumbs/{}", created["id"].as_str().unwrap());
    assert_eq!(world.get(&path, &token).await.json()["context"], kept);
    send("PATCH", path, format!(r#"{{"context": {{"n": {BIG}}}}}"#)).await.violation("context.n");

    // In texts with JSON too.
    let condition = format!(r#"context_match=[{{"path":"$.n","op":"eq","value":{BIG}}}]"#);
    for path in ["/breadcrumbs?", "/breadcrumbs/search?q=t&"] {
        world.get(&format!("{path}{condition}"), &token).await.violation("context_match[0].value");
    }
}

#[tokio::test]
async fn head_uses_up_no_read() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter, Role::Curator]).await;
    let record = json!({"title": "t", "context": {}, "ttl_type": "usage", "ttl_config": {"max_reads": 1}});
    let id = world.create(&token, record).await;
    for path in [format!("/breadcrumbs/{id}"), format!("/breadcrumbs/{id}/full")] {
        let head = answer(world.request("HEAD", &path, &token)).await;
        assert_eq!(head.status, 200);
        assert_eq!(head.header("etag"), "\"1\"");
    }
    let path = format!("/breadcrumbs/{id}");
    assert_eq!(world.get(&path, &token).await.status, 200);
    assert_eq!(answer(world.request("HEAD", &path, &token)).await.status, 404);
    assert_eq!(world.get(&path, &token).await.status, 404);
}
