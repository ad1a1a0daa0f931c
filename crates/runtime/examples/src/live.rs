//! One run of a tool in the real world: its requests reach the network, under its permissions.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    BodyStream, Breadcrumbs, ErrorCode, ExampleRecord, FetchRequest, FetchResponse, HttpExchange, OpError, StatedCall,
    ToolDefinition, ToolFailure,
};
use rcrt_egress::Vault;
use rcrt_executors::{CallHostOps, ProgressSink};
use rcrt_sandbox::{ApiCall, ConsoleLine, HostOps, Seed};
use serde_json::Value;

use crate::recording::{self, Found};
use crate::world::written;

/// What a live run gets besides its tool.
pub struct LiveRun {
    pub input: Value,
    /// The values of the tool's `required_secrets`. They are redacted from the report.
    pub secrets: Vault,
    /// The records that `context.api` reads and writes. `None`: it finds nothing, and what it
    /// writes is only reported.
    pub breadcrumbs: Option<Arc<dyn Breadcrumbs>>,
    pub progress: Arc<dyn ProgressSink>,
    /// The clock and the random numbers of a run that is recorded: its requests, and the records
    /// that it finds, are reported. Bodies are then read as a whole; one above 1 MiB is an error.
    pub recording: Option<Seed>,
}

/// What came of a live run.
#[derive(Debug)]
pub struct LiveReport {
    /// The failure has the code of a call: an input or output that does not fit its schema, an
    /// error of the tool, a limit.
    pub result: Result<Value, ToolFailure>,
    /// What the tool wrote with `context.api`, in order, as in an example's `writes`.
    pub writes: Vec<Value>,
    /// In order, with the secrets as an example has them: `example-<name>`.
    pub exchanges: Vec<HttpExchange>,
    /// The calls of other tools, in order, in the same form.
    pub calls: Vec<StatedCall>,
    /// What the tool found, as it was before the tool changed it.
    pub breadcrumbs: Vec<ExampleRecord>,
    pub console: Vec<ConsoleLine>,
    pub duration_ms: u64,
}

impl LiveReport {
    /// A run that ended before the tool began.
    pub(crate) fn refused(failure: ToolFailure) -> Self {
        Self {
            result: Err(failure),
            writes: Vec::new(),
            exchanges: Vec::new(),
            calls: Vec::new(),
            breadcrumbs: Vec::new(),
            console: Vec::new(),
            duration_ms: 0,
        }
    }
}

pub(crate) struct LiveWorld {
    ops: CallHostOps,
    definition: Arc<ToolDefinition>,
    vault: Arc<Vault>,
    /// Whether the run has a store with other tools.
    has_store: bool,
    is_recorded: bool,
    seen: Mutex<SeenLive>,
}

#[derive(Default)]
pub(crate) struct SeenLive {
    pub writes: Vec<Value>,
    pub exchanges: Vec<HttpExchange>,
    pub calls: Vec<StatedCall>,
    pub found: Found,
}

impl LiveWorld {
    pub fn new(
        ops: CallHostOps,
        definition: Arc<ToolDefinition>,
        vault: Arc<Vault>,
        has_store: bool,
        is_recorded: bool,
    ) -> Self {
        Self { ops, definition, vault, has_store, is_recorded, seen: Mutex::default() }
    }

    pub fn take_seen(&self) -> SeenLive {
        std::mem::take(&mut self.seen.lock())
    }

    /// Reads these records for the example, each once. One that cannot be read is not found.
    async fn find(&self, ids: Vec<String>) {
        for id in ids {
            if self.seen.lock().found.is_known(&id) {
                continue;
            }
            if let Ok(record) = self.ops.api(ApiCall::GetBreadcrumb { id }).await {
                self.seen.lock().found.add(record);
            }
        }
    }

    /// As in a call, but without a store that grants and audits: the operator gave the value.
    fn secret(&self, name: &str) -> Result<Value, OpError> {
        if !self.definition.required_secrets.iter().any(|one| one == name) {
            let message = format!("the secret {name:?} is not among the tool's required_secrets");
            return Err(OpError::new("PermissionDenied", message));
        }
        let shown = self.vault.shown_as(name).map(Value::from);
        shown.ok_or_else(|| OpError::new("NotFound", format!("the secret {name:?} has no value in this run")))
    }
}

#[async_trait]
impl HostOps for LiveWorld {
    async fn fetch(&self, request: FetchRequest, body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        if !self.is_recorded {
            return self.ops.fetch(request, body).await;
        }
        let (exchange, answer) = recording::fetch(&self.ops, &self.vault, request, body).await?;
        self.seen.lock().exchanges.push(exchange);
        answer
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        if let ApiCall::GetSecret { id, .. } = &call {
            return self.secret(id);
        }
        if let ApiCall::CallTool { tool, input, .. } = &call {
            self.ops.check_call(tool)?;
            if !self.has_store {
                let message = "callTool: this run has no server whose tools it could call; add --server-records";
                return Err(OpError::new("Unavailable", message));
            }
            let (tool, input) = (tool.clone(), input.clone());
            let result = self.ops.api(call).await?;
            if self.is_recorded {
                self.seen.lock().calls.push(recording::call(&self.vault, tool, input, &result));
            }
            return Ok(result);
        }
        let write = written(&call);
        if self.is_recorded {
            self.find(recording::changed_or_read(&call)).await;
        }
        let creates = matches!(call, ApiCall::CreateBreadcrumb { .. });
        let done = self.ops.api(call).await?;
        self.seen.lock().writes.extend(write);
        if self.is_recorded {
            if creates {
                self.seen.lock().found.created(&done);
            } else {
                self.find(recording::listed(&done)).await;
            }
        }
        Ok(done)
    }

    fn progress(&self, fraction: Option<f64>, message: &str) {
        self.ops.progress(fraction, message);
    }
}

/// The failure of a value that does not fit its schema.
pub(crate) fn misfit(code: ErrorCode, problems: &str) -> ToolFailure {
    let side = if code == ErrorCode::InvalidArguments { "input" } else { "output" };
    ToolFailure::new(code, format!("the {side} does not match the tool's {side}_schema: {problems}"))
}
