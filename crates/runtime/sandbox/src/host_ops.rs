//! Host ops: what tool code can ask for. The runner performs them after it has checked the tool's
//! permissions.

use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, OpError};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ConsoleLine;

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

    /// Who watches this call, if somebody does.
    fn observer(&self) -> Option<&dyn CallObserver> {
        None
    }
}

/// Watches a call while it runs. Its methods must not block.
pub trait CallObserver: Send + Sync {
    /// A console line, within the limits of the call.
    fn console(&self, line: &ConsoleLine);

    /// The call is over.
    fn ended(&self, usage: ProcessUsage);
}

/// What a call used. The process is that of its isolate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ProcessUsage {
    /// Processor time of the call; `None` if it cannot be read or the process has exited.
    pub cpu: Option<Duration>,
    /// The most resident memory of the process, with the engine's own and what earlier calls in the
    /// same isolate used, in bytes.
    pub peak_memory: Option<u64>,
    /// Console lines beyond the limits of the call.
    pub omitted_lines: u64,
}

/// One call of a `context.api` method, by its JavaScript name and arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ApiCall {
    GetBreadcrumb {
        id: String,
    },
    ViewBreadcrumb {
        id: String,
    },
    CreateBreadcrumb {
        record: Value,
    },
    UpdateBreadcrumb {
        id: String,
        version: i64,
        changes: Value,
    },
    DeleteBreadcrumb {
        id: String,
    },
    SearchBreadcrumbs {
        query: Value,
    },
    VectorSearch {
        query: Value,
    },
    GetSecret {
        id: String,
        reason: String,
    },
    /// The result is `{"output"}` or `{"failure"}`: a failed call is not a failure of the op.
    CallTool {
        tool: String,
        input: Value,
        options: Value,
    },
}
