//! Runs all examples of a tool, one after the other.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    ErrorCode, Example, Isolation, Limits, Profiles, RequestKind, ToolDefinition, ToolFailure, ToolRequest, Violation,
};
use rcrt_egress::{Egress, NetRules, Vault};
use rcrt_executors::{CallHostOps, DiscardProgress, EffectGate, ToolCall, TriggerChain, compile_tool};
use rcrt_sandbox::{Invocation, RequestContext, RunOutcome, Sandbox, Script, Seed, Task};
use rcrt_validate::Schema;
use rcrt_validate::expected::{Difference, differences};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::network::{ExampleNetwork, shown_failure};
use crate::records::ExampleRecords;
use crate::report::{ExampleReport, ExampleStatus};
use crate::world::{ExampleWorld, Seen, example_secret};

/// The most wall time of one example, even if the tool's limit is higher.
const MAX_EXAMPLE_MS: u64 = 30_000;
/// The most wall time of all examples of a tool.
const MAX_TOTAL: Duration = Duration::from_secs(120);
const DEFAULT_SEED: u32 = 1;

/// Runs examples in a sandbox.
pub struct ExampleRunner {
    sandbox: Arc<Sandbox>,
    /// Only the parts of a call that use the network need it, and no example does.
    egress: Arc<Egress>,
}

/// A tool that is ready to run its examples.
struct Tested<'t> {
    owner_id: Uuid,
    definition: &'t Arc<ToolDefinition>,
    script: Arc<Script>,
    rules: NetRules,
    input: Schema,
    output: Schema,
    ends: Instant,
}

impl ExampleRunner {
    pub fn new(sandbox: Arc<Sandbox>, egress: Arc<Egress>) -> Self {
        Self { sandbox, egress }
    }

    /// Runs the examples of a tool that passed the validators. The error says why none can run: the
    /// code cannot be compiled. A tool without code has examples that are not run.
    pub async fn run(
        &self,
        owner_id: Uuid,
        definition: &Arc<ToolDefinition>,
        cancelled: &CancellationToken,
    ) -> Result<Vec<ExampleReport>, ToolFailure> {
        if !definition.is_code() {
            let not_run = |example: &Example| {
                ExampleReport::not_run(&example.description, "only tools with code run their examples")
            };
            return Ok(definition.examples.iter().map(not_run).collect());
        }
        let tool = Tested {
            owner_id,
            definition,
            script: compile_tool(definition.clone()).await?,
            rules: NetRules::read(&definition.permissions.net).map_err(|problem| {
                ToolFailure::new(ErrorCode::ExecutionFailed, format!("permissions.net: {problem}"))
            })?,
            input: schema(&definition.input_schema)?,
            output: schema(&definition.output_schema)?,
            ends: Instant::now() + MAX_TOTAL,
        };
        let mut reports = Vec::with_capacity(definition.examples.len());
        for example in &definition.examples {
            reports.push(self.run_one(&tool, example, cancelled).await);
        }
        Ok(reports)
    }

    async fn run_one(&self, tool: &Tested<'_>, example: &Example, cancelled: &CancellationToken) -> ExampleReport {
        let expected = expected(example);
        if let Some(refused) = tool.refuse_input(example) {
            return refused;
        }
        if Instant::now() >= tool.ends {
            let message = format!("the examples before it took {} s, the most for all of them", MAX_TOTAL.as_secs());
            return ExampleReport::failed(&example.description, message);
        }
        let world = match self.world(tool, example) {
            Ok(world) => Arc::new(world),
            Err(problem) => return ExampleReport::failed(&example.description, problem),
        };
        let began = Instant::now();
        let stop = cancelled.child_token();
        let run = self.sandbox.run(tool.invocation(example), world.clone(), stop.clone());
        let mut run = std::pin::pin!(run);
        let outcome = if let Ok(outcome) = timeout_at(tool.ends, &mut run).await {
            outcome
        } else {
            stop.cancel();
            run.await
        };
        let seen = world.take_seen();
        let unused = world.unused_requests();
        let mut report = tool.judge(example, &outcome, &seen, unused);
        report.expected = expected;
        report.writes = seen.writes;
        report.console = outcome.console;
        report.duration_ms = began.elapsed().as_millis() as u64;
        report
    }

    fn world(&self, tool: &Tested<'_>, example: &Example) -> Result<ExampleWorld, String> {
        let now = DateTime::<Utc>::from_timestamp_millis(example.now_ms()).unwrap_or_default();
        let records = Arc::new(ExampleRecords::new(tool.owner_id, now, &example.breadcrumbs));
        let call = ToolCall {
            owner_id: tool.owner_id,
            tool_id: Uuid::nil(),
            tool_version: 1,
            definition: tool.definition.clone(),
            limits: tool.limits(),
            request: request(),
            input: Value::Null,
            secrets: Arc::new(Vault::default()),
            breadcrumbs: records,
            chain: TriggerChain::default(),
            profiles: Profiles::default(),
            progress: Arc::new(DiscardProgress),
            deadline: None,
            effect_gate: EffectGate::opened(),
        };
        let ops = CallHostOps::new(self.egress.clone(), &call)?;
        let network = ExampleNetwork::new(tool.rules.clone(), example.http.as_deref().unwrap_or_default());
        Ok(ExampleWorld::new(tool.definition.clone(), example.clone(), ops, network))
    }
}

