//! What the tool of one example can reach: the example's network, records and secrets.

use std::sync::Arc;

use async_trait::async_trait;
use parking_lot::Mutex;
use rcrt_breadcrumb::{BodyStream, Example, FetchRequest, FetchResponse, OpError, ToolDefinition};
use rcrt_executors::CallHostOps;
use rcrt_sandbox::{ApiCall, HostOps};
use serde_json::{Value, json};
use url::Url;

use crate::calls::ExampleCalls;
use crate::network::{ExampleNetwork, SentRequest};
use crate::report::MissingField;

pub(crate) struct ExampleWorld {
    definition: Arc<ToolDefinition>,
    example: Example,
    /// `context.api` on the example's records, as in a call.
    ops: CallHostOps,
    network: Mutex<ExampleNetwork>,
    calls: Mutex<ExampleCalls>,
    seen: Mutex<Seen>,
}

/// What the tool did that the result of its call does not show.
#[derive(Default)]
pub(crate) struct Seen {
    pub writes: Vec<Value>,
    /// The first use of something that the example does not describe at all, so that it cannot be
    /// tried: it was written before examples could.
    pub not_described: Option<(MissingField, String)>,
}

impl ExampleWorld {
    pub fn new(definition: Arc<ToolDefinition>, example: Example, ops: CallHostOps, network: ExampleNetwork) -> Self {
        let calls = Mutex::new(ExampleCalls::new(example.calls.as_deref().unwrap_or_default()));
        Self { definition, example, ops, network: Mutex::new(network), calls, seen: Mutex::default() }
    }

    pub fn take_seen(&self) -> Seen {
        std::mem::take(&mut self.seen.lock())
    }

    /// The requests and calls that the example states and the tool did not make.
    pub fn unused_requests(&self) -> Vec<String> {
        let mut unused = self.network.lock().unused();
        unused.extend(self.calls.lock().unused());
        unused
    }

    fn is_not_described(&self, missing: MissingField, why: String) {
        self.seen.lock().not_described.get_or_insert((missing, why));
    }

    fn call_tool(&self, tool: &str, input: &Value) -> Result<Value, OpError> {
        self.ops.check_call(tool)?;
        if self.example.calls.is_none() {
            let why = format!("it calls the tool {tool}, and the example has no `calls`: add the call to run it");
            self.is_not_described(MissingField::Calls, why);
            return Err(OpError::new("Unavailable", "the example has no other tools"));
        }
        self.calls.lock().answer(tool, input)
    }

    fn secret(&self, name: &str) -> Result<Value, OpError> {
        let is_its_own = self.definition.required_secrets.iter().any(|one| one == name);
        match self.example.secrets.get(name) {
            Some(value) => Ok(value.as_str().into()),
            None if is_its_own => Ok(example_secret(name).into()),
            None => {
                let message = format!("the secret {name:?} is not among the tool's required_secrets");
                Err(OpError::new("PermissionDenied", message))
            }
        }
    }
}

/// The value of a secret for which the example states none.
pub(crate) fn example_secret(name: &str) -> String {
    format!("example-{name}")
}

/// A write as an example's `writes` have it.
pub(crate) fn written(call: &ApiCall) -> Option<Value> {
    match call {
        ApiCall::CreateBreadcrumb { record } => Some(json!({"create": record})),
        ApiCall::UpdateBreadcrumb { id, version, changes } => {
            Some(json!({"update": {"id": id, "version": version, "changes": changes}}))
        }
        ApiCall::DeleteBreadcrumb { id } => Some(json!({"delete": {"id": id}})),
        ApiCall::GetBreadcrumb { .. }
        | ApiCall::ViewBreadcrumb { .. }
        | ApiCall::SearchBreadcrumbs { .. }
        | ApiCall::VectorSearch { .. }
        | ApiCall::GetSecret { .. }
        | ApiCall::CallTool { .. } => None,
    }
}

#[async_trait]
impl HostOps for ExampleWorld {
    async fn fetch(&self, request: FetchRequest, body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        if self.example.http.is_none() {
            if let Ok(url) = Url::parse(&request.url) {
                self.network.lock().check(&url)?;
            }
            let (method, url) = (&request.method, &request.url);
            let why = format!("it sends {method} {url}, and the example has no `http`: add the exchange to run it");
            self.is_not_described(MissingField::Http, why);
            return Err(OpError::new("TypeError", "the example has no network"));
        }
        let sent = SentRequest::read(request, body).await?;
        self.network.lock().answer(&sent)
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        if let ApiCall::GetSecret { id, .. } = &call {
            return self.secret(id);
        }
        if let ApiCall::CallTool { tool, input, .. } = &call {
            return self.call_tool(tool, input);
        }
        let write = written(&call);
        let done = self.ops.api(call).await?;
        self.seen.lock().writes.extend(write);
        Ok(done)
    }
}
