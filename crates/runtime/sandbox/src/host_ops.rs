//! Host ops: what tool code can ask for. The runner performs them after it has checked the tool's
//! permissions.

use async_trait::async_trait;
use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, OpError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The runner's side of a call: one per call, so it knows the tool, its permissions and its tenant.
#[async_trait]
pub trait HostOps: Send + Sync + 'static {
    /// Performs one HTTP exchange, including redirects. The caller streams `body`, and reads the
    /// response's body to the end or drops it.
    async fn fetch(&self, request: FetchRequest, body: Option<BodyStream>) -> Result<FetchResponse, OpError>;

    /// Performs one method of `context.api`.
    async fn api(&self, call: ApiCall) -> Result<Value, OpError>;

    /// Receives the call's progress: a fraction from 0 to 1, if the tool knows it, and a message,
    /// which can be empty. Must not block. By default it is discarded.
    fn progress(&self, _fraction: Option<f64>, _message: &str) {}
}

/// One call of a `context.api` method, by its JavaScript name and arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ApiCall {
    GetBreadcrumb { id: String },
    ViewBreadcrumb { id: String },
    CreateBreadcrumb { record: Value },
    UpdateBreadcrumb { id: String, version: i64, changes: Value },
    DeleteBreadcrumb { id: String },
    SearchBreadcrumbs { query: Value },
    VectorSearch { query: Value },
    GetSecret { id: String, reason: String },
}
