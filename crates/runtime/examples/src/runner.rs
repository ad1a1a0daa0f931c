//! Runs all examples of a tool, one after the other, or the tool once in the real world.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    Breadcrumbs, ErrorCode, Example, Isolation, Limits, Profiles, RequestKind, ToolDefinition, ToolFailure,
    ToolRequest, Violation, check_javascript_numbers,
};
use rcrt_egress::{Egress, NetRules, Vault};
use rcrt_executors::{
    CallHostOps, DiscardProgress, EffectGate, FindsNothing, ProgressSink, ToolCall, TriggerChain, Unhosted,
    compile_tool, source_position,
};
use rcrt_sandbox::{ConsoleLine, Invocation, RequestContext, RunOutcome, Sandbox, Script, Seed, Task};
use rcrt_validate::Schema;
use rcrt_validate::expected::{Difference, differences};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::live::{LiveReport, LiveRun, LiveWorld, misfit};
use crate::network::{ExampleNetwork, shown_failure};
use crate::records::ExampleRecords;
use crate::report::{ExampleReport, ExampleStatus};
use crate::world::{ExampleWorld, Seen, example_secret};

/// The most wall time of one example, even if the tool's limit is higher.
const MAX_EXAMPLE_MS: u64 = 30_000;
/// The most wall time of all examples of a tool.
const MAX_TOTAL: Duration = Duration::from_mins(2);
pub(crate) const DEFAULT_SEED: u32 = 1;

/// Runs examples in a sandbox.
pub struct ExampleRunner {
    pub(crate) sandbox: Arc<Sandbox>,
    /// Only the parts of a call that use the network need it, and no example does.
    pub(crate) egress: Arc<Egress>,
}

/// How the run of one example ended.
pub(crate) struct Attempt {
    pub outcome: RunOutcome,
    pub seen: Seen,
    /// The requests that the example states and the tool did not make.
    pub unused: Vec<String>,
    pub took: Duration,
}

