//! Bad input on every route that has a body, and the refusals.

use rcrt_breadcrumb::Role;
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::harness::{World, answer, note};

/// Every route that accepts a body.
fn routes() -> Vec<(&'static str, String)> {
    let id = uuid::Uuid::new_v4();
    vec![
        ("POST", "/auth/token".into()),
        ("POST", "/auth/sign-in".into()),
        ("POST", "/breadcrumbs".into()),
        ("PATCH", format!("/breadcrumbs/{id}")),
        ("POST", "/calls/claim".into()),
        ("POST", "/calls/start".into()),
        ("POST", "/calls/heartbeat".into()),
        ("POST", "/calls/complete".into()),
        ("POST", "/calls/release".into()),
        ("POST", "/secrets".into()),
        ("PUT", format!("/secrets/{id}")),
        ("POST", format!("/secrets/{id}/decrypt")),
        ("POST", format!("/secrets/{id}/grants")),
        ("POST", "/agents".into()),
    ]
}

#[tokio::test]
async fn every_body_is_validated() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    for (method, path) in routes() {
        let send = |body: &'static str, media: &'static str| {
            answer(
                world.request(method, &path, &token).header("If-Match", "1").header("content-type", media).body(body),
            )
        };
        let problem = send("{\n  : 1}", "application/json").await.problem(400, "malformed_json");
        assert_eq!((&problem["line"], &problem["column"]), (&json!(2), &json!(3)), "{method} {path}: {problem}");
        send("", "application/json").await.problem(400, "malformed_json");
        let answer = send("{\"nonsense\": 1}", "application/json").await;
        assert!(answer.violation("nonsense").starts_with("is not a known field"), "{method} {path}: {}", answer.text);
        send("[]", "application/json").await.violation("");
        send("{}", "text/plain").await.problem(415, "unsupported_media_type");
        send("{\"\\ud800\": 1}", "application/json").await.problem(400, "malformed_json");
    }
    world.close().await;
}

#[tokio::test]
async fn invalid_fields_are_named() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let post = |body: Value| world.post("/breadcrumbs", &token, body);
    assert_eq!(post(json!({"context": {}})).await.violation("title"), "is required");
    post(json!({"title": 5})).await.violation("title");
    post(json!({"title": "x", "tags": ["a", 5]})).await.violation("tags[1]");
    post(json!({"title": "x", "visibility": "secret"})).await.violation("visibility");
    for ttl in [json!("tomorrow"), json!("2h"), json!(3600)] {
        let found = post(json!({"title": "x", "ttl": ttl})).await.violation("ttl");
        assert!(found.starts_with("must be a time such as") && found.contains("ttl_config"), "{ttl}: {found}");
    }
    assert!(post(json!({"title": "a\u{0}b"})).await.violation("title").contains("NUL"));
    assert!(
        post(json!({"title": "x", "context": {"a": {"b": "\u{0}"}}})).await.violation("context.a.b").contains("NUL")
    );
    post(json!({"title": "x", "schema_name": "tool.request.v1"})).await.violation("context.tool");
    let query = async |name: &str| world.get(&format!("/breadcrumbs?{name}=3"), &token).await.violation(name);
    assert_eq!(query("limi").await, "is not a parameter of this path; did you mean limit?");
    assert!(query("colour").await.starts_with("is not a parameter of this path; expected one of tag, any_tag, "));
    // All errors in one response.
    let several = post(json!({"title": "", "tags": [""], "ttl_type": "datetime"})).await.problem(400, "invalid");
    assert_eq!(several["violations"].as_array().unwrap().len(), 3, "{several}");
    let lease = json!({"request": uuid::Uuid::new_v4(), "fence": "x"});
    world.post("/calls/start", &token, json!({"lease": lease, "max_attempts": 1})).await.violation("lease.fence");
    world
        .post("/calls/claim", &token, json!({"runner_id": uuid::Uuid::nil(), "limit": 0, "lease_ms": 1}))
        .await
        .violation("limit");
    world.post("/calls/heartbeat", &token, json!({"leases": [], "lease_ms": 1})).await.violation("lease_ms");
    world.post("/secrets", &token, json!({"name": "no spaces", "value": ""})).await.violation("value");
    let secret = |more: Value| {
        let mut body = json!({"name": "KEY", "value": "a long value"});
        body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.post("/secrets", &token, body)
    };
    secret(json!({"value": "seven b"})).await.violation("value");
    assert!(
        secret(json!({"hosts": ["a.example.com", "https://b.example.com"]}))
            .await
            .violation("hosts[1]")
            .contains("scheme")
    );
    secret(json!({"hosts": "a.example.com"})).await.violation("hosts");
    secret(json!({"readable": "yes"})).await.violation("readable");
    let id = uuid::Uuid::new_v4();
    let put = |body: Value| answer(world.request("PUT", &format!("/secrets/{id}"), &token).json(&body));
    assert!(put(json!({})).await.violation("").contains("at least one of"));
    put(json!({"value": null})).await.violation("");
    put(json!({"value": "", "readable": true})).await.violation("value");
    put(json!({"hosts": [""]})).await.violation("hosts[0]");
    put(json!({"name": "OTHER"})).await.violation("name");
    let grant = async |body: Value| world.post(&format!("/secrets/{id}/grants"), &token, body).await;
    grant(json!({})).await.violation("tool_id");
    grant(json!({"tool_id": id, "tool": "both"})).await.violation("tool_id");
    grant(json!({"tool_id": "weather"})).await.violation("tool_id");
    grant(json!({"tool": "nobody's"})).await.violation("tool");
    world.post("/agents", &token, json!({"name": "", "roles": []})).await.violation("roles");
    world.post("/agents", &token, json!({"name": "a", "roles": ["king"]})).await.violation("roles[0]");
    world.close().await;
}

