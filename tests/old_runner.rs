//! A runner of the oldest version that servers accept: it sends only what that version sent.

use std::time::Duration;

use chrono::Utc;
use rcrt_breadcrumb::{Claim, ToolRequest, ToolResponse};
use serde_json::{Map, Value, json};
use tokio::task::JoinHandle;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;
use url::Url;
use uuid::Uuid;

/// Runs calls of the tool `tally` until it is stopped, one at a time. A call of which it gets no
/// answer is dropped, as by a runner that is lost.
pub struct OldRunner {
    task: JoinHandle<usize>,
    stop: CancellationToken,
}

impl OldRunner {
    pub fn start(server: Url, token: String) -> Self {
        let http = reqwest::Client::builder().no_proxy().timeout(Duration::from_secs(10)).build().unwrap();
        let (stop, runner) = (CancellationToken::new(), Connection { http, server, token, id: Uuid::new_v4() });
        let stopped = stop.clone();
        Self { task: tokio::spawn(async move { runner.run(&stopped).await }), stop }
    }

    /// How many calls it completed.
    pub async fn stop(self) -> usize {
        self.stop.cancel();
        self.task.await.unwrap()
    }
}

struct Connection {
    http: reqwest::Client,
    server: Url,
    token: String,
    id: Uuid,
}

impl Connection {
    async fn run(&self, stop: &CancellationToken) -> usize {
        let mut completed = 0;
        let mut poll = interval(Duration::from_millis(20));
        while !stop.is_cancelled() {
            poll.tick().await;
            let claim = json!({"runner_id": self.id, "limit": 1, "lease_ms": 5000});
            let claims = self.post("/calls/claim", &claim).await.unwrap_or_else(|| json!([]));
            for claim in serde_json::from_value::<Vec<Claim>>(claims).unwrap() {
                completed += usize::from(self.call(&claim).await.is_some());
            }
        }
        completed
    }

    async fn call(&self, claim: &Claim) -> Option<()> {
        let request = ToolRequest::from_breadcrumb(&claim.request).unwrap();
        let n = &request.input["n"];
        self.post("/calls/start", &json!({"lease": claim.lease, "max_attempts": 1})).await?;
        self.post("/breadcrumbs", &json!({"title": "Ran", "tags": ["ran"], "context": {"n": n}})).await?;
        let response = ToolResponse::new(&request, Ok(n.clone()), 3, Map::new(), Utc::now()).record(&request);
        self.post("/calls/complete", &json!({"lease": claim.lease, "response": response})).await?;
        Some(())
    }

    /// `None` without a success.
    async fn post(&self, path: &str, body: &Value) -> Option<Value> {
        let request = self.http.post(self.server.join(path).unwrap()).bearer_auth(&self.token).json(body);
        let response = request.send().await.ok()?;
        if response.status().is_client_error() {
            let lost = response.text().await.unwrap_or_default();
            assert!(lost.contains("lease_lost"), "a request of the old runner was refused: {lost}");
            return None;
        }
        response.error_for_status().ok()?.json().await.ok()
    }
}
