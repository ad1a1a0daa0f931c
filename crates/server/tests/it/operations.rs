use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::{
    AgentInfo, AgentRegistration, Breadcrumbs, HygieneRun, HygieneStats, Identity, NewAgent, NewAgentKey, Role,
    StoreError, Tenancy, TenantInfo, Webhooks,
};
use server::{AuthMode, Server, ServerOptions};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::harness::{World, answer, key, note};

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

/// A store with a fault: it panics, or tells what nobody outside may read.
struct Faulty {
    panics: bool,
}

#[async_trait]
impl Tenancy for Faulty {
    async fn hygiene(&self, _: Uuid) -> Result<HygieneStats, StoreError> {
        unreachable!()
    }

    async fn run_hygiene(&self, _: Uuid) -> Result<HygieneRun, StoreError> {
        unreachable!()
    }

    fn webhooks(&self) -> Arc<dyn Webhooks> {
        unreachable!("nobody asks for webhooks here")
    }

    async fn ping(&self) -> Result<(), StoreError> {
        assert!(!self.panics, "secret words");
        Err(StoreError::Internal("secret words".into()))
    }

    fn acting_as(&self, _: Identity) -> Arc<dyn Breadcrumbs> {
        unreachable!()
    }

    async fn ensure_tenant(&self, _: &str) -> Result<TenantInfo, StoreError> {
        unreachable!()
    }

    async fn tenants(&self) -> Result<Vec<TenantInfo>, StoreError> {
        unreachable!()
    }

    async fn tenant(&self, _: Uuid) -> Result<Option<TenantInfo>, StoreError> {
        unreachable!()
    }

    async fn put_tenant(&self, _: Uuid, _: &str) -> Result<(TenantInfo, bool), StoreError> {
        unreachable!()
    }

    async fn delete_tenant(&self, _: Uuid) -> Result<(), StoreError> {
        unreachable!()
    }

    async fn put_agent(
        &self,
        _: Uuid,
        _: Uuid,
        _: AgentRegistration,
    ) -> Result<(AgentInfo, Option<String>), StoreError> {
        unreachable!()
    }

    async fn create_agent(&self, _: Uuid, _: NewAgent) -> Result<NewAgentKey, StoreError> {
        unreachable!()
    }

    async fn agents(&self, _: Uuid) -> Result<Vec<AgentInfo>, StoreError> {
        unreachable!()
    }

    async fn delete_agent(&self, _: Uuid, _: Uuid) -> Result<(), StoreError> {
        unreachable!()
    }

    async fn agent(&self, _: Uuid, _: Uuid) -> Result<Option<AgentInfo>, StoreError> {
        unreachable!()
    }

    async fn agent_by_key(&self, _: Uuid, _: Uuid, _: &str) -> Result<Option<AgentInfo>, StoreError> {
        unreachable!()
    }
}

#[tokio::test]
async fn faults_and_panics_are_answered_and_keep_their_words_to_themselves() {
    for panics in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/health", listener.local_addr().unwrap());
        let options = ServerOptions::new(listener, AuthMode::Keys, key());
        let server = Server::new(options, Arc::new(Faulty { panics })).unwrap();
        let shutdown = CancellationToken::new();
        let serving = tokio::spawn(server.run(shutdown.clone()));
        let http = reqwest::Client::builder().no_proxy().build().unwrap();
        // More than once: the server lives on.
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