#[tokio::test]
async fn queries_and_paths_are_validated() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    for (path, field) in [
        ("/breadcrumbs?tags=x", "tags"),
        ("/breadcrumbs?limit=0", "limit"),
        ("/breadcrumbs?nn=0", "nn"),
        ("/breadcrumbs?nn=", "nn"),
        ("/breadcrumbs?limit=%2B5", "limit"),
        ("/breadcrumbs?limit=5&nn=x", "nn"),
        ("/breadcrumbs?limit=many", "limit"),
        ("/breadcrumbs?limit=1&limit=2", "limit"),
        ("/breadcrumbs?offset=-1", "offset"),
        ("/breadcrumbs?include_context=perhaps", "include_context"),
        ("/breadcrumbs?context_match=5", "context_match"),
        ("/breadcrumbs?context_match=%5B%7B%22path%22%3A%22%24.a%22%2C%22op%22%3A%22like%22%7D%5D", "context_match"),
        ("/breadcrumbs?tag=", "tag[0]"),
        ("/breadcrumbs?schema_name=a%00b", "schema_name"),
        ("/breadcrumbs/search", "q"),
        ("/breadcrumbs/search?q=%00", "q"),
        ("/breadcrumbs/search?q=x&nn=0", "nn"),
        ("/breadcrumbs/search?q=x&limit=-1", "limit"),
        ("/breadcrumbs/search?qvec=", "qvec"),
        ("/breadcrumbs/search?qvec=[1,two]", "qvec"),
        ("/breadcrumbs/search?qvec=[1,NaN]", "qvec[1]"),
        ("/breadcrumbs/search?qvec=0,0", "qvec"),
        // Valid in general, but search by meaning is off in these tests.
        ("/breadcrumbs/search?qvec=0.5,1", "qvec"),
        ("/breadcrumbs/search?q=x&mode=vector", "mode"),
        ("/breadcrumbs/search?q=x&mode=sideways", "mode"),
        ("/breadcrumbs/search?mode=text&qvec=1", "q"),
        ("/breadcrumbs/not-an-id", "id"),
        ("/breadcrumbs/%ff", "id"),
        ("/calls/7", "id"),
        ("/secrets?x=1", "x"),
        ("/events/stream?last_event_id=new", "last_event_id"),
        ("/events/stream?last_event_id=-1", "last_event_id"),
        ("/events/stream?since=1", "since"),
    ] {
        world.get(path, &token).await.violation(field);
    }
    for (path, field) in [
        (format!("/secrets/x/grants/{}", uuid::Uuid::nil()), "id"),
        (format!("/secrets/{}/grants/x", uuid::Uuid::nil()), "tool_id"),
    ] {
        answer(world.request("DELETE", &path, &token)).await.violation(field);
    }
    world.get("/nowhere", &token).await.problem(404, "unknown_path");
    world.get("/breadcrumbs/", &token).await.problem(404, "unknown_path");
    let answer = answer(world.request("PUT", "/breadcrumbs", &token)).await;
    answer.problem(405, "method_not_allowed");
    let mut allowed: Vec<&str> = answer.header("allow").split(',').collect();
    allowed.sort_unstable();
    assert_eq!(allowed, ["GET", "HEAD", "POST"]);
    world.close().await;
}

