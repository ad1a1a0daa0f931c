use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Role, StoreError, Tenancy, TenancyDecorator};
use rcrt_server::{AuthMode, Server, ServerOptions};
use tokio::{net::TcpListener, sync::Notify};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{PATIENCE, World, answer, key, note};

#[tokio::test]
async fn health_checks_the_database() {
    let world = World::start().await;
    assert_eq!(world.get("/health", "").await.ok().json()["status"], "ok");
    world.store.close().await;
    // A result can be a second old.
    let failure = async {
        loop {
            let answer = world.get("/health", "").await;
            if !answer.status.is_success() {
                return answer;
            }
        }
    };
    let answer = tokio::time::timeout(PATIENCE, failure).await.expect("the failure is reported");
    let problem = answer.problem(503, "unavailable");
    assert_eq!(problem["detail"], "the store cannot be reached now; try again");
    world.close().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tenant_whose_work_fills_its_queue_is_told_the_limit() {
    let world = World::start().await;
    let tenant = world.tenant().await;
    let (_, token) = world.agent(tenant, &[Role::Caller]).await;
    let busy = rcrt_conformance::Busy::of(tenant).await;
    let queued: Vec<_> = (0..256).map(|_| tokio::spawn(rcrt_compute::pool().run(tenant, || ()))).collect();
    rcrt_conformance::Busy::wait_for(tenant, queued.len()).await;
    let refused = world.post("/tools/types", &token, serde_json::json!({"tool_spec": {}})).await;
    let detail = refused.problem(503, "busy")["detail"].to_string();
    assert!(detail.contains("limit of 256") && detail.contains("try again later"), "{detail}");
    assert_eq!(refused.header("retry-after"), "1");
    busy.end().await;
    for one in queued {
        one.await.unwrap().unwrap();
    }
    world.post("/tools/types", &token, serde_json::json!({"tool_spec": {}})).await.ok();
    world.close().await;
}

#[tokio::test]
async fn requests_are_counted_by_the_path_of_the_route() {
    let world = World::start().await;
    let token = world.token(&[Role::Emitter]).await;
    let id = world.create(&token, note("x")).await;
    world.get(&format!("/breadcrumbs/{id}"), &token).await.ok();
    metrics::counter!("rcrt_tool_invocations_total", "tool" => "echo", "status" => "success").increment(1);
    metrics::histogram!("rcrt_tool_invoke_duration_seconds", "tool" => "echo", "status" => "success").record(0.2);
    let text = world.get("/metrics", &world.operators_token(&[Role::Curator]).await).await.ok();
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
async fn only_the_operator_sees_names_of_tools() {
    let world = World::start_as(|options| options.metrics_token = Some("the token of a scraper".into())).await;
    let curator = world.token(&[Role::Curator]).await;
    world.get("/breadcrumbs", &curator).await.ok();
    metrics::counter!("rcrt_tool_invocations_total", "tool" => "secret-plan", "status" => "success").increment(1);
    metrics::counter!("rcrt_made_up_later_total", "tool" => "secret-plan").increment(1);
    let not_the_operators = [String::new(), curator.clone(), world.operators_token(&[Role::Emitter]).await];
    for token in not_the_operators {
        let open = world.get("/metrics", &token).await.ok().text;
        assert!(
            open.contains("rcrt_http_requests_total{method=\"GET\",path=\"/breadcrumbs\",status=\"200\"}"),
            "{open}"
        );
        assert!(open.contains("# TYPE rcrt_http_request_duration_seconds histogram"), "{open}");
        assert!(open.contains("rcrt_http_request_duration_seconds_bucket{"), "{open}");
        assert!(!open.contains("secret-plan") && !open.contains("rcrt_tool_") && !open.contains("made_up"), "{open}");
    }
    for token in [world.operators_token(&[Role::Curator]).await, "the token of a scraper".into()] {
        let all = world.get("/metrics", &token).await.ok().text;
        assert!(all.contains("rcrt_tool_invocations_total{tool=\"secret-plan\",status=\"success\"} 1"), "{all}");
        assert!(all.contains("rcrt_made_up_later_total"), "{all}");
    }
    let refused = world.get("/metrics", "the token of a scrapes").await.problem(401, "unauthorized");
    assert!(refused["detail"].as_str().unwrap().contains("--metrics-token"), "{refused}");
    // The scraper's token allows nothing else.
    world.get("/breadcrumbs", "the token of a scraper").await.problem(401, "unauthorized");
    world.close().await;
}

/// A store that counts its pings, and responds when the test allows it.
#[derive(Default)]
struct Slow {
    asked: AtomicUsize,
    answers: Notify,
}

#[tokio::test]
async fn concurrent_health_checks_share_one_ping() {
    let slow = Arc::new(Slow::default());
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let base = format!("http://{}", listener.local_addr().unwrap());
    let store = Arc::new(Faulty { ping: Ping::Waits(slow.clone()) });
    let server = Server::new(ServerOptions::new(listener, AuthMode::Keys, key()), store).unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server.run(shutdown.clone()));
    let http = reqwest::Client::builder().no_proxy().build().unwrap();
    let ask = |path: &str| answer(http.get(format!("{base}{path}")));
    let asking = futures::future::join_all((0..50).map(|_| ask("/health")));
    let meanwhile = async {
        while slow.asked.load(Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        // The liveness check does not wait for the store.
        ask("/health/live").await.ok();
        slow.answers.notify_waiters();
    };
    let (answers, ()) = tokio::join!(asking, meanwhile);
    assert!(answers.iter().all(|answer| answer.status == 200));
    assert_eq!(slow.asked.load(Ordering::SeqCst), 1);
    drop(http);
    shutdown.cancel();
    serving.await.unwrap();
}

#[tokio::test]
async fn every_response_has_a_request_id() {
    let world = World::start().await;
    let own = answer(world.request("GET", "/health", "").header("X-Request-Id", "my-id_1.2")).await;
    assert_eq!(own.header("x-request-id"), "my-id_1.2");
    let odd = answer(world.request("GET", "/nowhere", "").header("X-Request-Id", "spaces are odd")).await;
    assert_eq!(odd.header("x-request-id").len(), 36);
    world.close().await;
}

/// A store that fails.
struct Faulty {
    ping: Ping,
}

enum Ping {
    Panics,
    /// Fails with a text that callers must not see.
    Tells,
    Waits(Arc<Slow>),
}

#[async_trait]
impl TenancyDecorator for Faulty {
    fn inner(&self) -> &dyn Tenancy {
        unreachable!()
    }

    async fn recently_changed_agents(&self) -> Result<Vec<(Uuid, Uuid, DateTime<Utc>)>, StoreError> {
        Ok(Vec::new())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        match &self.ping {
            Ping::Panics => panic!("secret words"),
            Ping::Tells => Err(StoreError::Internal("secret words".into())),
            Ping::Waits(slow) => {
                let answers = slow.answers.notified();
                slow.asked.fetch_add(1, Ordering::SeqCst);
                answers.await;
                Ok(())
            }
        }
    }
}

#[tokio::test]
async fn failures_and_panics_get_a_response_without_their_text() {
    for ping in [Ping::Tells, Ping::Panics] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/health", listener.local_addr().unwrap());
        let options = ServerOptions::new(listener, AuthMode::Keys, key());
        let server = Server::new(options, Arc::new(Faulty { ping })).unwrap();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(server.run(shutdown.clone()));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        // More than once: the server keeps running.
        for _ in 0..2 {
            let answer = answer(http.get(&url)).await;
            answer.problem(500, "internal");
            assert!(!answer.text.contains("secret") && !answer.header("x-request-id").is_empty());
        }
        drop(http);
        shutdown.cancel();
        serving.await.unwrap();
    }
}
