//! A store in memory that takes no time, so that the benches measure only the runner or the server.
#![allow(dead_code)] // Each bench uses a part of it.

use std::collections::{HashMap, VecDeque};

use async_trait::async_trait;
use futures::StreamExt;
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    AuditLog, Breadcrumb, BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, BreadcrumbVersion, Breadcrumbs, Call,
    CallHistory, CallQueue, Claim, ClaimRequest, Created, EgressLog, EventNumber, Events, Lease, LeaseState,
    LeaseStatus, NewBreadcrumb, Profiles, Records, Release, ReportReply, Rights, RunnerReport, Runners, Search,
    SearchMode, SearchResults, Secrets, Selectors, StoreError, SubscribeOptions, SubscriptionStream, schema_names,
};
use serde_json::{Map, Value, json};
use tokio::sync::{Notify, oneshot};
use uuid::Uuid;

#[derive(Default)]
pub struct MemoryStore {
    state: Mutex<State>,
    queued: Notify,
}

#[derive(Default)]
struct State {
    records: HashMap<Uuid, Breadcrumb>,
    queue: VecDeque<Breadcrumb>,
    answers: HashMap<Uuid, oneshot::Sender<NewBreadcrumb>>,
}

impl MemoryStore {
    /// Queues a request and waits for its response.
    pub async fn call(&self, request: NewBreadcrumb) -> Result<NewBreadcrumb, StoreError> {
        let (record, (answer, answered)) = (stored(&request), oneshot::channel());
        {
            let mut state = self.state.lock();
            state.answers.insert(record.id, answer);
            state.queue.push_back(record);
        }
        self.queued.notify_one();
        answered.await.map_err(|_| StoreError::Internal("the call was dropped".into()))
    }
}

pub fn owner() -> Uuid {
    Uuid::from_u128(7)
}

fn stored(record: &NewBreadcrumb) -> Breadcrumb {
    // Built from JSON, as a store reads it. This happens outside of what is measured.
    let now = "2026-01-01T00:00:00Z";
    let mut fields = json!({
        "id": Uuid::new_v4(), "owner_id": owner(), "version": 1, "checksum": "", "size_bytes": 0,
        "visibility": "team", "sensitivity": "low", "created_at": now, "updated_at": now,
    });
    let given = serde_json::to_value(record).unwrap_or_default();
    if let (Value::Object(fields), Value::Object(given)) = (&mut fields, given) {
        fields.extend(given.into_iter().filter(|(_, value)| !value.is_null()));
    }
    serde_json::from_value(fields).unwrap_or_else(|error| panic!("an invalid record: {error}"))
}

fn none<T>() -> Result<T, StoreError> {
    Err(StoreError::Internal("not in this store".into()))
}

#[async_trait]
impl Records for MemoryStore {
    async fn create(&self, record: NewBreadcrumb, _: Option<&str>) -> Result<Created, StoreError> {
        record.check()?;
        let record = stored(&record);
        let id = record.id;
        // Requests that come by HTTP are dropped, or a long bench would fill the memory.
        if record.schema_name.as_deref() != Some(schema_names::TOOL_REQUEST) {
            self.state.lock().records.insert(id, record);
        }
        Ok(Created { id, version: 1, replayed: false, warnings: Vec::new() })
    }

    async fn get(&self, id: Uuid) -> Result<Breadcrumb, StoreError> {
        self.state.lock().records.get(&id).cloned().ok_or(StoreError::NotFound { what: "breadcrumb", id })
    }

    async fn history(&self, _: Uuid) -> Result<Vec<BreadcrumbVersion>, StoreError> {
        Ok(Vec::new())
    }

    async fn update(&self, id: Uuid, _: i64, _: BreadcrumbChanges) -> Result<Breadcrumb, StoreError> {
        self.get(id).await
    }

    async fn delete(&self, _: Uuid, _: Option<i64>) -> Result<(), StoreError> {
        Ok(())
    }