/// A tool that is ready to run its examples.
pub(crate) struct Tested<'t> {
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
        let tool = Tested::prepare(owner_id, definition).await?;
        let mut reports = Vec::with_capacity(definition.examples.len());
        for example in &definition.examples {
            reports.push(self.run_one(&tool, example, cancelled).await);
        }
        Ok(reports)
    }

    /// Runs another example than those of the definition.
    pub(crate) async fn run_example(
        &self,
        definition: &Arc<ToolDefinition>,
        example: &Example,
        cancelled: &CancellationToken,
    ) -> Result<ExampleReport, ToolFailure> {
        let tool = Tested::prepare(Uuid::nil(), definition).await?;
        Ok(self.run_one(&tool, example, cancelled).await)
    }

    /// Runs a tool once in the real world, with its own limits. Only a tool with code can run.
    pub async fn run_live(
        &self,
        definition: &Arc<ToolDefinition>,
        run: LiveRun,
        cancelled: &CancellationToken,
    ) -> LiveReport {
        self.try_live(definition, run, cancelled).await.unwrap_or_else(LiveReport::refused)
    }

    async fn try_live(
        &self,
        definition: &Arc<ToolDefinition>,
        run: LiveRun,
        cancelled: &CancellationToken,
    ) -> Result<LiveReport, ToolFailure> {
        let tool = Tested::prepare(Uuid::nil(), definition).await?;
        let violations = tool.input.check_as("input", &run.input);
        if !violations.is_empty() {
            return Err(misfit(ErrorCode::InvalidArguments, &sentence(&violations)));
        }
        check_javascript_numbers(&run.input).map_err(|rounded| {
            let message = format!("the tool's code cannot get the input unchanged: {rounded}");
            ToolFailure::new(ErrorCode::InvalidArguments, message)
        })?;
        let vault = Arc::new(run.secrets);
        let has_store = run.breadcrumbs.is_some();
        let records = run.breadcrumbs.unwrap_or_else(|| Arc::new(ExampleRecords::new(tool.owner_id, Utc::now(), &[])));
        let call = tool.call(definition.limits, records, vault.clone(), run.progress);
        let ops = CallHostOps::new(self.egress.clone(), &call)
            .map_err(|problem| ToolFailure::new(ErrorCode::ExecutionFailed, format!("permissions.net: {problem}")))?;
        let world =
            Arc::new(LiveWorld::new(ops, definition.clone(), vault.clone(), has_store, run.recording.is_some()));
        let invocation = tool.invocation(run.input, vault.shown(), definition.limits, run.recording);
        let began = Instant::now();
        let outcome = self.sandbox.run(invocation, world.clone(), cancelled.child_token()).await;
        let duration_ms = began.elapsed().as_millis() as u64;
        let (seen, redaction) = (world.take_seen(), vault.outward());
        let mut result = outcome.result.and_then(|output| {
            let violations = tool.output.check_as("output", &output);
            if violations.is_empty() {
                Ok(output)
            } else {
                Err(misfit(ErrorCode::InvalidOutput, &sentence(&violations)))
            }
        });
        match &mut result {
            Ok(output) => redaction.json(output),
            Err(failure) => redaction.failure(failure),
        }
        let mut writes = Value::Array(seen.writes);
        redaction.json(&mut writes);
        let writes = if let Value::Array(writes) = writes { writes } else { Vec::new() };
        let clear = |line: ConsoleLine| ConsoleLine { message: redaction.text(&line.message).into_owned(), ..line };
        let console = outcome.console.into_iter().map(clear).collect();
        let breadcrumbs = seen.found.into_records(&vault);
        Ok(LiveReport {
            result,
            writes,
            exchanges: seen.exchanges,
            calls: seen.calls,
            breadcrumbs,
            console,
            duration_ms,
        })
    }

    async fn run_one(&self, tool: &Tested<'_>, example: &Example, cancelled: &CancellationToken) -> ExampleReport {
        let expected = expected(example);
        if let Some(refused) = tool.refuse_input(example) {
            return refused;
        }
        if Instant::now() >= tool.ends {
            let message = format!("the examples before it used up the {} s for all examples", MAX_TOTAL.as_secs());
            return ExampleReport::failed(&example.description, message);
        }
        let Attempt { outcome, seen, unused, took } = match self.attempt(tool, example, tool.ends, cancelled).await {
            Ok(attempt) => attempt,
            Err(problem) => return ExampleReport::failed(&example.description, problem),
        };
        let mut report = tool.judge(example, &outcome, &seen, &unused);
        report.expected = expected;
        report.writes = seen.writes;
        report.console = outcome.console;
        report.duration_ms = took.as_millis() as u64;
        report
    }

    /// Runs the tool in the world of an example, until `ends` at most. The error says why it cannot
    /// run.
    pub(crate) async fn attempt(
        &self,
        tool: &Tested<'_>,
        example: &Example,
        ends: Instant,
        cancelled: &CancellationToken,
    ) -> Result<Attempt, String> {
        let world = Arc::new(self.world(tool, example)?);
        let began = Instant::now();
        let stop = cancelled.child_token();
        let run = self.sandbox.run(tool.example_invocation(example), world.clone(), stop.clone());
        let mut run = std::pin::pin!(run);
        let outcome = if let Ok(outcome) = timeout_at(ends, &mut run).await {
            outcome
        } else {
            stop.cancel();
            run.await
        };
        Ok(Attempt { outcome, seen: world.take_seen(), unused: world.unused_requests(), took: began.elapsed() })
    }

    pub(crate) fn world(&self, tool: &Tested<'_>, example: &Example) -> Result<ExampleWorld, String> {
        let now = DateTime::<Utc>::from_timestamp_millis(example.now_ms()).unwrap_or_default();
        let records = Arc::new(ExampleRecords::new(tool.owner_id, now, &example.breadcrumbs));
        let call = tool.call(tool.example_limits(), records, Arc::default(), Arc::new(DiscardProgress));
        let ops = CallHostOps::new(self.egress.clone(), &call)?;
        let network = ExampleNetwork::new(tool.rules.clone(), example.http.as_deref().unwrap_or_default());
        Ok(ExampleWorld::new(tool.definition.clone(), example.clone(), ops, network))
    }
}

