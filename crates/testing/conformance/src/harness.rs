//! What a test needs from the implementation under test, and helpers for tests.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use chrono::Utc;
use futures::StreamExt;
use rcrt_breadcrumb::{
    Breadcrumbs, Claim, ClaimRequest, Event, EventStream, Identity, NewBreadcrumb, Profile, Role, StoreError,
    ToolRequest, ToolResponse,
};
use serde_json::{Map, Value, json};
use uuid::Uuid;

/// An implementation under test with its own database.
#[async_trait]
pub trait Harness: Send + Sync + Sized + 'static {
    /// Creates a tenant and returns its id.
    async fn tenant(&self) -> Uuid;

    /// Creates an agent with these roles and this profile in the tenant, and returns the store as
    /// it sees it.
    async fn agent_of(&self, tenant: Uuid, roles: &[Role], profile: Profile) -> Agent;

    /// Creates an agent with these roles in the tenant.
    async fn agent_with(&self, tenant: Uuid, roles: &[Role]) -> Agent {
        self.agent_of(tenant, roles, Profile::Main).await
    }

    /// Creates an agent with every role in the tenant.
    async fn agent(&self, tenant: Uuid) -> Agent {
        self.agent_with(tenant, &Role::ALL).await
    }

    /// Stops what the harness started.
    async fn close(self);
}

/// The store, as one agent of one tenant sees it.
#[derive(Clone)]
pub struct Agent {
    pub identity: Identity,
    pub store: Arc<dyn Breadcrumbs>,
}

impl std::ops::Deref for Agent {
    type Target = dyn Breadcrumbs;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

/// How long a test waits for something that must happen. Long, so that no test fails on a busy
/// machine.
pub const PATIENCE: Duration = Duration::from_mins(2);

/// One agent in its own tenant, which is all that most tests need.
pub async fn alone(harness: &impl Harness) -> Agent {
    let tenant = harness.tenant().await;
    harness.agent(tenant).await
}

/// A record with this title, and `{"n": 1}` as its context.
pub fn note(title: &str) -> NewBreadcrumb {
    noted(title, json!({"n": 1}), &["note"])
}

pub fn noted(title: &str, context: Value, tags: &[&str]) -> NewBreadcrumb {
    NewBreadcrumb {
        title: title.into(),
        context: object(context),
        tags: tags.iter().map(|tag| (*tag).to_owned()).collect(),
        schema_name: Some("note.v1".into()),
        ..NewBreadcrumb::default()
    }
}

pub fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("{other} is not an object"),
    }
}

/// A request for the tool `echo` in `workspace:one`.
pub fn request() -> NewBreadcrumb {
    ToolRequest::record("echo", json!({"say": "hi"}), None, Some("workspace:one"))
}

/// A successful response to a claimed request.
pub fn answer_to(claim: &Claim, output: Value) -> NewBreadcrumb {
    let request = ToolRequest::from_breadcrumb(&claim.request).unwrap();
    ToolResponse::new(&request, Ok(output), 3, Map::new(), Utc::now()).record(&request)
}

pub fn claim_of(limit: u32) -> ClaimRequest {
    ClaimRequest::new(Uuid::new_v4(), limit, 60_000)
}

/// The next event. Panics if none comes.
pub async fn next(events: &mut EventStream) -> Arc<Event> {
    tokio::time::timeout(PATIENCE, events.next()).await.expect("an event in time").expect("no end").unwrap()
}

/// The fields that an error names.
pub fn fields<T: std::fmt::Debug>(result: Result<T, StoreError>) -> Vec<String> {
    match result {
        Err(StoreError::Invalid(violations)) => violations.0.into_iter().map(|violation| violation.field).collect(),
        other => panic!("not refused as invalid: {other:?}"),
    }
}

pub fn assert_not_found<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::NotFound { .. })), "{result:?}");
}

pub fn assert_forbidden<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::Forbidden(_))), "{result:?}");
}

pub fn assert_lease_lost<T: std::fmt::Debug>(result: Result<T, StoreError>) {
    assert!(matches!(result, Err(StoreError::LeaseLost { .. })), "{result:?}");
}
