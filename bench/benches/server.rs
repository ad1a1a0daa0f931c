//! What the HTTP server itself costs for a request: HTTP, token, JSON, the record's checks and the
//! response. The store takes no time.

#![allow(clippy::expect_used)] // A failure must stop the bench.

mod support;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use rcrt_breadcrumb::{
    AgentInfo, AgentStatus, Breadcrumbs, Identity, Profile, Role, StoreError, Tenancy, TenancyDecorator, TokenRecord,
    ToolRequest,
};
use rcrt_server::{AuthMode, Server, ServerOptions, TokenKey};
use support::{MemoryStore, input, owner};
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

struct OneTenant(Arc<MemoryStore>);

fn agent() -> AgentInfo {
    AgentInfo {
        id: Uuid::from_u128(8),
        owner_id: owner(),
        name: "bench".into(),
        roles: Role::ALL.to_vec(),
        profile: Profile::Main,
        tools: None,
        created_at: DateTime::UNIX_EPOCH,
    }
}

/// Has only what these requests need.
#[async_trait]
impl TenancyDecorator for OneTenant {
    fn inner(&self) -> &dyn Tenancy {
        unreachable!("not in this store")
    }

    fn acting_as(&self, _: Identity) -> Arc<dyn Breadcrumbs> {
        self.0.clone()
    }

    async fn agent_status(&self, _: Uuid, _: Uuid) -> Result<AgentStatus, StoreError> {
        Ok(AgentStatus { agent: Some(agent()), revoked: HashSet::new(), tokens_from: None, max_requests: None })
    }

    async fn record_tokens(&self, _: Vec<TokenRecord>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn recently_changed_agents(&self) -> Result<Vec<(Uuid, Uuid, DateTime<Utc>)>, StoreError> {
        Ok(Vec::new())
    }

    async fn ping(&self) -> Result<(), StoreError> {
        Ok(())
    }
}

async fn begin(stop: &CancellationToken) -> anyhow::Result<(String, String)> {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
    let base = format!("http://{}", listener.local_addr()?);
    let token_key = TokenKey::from_bytes(&[1; 32])?;
    let AgentInfo { id, owner_id, roles, profile, .. } = agent();
    let identity = Identity { owner_id, agent_id: id, roles, profile };
    let token = token_key.issue(&identity, Duration::from_hours(1))?;
    let options = ServerOptions::new(listener, AuthMode::Keys, token_key);
    let server = Server::new(options, Arc::new(OneTenant(Arc::default())))?;
    tokio::spawn(server.run(stop.clone()));
    Ok((base, token))
}

fn requests(criterion: &mut Criterion) {
    let stop = CancellationToken::new();
    let runtime = Runtime::new().expect("a runtime");
    let (base, token) = runtime.block_on(begin(&stop)).expect("a server");
    let http = reqwest::Client::new();
    let mut group = criterion.benchmark_group("the server");
    group.bench_function("GET /health", |bencher| {
        bencher.to_async(&runtime).iter(|| async {
            let answer = http.get(format!("{base}/health")).send().await.expect("an answer");
            assert_eq!(answer.status(), 200);
        });
    });
    for (name, bytes) in [("100 B", 100), ("1 KB", 1_000), ("1 MB", 1_000_000)] {
        let body = serde_json::to_vec(&ToolRequest::record("echo", input(bytes), None, None)).expect("JSON");
        group.bench_function(BenchmarkId::new("write a tool request", name), |bencher| {
            bencher.to_async(&runtime).iter(|| async {
                let sending = http.post(format!("{base}/breadcrumbs")).bearer_auth(&token);
                let sent = sending.header("content-type", "application/json").body(body.clone()).send().await;
                assert_eq!(sent.expect("an answer").status(), 201);
            });
        });
    }
    group.finish();
    stop.cancel();
}

criterion_group!(benches, requests);
criterion_main!(benches);
