//! The receiver of a webhook.

use std::collections::HashMap;
use std::net::SocketAddr;

use axum::Router;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::routing::post;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::process::PATIENCE;

/// The record of each delivery, by the delivery's id. A delivery can be attempted again.
type Deliveries = watch::Sender<HashMap<String, Uuid>>;

/// Answers every delivery. Stops when it goes out of scope.
pub struct Receiver {
    pub address: SocketAddr,
    received: Deliveries,
    task: JoinHandle<()>,
}

impl Receiver {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let received = Deliveries::default();
        let router = Router::new().route("/", post(receive)).with_state(received.clone());
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, received, task }
    }

    /// Waits until this many deliveries have come. Returns the record of each.
    pub async fn deliveries(&self, count: usize) -> Vec<Uuid> {
        let mut received = self.received.subscribe();
        let reached = received.wait_for(|received| received.len() >= count);
        let reached = tokio::time::timeout(PATIENCE, reached).await.expect("the deliveries come").unwrap();
        reached.values().copied().collect()
    }
}

impl Drop for Receiver {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn receive(State(received): State<Deliveries>, headers: HeaderMap, body: String) {
    let event: serde_json::Value = serde_json::from_str(&body).unwrap();
    let record = event["breadcrumb_id"].as_str().unwrap().parse().unwrap();
    let id = headers["webhook-id"].to_str().unwrap().to_owned();
    received.send_modify(|received| {
        received.insert(id, record);
    });
}
