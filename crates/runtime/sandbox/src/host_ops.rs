//! Host ops: what tool code can ask for. The runner performs them after it has checked the tool's
//! permissions.

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream::BoxStream;
use rcrt_breadcrumb::LimitReached;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A body in pieces, in order. An error is the last item.
pub type BodyStream = BoxStream<'static, Result<Bytes, OpError>>;

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

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FetchRequest {
    pub method: String,
    /// Absolute, without a fragment.
    pub url: String,
    /// In order. Values are Latin-1 text, as on the web platform.
    pub headers: Vec<(String, String)>,
    pub redirect: Redirect,
}

/// The fetch standard's redirect mode.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Redirect {
    #[default]
    Follow,
    Error,
    Manual,
}

pub struct FetchResponse {
    pub status: u16,
    pub status_text: String,
    /// In order, lower-case names.
    pub headers: Vec<(String, String)>,
    /// The final URL, after redirects.
    pub url: String,
    pub redirected: bool,
    /// Decoded (gzip, brotli). Fails if it exceeds the size limit.
    pub body: BodyStream,
}

/// One call of a `context.api` method, by its JavaScript name and arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ApiCall {
    GetBreadcrumb { id: String },
    CreateBreadcrumb { record: Value },
    UpdateBreadcrumb { id: String, version: i64, changes: Value },
    DeleteBreadcrumb { id: String },
    SearchBreadcrumbs { query: Value },
    VectorSearch { query: Value },
    GetSecret { id: String, reason: String },
}

/// Why an op failed. It is thrown in the tool as an `Error` with this name and message.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
#[error("{name}: {message}")]
pub struct OpError {
    /// `PermissionDenied`, `NotFound`, `InvalidArguments`, `VersionConflict`, `TypeError` (what the
    /// fetch standard throws for a network error), `ResourceExhausted`, `Unavailable`.
    pub name: String,
    pub message: String,
    /// The limit of the call that was reached, if any.
    #[serde(default)]
    pub reached: Option<LimitReached>,
}

impl OpError {
    pub fn new(name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { name: name.into(), message: message.into(), reached: None }
    }

    /// `ResourceExhausted`, for a limit of the call. If the tool does not catch it, the call fails
    /// with the limit in its details.
    pub fn exhausted(reached: LimitReached, message: impl Into<String>) -> Self {
        Self { reached: Some(reached), ..Self::new("ResourceExhausted", message) }
    }
}
