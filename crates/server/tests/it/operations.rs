use breadcrumb::Role;

use crate::harness::{World, answer, note};

#[tokio::test]
async fn health_asks_the_database() {
    let world = World::start().await;
    assert_eq!(world.get("/health", "").await.ok().json()["status"], "ok");
    world.store.close().await;
    let problem = world.get("/health", "").await.problem(503, "unavailable");
    assert_eq!(problem["detail"], "the store cannot be reached now; try again");
    world.close().await;
}

#[tokio::test]
async fn requests_are_counted_by_the_routes_own_path() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    let id = world.create(&token, note("x")).await;
    world.get(&format!("/breadcrumbs/{id}"), &token).await.ok();
    metrics::counter!("rcrt_tool_invocations_total", "tool" => "echo", "status" => "success").increment(1);
    metrics::histogram!("rcrt_tool_invoke_duration_seconds", "tool" => "echo", "status" => "success").record(0.2);
    let text = world.get("/metrics", "").await.ok();
    assert!(text.header("content-type").starts_with("text/plain; version=0.0.4"));
    for part in [
        "rcrt_http_requests_total{method=\"GET\",path=\"/breadcrumbs/{id}\",status=\"200\"}",
        "rcrt_http_request_duration_seconds_bucket{method=\"POST\",path=\"/breadcrumbs\",le=",
        "rcrt_tool_invocations_total{tool=\"echo\",status=\"success\"} 1",
        "rcrt_tool_invoke_duration_seconds_bucket{tool=\"echo\",status=\"success\",le=\"0.25\"} 1",
    ] {
        assert!(text.text.contains(part), "{part} is missing in\n{}", text.text);
    }
    assert!(!text.text.contains(&id.to_string()));
    world.close().await;
}

#[tokio::test]
async fn every_answer_has_a_request_id() {
    let world = World::start().await;
    let own = answer(world.request("GET", "/health", "").header("X-Request-Id", "my-id_1.2")).await;
    assert_eq!(own.header("x-request-id"), "my-id_1.2");
    let odd = answer(world.request("GET", "/nowhere", "").header("X-Request-Id", "spaces are odd")).await;
    assert_eq!(odd.header("x-request-id").len(), 36);
    world.close().await;
}
