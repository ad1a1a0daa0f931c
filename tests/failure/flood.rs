//! Many requests at once. Afterwards their responses and runs are counted.

use std::collections::HashMap;
use std::sync::Arc;

use futures::StreamExt;
use rcrt_breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, Breadcrumbs, ErrorCode, MAX_PAGE, NewBreadcrumb, Selector, ToolRequest,
    ToolResponse,
};
use serde_json::json;
use uuid::Uuid;

use crate::tool_record;
use crate::watcher::SeenEvents;

/// How many requests each of the failure tests writes.
pub const REQUESTS: usize = 500;

/// Writes a record each time it runs, so that runs can be counted, and then takes a little time.
const TALLY: &str = r#"export async function execute(input, context) {
  await context.api.createBreadcrumb({ title: "Ran", tags: ["ran"], context: { n: input.n } });
  await new Promise((resolve) => setTimeout(resolve, 10 + (input.n % 5) * 10));
  return input.n;
}
"#;

/// The request records by request id.
pub struct Flood {
    pub requests: HashMap<String, Uuid>,
}

/// Writes the tool `tally` and 500 requests for it, 16 at a time. Repeats a write that got no
/// response, as an agent would.
pub async fn send(store: Arc<dyn Breadcrumbs>) -> Flood {
    let schema =
        json!({"type": "object", "properties": {"n": {"type": "integer", "description": "The number of the call."}}});
    write(&*store, &tool_record::tool("tally", TALLY, &schema, &json!({})), "tally").await;
    let written: Vec<(String, Uuid)> = futures::stream::iter(0..REQUESTS)
        .map(|n| {
            let store = Arc::clone(&store);
            async move {
                let request_id = format!("flood-{n}");
                let record =
                    ToolRequest::record("tally", json!({"n": n}), Some(&request_id), Some("workspace:failure"));
                let id = write(&*store, &record, &request_id).await;
                (request_id, id)
            }
        })
        .buffer_unordered(16)
        .collect()
        .await;
    Flood { requests: written.into_iter().collect() }
}

async fn write(store: &dyn Breadcrumbs, record: &NewBreadcrumb, key: &str) -> Uuid {
    loop {
        match store.create(record.clone(), Some(key)).await {
            Ok(created) => return created.id,
            // The client already pauses between its own attempts.
            Err(error) if error.is_retryable() => {}
            Err(error) => panic!("a record was refused: {error}"),
        }
    }
}

/// The records that say that a call ran.
pub fn ran() -> Selector {
    Selector { all_tags: vec!["ran".into()], ..Selector::default() }
}

/// All records that the selector matches.
pub async fn all(store: &dyn Breadcrumbs, selector: Selector) -> Vec<BreadcrumbListItem> {
    let mut found = Vec::new();
    loop {
        let offset = u32::try_from(found.len()).unwrap();
        let query = BreadcrumbQuery { selector: selector.clone(), limit: MAX_PAGE, offset, include_context: true };
        let page = store.list(&query).await.unwrap();
        let is_last = page.len() < MAX_PAGE as usize;
        found.extend(page);
        if is_last {
            return found;
        }
    }
}

impl Flood {
    /// A single request.
    pub fn of(request_id: &str, record: Uuid) -> Self {
        Self { requests: [(request_id.to_owned(), record)].into() }
    }

    /// Checks that every request has exactly one response in the store, that the watcher saw both,
    /// that no call ran twice, that successful calls ran once, and that failures have the right
    /// code. Returns the responses.
    pub async fn check(&self, store: &dyn Breadcrumbs, seen: &SeenEvents) -> Vec<ToolResponse> {
        let schema = |name: &str| Selector { schema_name: Some(name.into()), ..Selector::default() };
        let mut responses: HashMap<String, Vec<(Uuid, ToolResponse)>> = HashMap::new();
        for item in all(store, schema("tool.response.v1")).await {
            let response = ToolResponse::from_context(&item.context.unwrap()).unwrap();
            responses.entry(response.request_id.clone()).or_default().push((item.id, response));
        }
        let mut runs: HashMap<String, usize> = HashMap::new();
        for item in all(store, ran()).await {
            *runs.entry(format!("flood-{}", item.context.unwrap()["n"])).or_default() += 1;
        }
        let mut answers = Vec::new();
        for (request_id, record) in &self.requests {
            let own = responses.remove(request_id).unwrap_or_default();
            assert_eq!(own.len(), 1, "responses of {request_id}");
            assert!(seen.created(*record), "the watcher saw the request {request_id}");
            assert!(seen.created(own[0].0), "the watcher saw the response of {request_id}");
            let response = &own[0].1;
            let ran = runs.get(request_id).copied().unwrap_or_default();
            match response.error_code {
                None if response.tool == "tally" => assert_eq!(ran, 1, "runs of {request_id}"),
                None => {}
                Some(code) => {
                    assert!(ran <= 1, "{request_id} ran {ran} times");
                    assert_eq!((code, response.is_retryable), (ErrorCode::ExecutionFailed, Some(true)), "{response:?}");
                }
            }
            answers.push(response.clone());
        }
        // There are only a few kills, so most calls must succeed.
        let failed = answers.iter().filter(|response| response.error_code.is_some()).count();
        assert!(answers.len() < REQUESTS || failed < REQUESTS / 4, "{failed} of {REQUESTS} failed");
        seen.check();
        answers
    }
}