    async fn list(&self, query: &BreadcrumbQuery) -> Result<Vec<BreadcrumbListItem>, StoreError> {
        let state = self.state.lock();
        let wanted = |record: &&Breadcrumb| {
            query.selector.schema_name.is_none() || query.selector.schema_name == record.schema_name
        };
        let items = state.records.values().filter(wanted).map(|record| BreadcrumbListItem {
            id: record.id,
            owner_id: None,
            title: record.title.clone(),
            tags: record.tags.clone(),
            schema_name: record.schema_name.clone(),
            version: record.version,
            updated_at: record.updated_at,
            context: query.include_context.then(|| record.context.clone()),
            redacted: false,
            score: None,
        });
        Ok(items.skip(query.offset as usize).take(query.limit as usize).collect())
    }

    async fn search(&self, _: &Search) -> Result<SearchResults, StoreError> {
        Ok(SearchResults { items: Vec::new(), mode: SearchMode::Text, fallback: None })
    }
}

impl Rights for MemoryStore {}

#[async_trait]
impl Events for MemoryStore {
    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        Ok(EventNumber(0))
    }

    async fn subscribe(&self, _: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        Ok(futures::stream::pending().boxed())
    }
}

#[async_trait]
impl CallQueue for MemoryStore {
    async fn call_queued(&self) {
        self.queued.notified().await;
    }

    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        let mut state = self.state.lock();
        let tool = |record: &Breadcrumb| record.context.get("tool").and_then(Value::as_str).unwrap_or("").to_owned();
        let mut claims = Vec::new();
        while claims.len() < claim.limit as usize {
            let at = state.queue.iter().position(|record| !claim.except_tools.contains(&tool(record)));
            let Some(request) = at.and_then(|at| state.queue.remove(at)) else { break };
            claims.push(Claim {
                lease: Lease { request: request.id, fence: 1 },
                attempt: 1,
                profiles: Profiles::default(),
                allowed_tools: None,
                time_left_ms: None,
                queued_at: request.created_at,
                ready_at: None,
                request,
            });
        }
        Ok(claims)
    }

    async fn start(&self, _: Lease, _: u32) -> Result<(), StoreError> {
        Ok(())
    }

    async fn heartbeat(&self, leases: &[Lease], _: u64) -> Result<Vec<LeaseState>, StoreError> {
        Ok(leases.iter().map(|lease| LeaseState { lease: *lease, status: LeaseStatus::Held }).collect())
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
        response.check()?;
        if let Some(answer) = self.state.lock().answers.remove(&lease.request) {
            // The caller can be gone already.
            let _ = answer.send(response);
        }
        Ok(Uuid::new_v4())
    }

    async fn release(&self, _: Lease, _: Release) -> Result<(), StoreError> {
        none()
    }

    async fn call(&self, _: Uuid) -> Result<Call, StoreError> {
        none()
    }

    async fn cancel(&self, _: Uuid) -> Result<Call, StoreError> {
        none()
    }
}

impl AuditLog for MemoryStore {}

impl Secrets for MemoryStore {}

impl Selectors for MemoryStore {}

#[async_trait]
impl Runners for MemoryStore {
    async fn report_runner(&self, _: &RunnerReport) -> Result<ReportReply, StoreError> {
        Ok(ReportReply { runners: Vec::new(), secrets_revision: String::new(), drain: false })
    }
}

impl CallHistory for MemoryStore {}

impl EgressLog for MemoryStore {}

impl Breadcrumbs for MemoryStore {}

/// A tool's input of about this many bytes of JSON: texts, numbers and a list.
pub fn input(bytes: usize) -> Value {
    let items: Vec<Value> = (0..bytes / 100)
        .map(|n| json!({"name": format!("item number {n}"), "text": "some words of text, as they come", "count": n}))
        .collect();
    json!({"items": items})
}

pub fn as_map(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}