#[tokio::test]
async fn headers_are_validated() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let id = world.create(&token, note("a")).await;
    let patch = |if_match: &'static str| {
        answer(
            world.request("PATCH", &format!("/breadcrumbs/{id}"), &token).header("If-Match", if_match).json(&json!({})),
        )
    };
    for wrong in ["abc", "\"1\", \"2\"", "*", "-1", ""] {
        patch(wrong).await.violation("If-Match");
    }
    let none = answer(world.request("PATCH", &format!("/breadcrumbs/{id}"), &token).json(&json!({}))).await;
    none.problem(428, "precondition_required");
    let conflict = patch("\"7\"").await.problem(412, "version_conflict");
    assert_eq!((&conflict["expected"], &conflict["actual"]), (&json!(7), &json!(1)));
    let key = "k".repeat(256);
    let long =
        answer(world.request("POST", "/breadcrumbs", &token).header("Idempotency-Key", key).json(&note("b"))).await;
    long.violation("Idempotency-Key");
    let zipped = world.request("POST", "/breadcrumbs", &token).header("content-encoding", "gzip").json(&note("b"));
    answer(zipped).await.problem(415, "unsupported_media_type");
    world.close().await;
}

#[tokio::test]
async fn a_body_of_twenty_megabytes_gets_a_response() {
    let world = World::start().await;
    let token = world.token(&Role::ALL).await;
    let big = json!({"title": "big", "context": {"text": "x".repeat(20 * 1024 * 1024)}}).to_string();
    let chunked = || reqwest::Body::wrap_stream(futures::stream::iter([Ok::<_, std::io::Error>(big.clone())]));
    for body in [reqwest::Body::from(big.clone()), chunked()] {
        let sent = world.request("POST", "/breadcrumbs", &token).header("content-type", "application/json").body(body);
        let problem = answer(sent).await.problem(413, "too_large");
        assert_eq!(problem["limit"], json!(rcrt_server::MAX_BODY_BYTES));
    }
    // A refusal before the body is read does not reset the connection either.
    for _ in 0..3 {
        let sent = world.request("POST", "/breadcrumbs", "forged").header("content-type", "application/json");
        answer(sent.body(big.clone())).await.problem(401, "unauthorized");
    }
    // A record above the limit in a body below it.
    let over = json!({"title": "big", "context": {"text": "x".repeat(rcrt_breadcrumb::MAX_RECORD_BYTES)}});
    world.post("/breadcrumbs", &token, over).await.violation("context");
    world.close().await;
}

#[tokio::test]
async fn bytes_that_are_not_http_do_no_harm() {
    let world = World::start().await;
    let address = world.base.trim_start_matches("http://");
    for bytes in [&b"\x16\x03\x01\x02\x00\x01\x00"[..], b"GET\r\n\r\n", b"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n"]
    {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(bytes).await.unwrap();
        stream.shutdown().await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        assert!(answer.is_empty() || answer.starts_with(b"HTTP/1.1 400"), "{}", String::from_utf8_lossy(&answer));
    }
    // A body that ends before it is complete.
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream
        .write_all(
            b"POST /auth/token HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 99\r\n\r\n{",
        )
        .await
        .unwrap();
    stream.shutdown().await.unwrap();
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await.unwrap();
    world.get("/health", "").await.ok();
    world.close().await;
}
