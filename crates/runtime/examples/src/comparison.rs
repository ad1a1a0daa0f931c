//! Whether an http tool and the code made from it send the same requests and return the same.

use std::sync::Arc;

use async_trait::async_trait;
use chrono::Utc;
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    BodyStream, ErrorCode, Example, FetchRequest, FetchResponse, OpError, ToolDefinition, ToolFailure,
};
use rcrt_egress::Vault;
use rcrt_executors::{CallHostOps, DiscardProgress, rest};
use rcrt_sandbox::{ApiCall, HostOps, Invocation};
use rcrt_validate::Schema;
use rcrt_validate::expected::differences;
use serde_json::{Value, json};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::live::{LiveWorld, misfit};
use crate::network::SentRequest;
use crate::records::ExampleRecords;
use crate::report::{ExampleReport, ExampleStatus};
use crate::runner::{ExampleRunner, Tested, schema};

impl ExampleRunner {
    /// Runs both tools with the input of each example of the code, in the world of the example, or
    /// with `live` on the real network with these secrets. A report's `expected` is what the http
    /// tool did and `actual` what the code did: the requests as they were sent, and the output or
    /// the code of the failure. An example without `http` is not run, except live.
    pub async fn compare(
        &self,
        legacy: &ToolDefinition,
        code: &Arc<ToolDefinition>,
        live: Option<Vault>,
        cancelled: &CancellationToken,
    ) -> Result<Vec<ExampleReport>, ToolFailure> {
        let (tool, input) = (Tested::prepare(Uuid::nil(), code).await?, schema(&legacy.input_schema)?);
        let comparison = Comparison { runner: self, legacy, input, tool, live: live.map(Arc::new), cancelled };
        let mut reports = Vec::with_capacity(code.examples.len());
        for example in &code.examples {
            reports.push(comparison.compare(example).await?);
        }
        Ok(reports)
    }
}

struct Comparison<'c> {
    runner: &'c ExampleRunner,
    legacy: &'c ToolDefinition,
    /// The schema of the http tool.
    input: Schema,
    tool: Tested<'c>,
    live: Option<Arc<Vault>>,
    cancelled: &'c CancellationToken,
}

impl Comparison<'_> {
    async fn compare(&self, example: &Example) -> Result<ExampleReport, ToolFailure> {
        if self.live.is_none() && example.http.is_none() {
            let reason = "the example has no `http`: record it with `rcrt tool test --record`, or use --live";
            return Ok(ExampleReport::not_run(&example.description, reason));
        }
        let began = tokio::time::Instant::now();
        let mut legacy = self.run_legacy(example).await?;
        let mut code = self.run_code(example).await?;
        if let Some(vault) = &self.live {
            vault.outward().json(&mut legacy);
            vault.outward().json(&mut code);
        }
        // What a service returns is compared as it is, not read as a matcher.
        let found = differences(&json!({"$literal": legacy}), &code);
        let status = if found.is_empty() { ExampleStatus::Passed } else { ExampleStatus::Failed };
        let mut report = ExampleReport::of(&example.description, status, None);
        (report.expected, report.actual, report.differences) = (Some(legacy), Some(code), found);
        report.duration_ms = began.elapsed().as_millis() as u64;
        Ok(report)
    }

    async fn run_legacy(&self, example: &Example) -> Result<Value, ToolFailure> {
        let violations = self.input.check_as("input", &example.input);
        if let Some(first) = violations.first() {
            return Ok(did(&[], &Err(misfit(ErrorCode::InvalidArguments, &first.message))));
        }
        let network = self.network(example)?;
        let secrets = match &self.live {
            Some(vault) => vault.shown(),
            None => self.tool.example_invocation(example).secrets,
        };
        let limit = self.tool.example_limits().timeout();
        let exchange = rest::exchange(self.legacy, example.input.clone(), &secrets, &*network);
        let result = timeout(limit, exchange).await;
        let late = |_| ToolFailure::new(ErrorCode::Timeout, format!("no response within {} ms", limit.as_millis()));
        let result = result.map_err(late).flatten();
        Ok(did(&network.sent.lock(), &result))
    }

    async fn run_code(&self, example: &Example) -> Result<Value, ToolFailure> {
        if !self.tool.fits(&example.input) {
            return Ok(did(&[], &Err(misfit(ErrorCode::InvalidArguments, "input_schema"))));
        }
        let network = self.network(example)?;
        let invocation = self.invocation(example);
        let outcome = self.runner.sandbox.run(invocation, network.clone(), self.cancelled.child_token()).await;
        Ok(did(&network.sent.lock(), &outcome.result))
    }

    fn invocation(&self, example: &Example) -> Invocation {
        match &self.live {
            Some(vault) => self.tool.invocation(example.input.clone(), vault.shown(), self.tool.example_limits(), None),
            None => self.tool.example_invocation(example),
        }
    }

    /// A new network for one run of either tool. Both reach the hosts that the code names.
    fn network(&self, example: &Example) -> Result<Arc<RecordingNetwork>, ToolFailure> {
        let failed = |problem| ToolFailure::new(ErrorCode::ExecutionFailed, problem);
        let inner: Arc<dyn HostOps> = match &self.live {
            None => Arc::new(self.runner.world(&self.tool, example).map_err(failed)?),
            Some(vault) => {
                let records = Arc::new(ExampleRecords::new(Uuid::nil(), Utc::now(), &[]));
                let limits = self.tool.example_limits();
                let call = self.tool.call(limits, records, vault.clone(), Arc::new(DiscardProgress));
                let ops = CallHostOps::new(self.runner.egress.clone(), &call).map_err(failed)?;
                Arc::new(LiveWorld::new(ops, call.definition.clone(), vault.clone(), false, false))
            }
        };
        Ok(Arc::new(RecordingNetwork { inner, sent: Mutex::default() }))
    }
}

/// What a tool did, in the form that is compared. The two kinds of tools word failures differently.
fn did(requests: &[Value], result: &Result<Value, ToolFailure>) -> Value {
    match result {
        Ok(output) => json!({"requests": requests, "output": output}),
        Err(failure) => json!({"requests": requests, "error": failure.code}),
    }
}

/// Records the requests of a tool on their way.
struct RecordingNetwork {
    inner: Arc<dyn HostOps>,
    sent: Mutex<Vec<Value>>,
}

#[async_trait]
impl HostOps for RecordingNetwork {
    async fn fetch(&self, request: FetchRequest, body: Option<BodyStream>) -> Result<FetchResponse, OpError> {
        let redirect = request.redirect;
        let sent = SentRequest::read(request, body).await?;
        self.sent.lock().push(sent.as_json());
        let (request, body) = sent.into_request(redirect);
        self.inner.fetch(request, body).await
    }

    async fn api(&self, call: ApiCall) -> Result<Value, OpError> {
        self.inner.api(call).await
    }
}
