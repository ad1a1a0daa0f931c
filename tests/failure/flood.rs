//! Many requests at once, and the count of their answers afterwards.

use std::collections::HashMap;
use std::sync::Arc;

use breadcrumb::{BreadcrumbQuery, Breadcrumbs, MAX_PAGE, ToolRequest, ToolResponse};
use futures::StreamExt;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::watcher::Seen;

/// How many requests each of the failure tests writes.
pub const REQUESTS: usize = 500;

/// The request records by the requests' own ids.
pub struct Flood {
    pub requests: HashMap<String, Uuid>,
}

/// Writes `count` requests for the tool, 16 at a time. Writes go through the client's own retries, as an agent's would.
pub async fn send(store: Arc<dyn Breadcrumbs>, tool: &str, input: impl Fn(usize) -> Value, count: usize) -> Flood {
    let written: Vec<(String, Uuid)> = futures::stream::iter(0..count)
        .map(|index| {
            let (store, input) = (Arc::clone(&store), input(index));
            let request_id = format!("flood-{index}-{}", Uuid::new_v4());
            async move {
                let record = ToolRequest::record(tool, input, Some(&request_id), Some("workspace:failure"));
                let key = request_id.clone();
                loop {
                    match store.create(record.clone(), Some(&key)).await {
                        Ok(created) => return (request_id, created.id),
                        Err(error) if error.is_retryable() => {
                            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                        }
                        Err(error) => panic!("a request is refused: {error}"),
                    }
                }
            }
        })
        .buffer_unordered(16)
        .collect()
        .await;
    Flood { requests: written.into_iter().collect() }
}

impl Flood {
    /// Every request has exactly one response in the store and one in what the watcher saw.
    pub async fn check(&self, store: &dyn Breadcrumbs, seen: &Seen) -> Vec<ToolResponse> {
        let mut responses: HashMap<String, Vec<(Uuid, ToolResponse)>> = HashMap::new();
        for page in 0.. {
            let query = BreadcrumbQuery {
                limit: MAX_PAGE,
                offset: page * MAX_PAGE,
                ..BreadcrumbQuery::of_schema("tool.response.v1")
            };
            let items = store.list(&query).await.unwrap();
            let last = items.len() < MAX_PAGE as usize;
            for item in items {
                let response = ToolResponse::from_context(&item.context.unwrap()).unwrap();
                responses.entry(response.request_id.clone()).or_default().push((item.id, response));
            }
            if last {
                break;
            }
        }
        let mut answers = Vec::new();
        for (request_id, record) in &self.requests {
            let own = responses.remove(request_id).unwrap_or_default();
            assert_eq!(own.len(), 1, "responses of {request_id}");
            assert!(seen.created(*record), "the watcher saw the request {request_id}");
            assert!(seen.created(own[0].0), "the watcher saw the response of {request_id}");
            answers.extend(own.into_iter().map(|(_, response)| response));
        }
        seen.check();
        answers
    }
}

/// Waits a little and gives its input back.
pub fn short_wait(index: usize) -> Value {
    json!({"ms": 20 + (index % 5) * 10})
}
