//! Tells calls that wait for another one when its response was written, from the runner's events.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::Mutex;
use serde_json::{Map, Value};
use tokio::sync::Notify;
use uuid::Uuid;

#[derive(Default)]
pub(crate) struct ResponseHints(Mutex<HashMap<Uuid, Arc<Notify>>>);

impl ResponseHints {
    /// Two attempts of one call can wait for the same request. Only one of them is then notified.
    pub fn listen(&self, request: Uuid) -> Arc<Notify> {
        self.0.lock().entry(request).or_default().clone()
    }

    pub fn forget(&self, request: Uuid) {
        self.0.lock().remove(&request);
    }

    /// `response`: the context of a `tool.response.v1`.
    pub fn arrived(&self, response: &Map<String, Value>) {
        let waiting = self.0.lock();
        if waiting.is_empty() {
            return;
        }
        let request = response.get("metadata").and_then(|metadata| metadata.get("request")?.as_str()?.parse().ok());
        if let Some(waits) = request.and_then(|request: Uuid| waiting.get(&request)) {
            waits.notify_one();
        }
    }
}