impl<'t> Tested<'t> {
    pub async fn prepare(owner_id: Uuid, definition: &'t Arc<ToolDefinition>) -> Result<Self, ToolFailure> {
        Ok(Self {
            owner_id,
            definition,
            script: compile_tool(definition.clone()).await?,
            rules: NetRules::read(&definition.permissions.net).map_err(|problem| {
                ToolFailure::new(ErrorCode::ExecutionFailed, format!("permissions.net: {problem}"))
            })?,
            input: schema(&definition.input_schema)?,
            output: schema(&definition.output_schema)?,
            ends: Instant::now() + MAX_TOTAL,
        })
    }

    pub fn call(
        &self,
        limits: Limits,
        breadcrumbs: Arc<dyn Breadcrumbs>,
        secrets: Arc<Vault>,
        progress: Arc<dyn ProgressSink>,
    ) -> ToolCall {
        ToolCall {
            owner_id: self.owner_id,
            tool_id: Uuid::nil(),
            tool_version: 1,
            definition: self.definition.clone(),
            limits,
            request: request(),
            input: Value::Null,
            secrets,
            breadcrumbs,
            chain: TriggerChain::default(),
            profiles: Profiles::default(),
            progress,
            deadline: None,
            child_calls: Arc::new(Unhosted),
            finder: Arc::new(FindsNothing),
            effect_gate: EffectGate::opened(),
            debug: None,
        }
    }

    pub fn example_limits(&self) -> Limits {
        let mut limits = self.definition.limits;
        limits.timeout_ms = limits.timeout_ms.min(MAX_EXAMPLE_MS);
        limits
    }

    /// Why an output does not fit the schema.
    pub fn output_problem(&self, output: &Value) -> Option<String> {
        let violations = self.output.check_as("output", output);
        (!violations.is_empty()).then(|| format!("the output does not fit output_schema: {}", sentence(&violations)))
    }

    /// Whether the input fits the schema.
    pub fn fits(&self, input: &Value) -> bool {
        self.input.check(input).is_empty()
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

    pub fn example_invocation(&self, example: &Example) -> Invocation {
        let secret = |name: &String| {
            let value = example.secrets.get(name).cloned().unwrap_or_else(|| example_secret(name));
            (name.clone(), value)
        };
        let secrets = self.definition.required_secrets.iter().map(secret).collect();
        let seed = Seed { now_ms: example.now_ms(), random: example.seed.unwrap_or(DEFAULT_SEED) };
        self.invocation(example.input.clone(), secrets, self.example_limits(), Some(seed))
    }

    pub fn invocation(
        &self,
        input: Value,
        secrets: BTreeMap<String, String>,
        limits: Limits,
        seed: Option<Seed>,
    ) -> Invocation {
        Invocation {
            task: Task::Call,
            owner_id: self.owner_id,
            script: self.script.clone(),
            input,
            request: RequestContext { id: request().request_id, ..RequestContext::default() },
            secrets,
            limits,
            isolation: Isolation::Process,
            hrtime: self.definition.permissions.hrtime,
            seed,
        }
    }

    fn judge(&self, example: &Example, outcome: &RunOutcome, seen: &Seen, unused: &[String]) -> ExampleReport {
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
            (Some((missing, why)), _) => {
                ExampleReport { missing: Some(*missing), ..ExampleReport::not_run(description, why.as_str()) }
            }
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

    /// ` at weather.ts:12:9`; empty if the failure has no place in the source.
    pub(crate) fn place(&self, failure: &ToolFailure) -> String {
        let file = &self.script.file_name;
        source_position(failure, file).map_or_else(String::new, |(line, column)| format!(" at {file}:{line}:{column}"))
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
            (None, Err(failure)) => {
                let cause = failure.stated_cause().map_or_else(String::new, |cause| format!("; caused by {cause}"));
                (Vec::new(), Some(format!("the tool failed{}: {failure}{cause}", self.place(failure))))
            }
            (None, Ok(output)) => {
                let problem = self.output_problem(output);
                if problem.is_some() {
                    return (Vec::new(), problem);
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

pub(crate) fn schema(schema: &Value) -> Result<Schema, ToolFailure> {
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
        debug: false,
    }
}