impl Tested<'_> {
    fn limits(&self) -> Limits {
        let mut limits = self.definition.limits;
        limits.timeout_ms = limits.timeout_ms.min(MAX_EXAMPLE_MS);
        limits
    }

    /// A call with such an input fails before the tool runs. An example can state that.
    fn refuse_input(&self, example: &Example) -> Option<ExampleReport> {
        let violations = self.input.check_as("input", &example.input);
        let is_expected = example.error.as_ref().is_some_and(|error| error.code == ErrorCode::InvalidArguments);
        if violations.is_empty() {
            return None;
        }
        let actual = shown_failure(ErrorCode::InvalidArguments.as_str(), &sentence(&violations));
        let mut report = if is_expected {
            ExampleReport::of(&example.description, ExampleStatus::Passed, None)
        } else {
            ExampleReport::failed(&example.description, "the input does not fit input_schema")
        };
        if let Some(message) = example.error.as_ref().and_then(|error| error.message.as_ref()) {
            report.differences = differences(message, &sentence(&violations).into());
            if !report.differences.is_empty() {
                report.status = ExampleStatus::Failed;
                report.passed = false;
            }
        }
        (report.expected, report.actual) = (expected(example), Some(actual));
        Some(report)
    }

    fn invocation(&self, example: &Example) -> Invocation {
        let secret = |name: &String| {
            let value = example.secrets.get(name).cloned().unwrap_or_else(|| example_secret(name));
            (name.clone(), value)
        };
        Invocation {
            task: Task::Call,
            owner_id: self.owner_id,
            script: self.script.clone(),
            input: example.input.clone(),
            request: RequestContext { id: request().request_id, ..RequestContext::default() },
            secrets: self.definition.required_secrets.iter().map(secret).collect::<BTreeMap<_, _>>(),
            limits: self.limits(),
            isolation: Isolation::Call,
            hrtime: self.definition.permissions.hrtime,
            seed: Some(Seed { now_ms: example.now_ms(), random: example.seed.unwrap_or(DEFAULT_SEED) }),
        }
    }

    fn judge(&self, example: &Example, outcome: &RunOutcome, seen: &Seen, unused: Vec<String>) -> ExampleReport {
        let description = &example.description;
        let actual = match &outcome.result {
            Ok(output) => output.clone(),
            Err(failure) => shown_failure(failure.code.as_str(), &failure.message),
        };
        let (mut found, mut reason) = self.compare(example, &outcome.result);
        if let Some(writes) = &example.writes {
            let of_writes = differences(&json!(writes), &json!(seen.writes)).into_iter();
            found.extend(of_writes.map(|one| Difference { path: one.path.replacen('$', "$writes", 1), ..one }));
        }
        if !unused.is_empty() && found.is_empty() && reason.is_none() {
            reason = Some(format!("the tool did not make the stated request {}", unused.join(", ")));
        }
        let mut report = match (&seen.not_described, reason) {
            (Some(why), _) => ExampleReport::not_run(description, why),
            (None, Some(reason)) => ExampleReport::failed(description, reason),
            (None, None) if !found.is_empty() => ExampleReport::of(description, ExampleStatus::Failed, None),
            (None, None) => ExampleReport::of(description, ExampleStatus::Passed, None),
        };
        if report.status == ExampleStatus::Failed {
            report.differences = found;
        }
        report.actual = Some(actual);
        report
    }

    /// The differences, and a reason that is not one.
    fn compare(&self, example: &Example, result: &Result<Value, ToolFailure>) -> (Vec<Difference>, Option<String>) {
        match (&example.error, result) {
            (Some(error), Err(failure)) => {
                let mut found = differences(&error.code.as_str().into(), &failure.code.as_str().into());
                if let Some(message) = &error.message {
                    found.extend(differences(message, &failure.message.as_str().into()));
                }
                (found, None)
            }
            (Some(error), Ok(_)) => (Vec::new(), Some(format!("the tool returned an output; expected {}", error.code))),
            (None, Err(failure)) => (Vec::new(), Some(format!("the tool failed: {failure}"))),
            (None, Ok(output)) => {
                let violations = self.output.check_as("output", output);
                if !violations.is_empty() {
                    let message = format!("the output does not fit output_schema: {}", sentence(&violations));
                    return (Vec::new(), Some(message));
                }
                let found = example.output.as_ref().map(|expected| differences(expected, output));
                (found.unwrap_or_default(), None)
            }
        }
    }
}

/// The output or failure that the example states.
fn expected(example: &Example) -> Option<Value> {
    let failure = example.error.as_ref().map(|error| match &error.message {
        Some(message) => json!({"error": {"code": error.code, "message": message}}),
        None => json!({"error": {"code": error.code}}),
    });
    failure.or_else(|| example.output.clone())
}

fn sentence(violations: &[Violation]) -> String {
    let each = violations.iter().map(|violation| format!("{}: {}", violation.field, violation.message));
    each.collect::<Vec<_>>().join("; ")
}

fn schema(schema: &Value) -> Result<Schema, ToolFailure> {
    Schema::compile(schema).map_err(|violations| ToolFailure::new(ErrorCode::ExecutionFailed, violations.to_string()))
}

/// The request as the tool sees it.
fn request() -> ToolRequest {
    ToolRequest {
        id: Uuid::nil(),
        request_id: "example".to_owned(),
        tool: String::new(),
        input: Value::Null,
        workspace: None,
        agent_id: None,
        trigger_event: None,
        session: None,
        model: None,
        max_result_chars: None,
        deadline_ms: None,
        kind: RequestKind::Call,
        traceparent: None,
        pin: None,
    }
}
