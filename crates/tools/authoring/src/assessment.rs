//! What is checked before a tool is published: the validators, whether its code loads, and its
//! examples.

use std::sync::Arc;

use rcrt_breadcrumb::{ToolDefinition, ToolFailure, schema_names};
use rcrt_examples::{ExampleReport, ExampleRunner, ExampleStatus, MissingField};
use rcrt_executors::Executor;
use rcrt_validate::{Finding, Report};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The most findings of each kind in a result.
const MAX_FINDINGS: usize = 50;

/// Checks tools in the sandbox of this runner.
pub struct Assessor {
    /// `None` if nothing is tried: the tools are only listed.
    sandbox: Option<AssessorSandbox>,
}

struct AssessorSandbox {
    examples: ExampleRunner,
    code: Arc<dyn Executor>,
    rules: Box<Rules>,
}

/// The rules for the definition of a user's tool.
type Rules = dyn Fn(&ToolDefinition) -> Report + Send + Sync;

/// One finding, with how to fix it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct ToolFinding {
    pub field: String,
    pub rule: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<String>,
}

impl ToolFinding {
    pub fn new(field: &str, rule: &str, message: impl Into<String>, fix: Option<&str>) -> Self {
        let (field, rule, fix) = (field.to_owned(), rule.to_owned(), fix.map(str::to_owned));
        Self { field, rule, message: message.into(), line: None, column: None, fix }
    }
}

impl From<Finding> for ToolFinding {
    fn from(finding: Finding) -> Self {
        Self {
            line: finding.line.map(u64::from),
            column: finding.column.map(u64::from),
            fix: rcrt_validate::fix(finding.rule).map(str::to_owned),
            rule: finding.rule.to_owned(),
            field: finding.field,
            message: finding.message,
        }
    }
}

/// What was found in one version of a tool.
#[derive(Default)]
pub(crate) struct Assessment {
    pub errors: Vec<ToolFinding>,
    pub warnings: Vec<ToolFinding>,
    pub examples: Vec<ExampleReport>,
}

impl Assessment {
    pub fn is_ok(&self) -> bool {
        self.errors.is_empty()
    }

    /// Whether there are examples, and each of them ran and passed.
    pub fn examples_pass(&self) -> bool {
        !self.examples.is_empty() && self.examples.iter().all(|report| report.status == ExampleStatus::Passed)
    }

    /// `{errors, warnings}`.
    pub fn validation(&self) -> Value {
        let most = |findings: &[ToolFinding]| json!(&findings[..findings.len().min(MAX_FINDINGS)]);
        json!({"errors": most(&self.errors), "warnings": most(&self.warnings)})
    }

    /// The errors of a version that cannot be compiled or loaded.
    fn add_load_failure(&mut self, failure: &ToolFailure) {
        let errors = failure.details.as_ref().and_then(|details| details.get("errors")?.as_array());
        let Some(errors) = errors.filter(|errors| !errors.is_empty()) else {
            self.errors.push(ToolFinding::new("code.source", "syntax", failure.message.as_str(), None));
            return;
        };
        for error in errors {
            let text = |key: &str| error.get(key).and_then(Value::as_str);
            let mut finding = ToolFinding::new(
                text("field").unwrap_or("code.source"),
                "syntax",
                text("message").unwrap_or_default(),
                None,
            );
            finding.line = error.get("line").and_then(Value::as_u64);
            finding.column = error.get("column").and_then(Value::as_u64);
            self.errors.push(finding);
        }
    }

    fn add_examples(&mut self, reports: Vec<ExampleReport>) {
        for (index, report) in reports.iter().enumerate() {
            let field = format!("examples[{index}]");
            let reason = report.reason.as_deref();
            match report.status {
                ExampleStatus::Passed => {}
                ExampleStatus::NotRun => {
                    let why = reason.unwrap_or("it cannot be run");
                    let fix = report.missing.map(MissingField::fix);
                    self.warnings.push(ToolFinding::new(&field, "example-not-run", why, fix));
                }
                ExampleStatus::Failed => {
                    let first = report.differences.first();
                    let message = reason.map(str::to_owned).or_else(|| {
                        first.map(|one| {
                            let actual = one.actual.as_ref().map(ToString::to_string).unwrap_or_default();
                            format!("{} {}: {actual}", one.path, one.message)
                        })
                    });
                    let fix = "Correct the code or the example; `examples` in this result has all differences";
                    let message = message.unwrap_or_else(|| "the example fails".to_owned());
                    self.errors.push(ToolFinding::new(&field, "example-fails", message, Some(fix)));
                }
            }
        }
        self.examples = reports;
    }
}

impl Assessor {
    /// `rules` are those of the runner that will offer the tool, `code` loads the code, and
    /// `examples` runs the examples.
    pub fn new(
        rules: impl Fn(&ToolDefinition) -> Report + Send + Sync + 'static,
        examples: ExampleRunner,
        code: Arc<dyn Executor>,
    ) -> Self {
        Self { sandbox: Some(AssessorSandbox { examples, code, rules: Box::new(rules) }) }
    }

    /// For a process without a sandbox, which lists the tools and calls none.
    pub fn without_sandbox() -> Self {
        Self { sandbox: None }
    }

    /// Checks the context of a `tool.code.v1`. The examples run if nothing else is wrong.
    pub(crate) async fn assess(
        &self,
        owner_id: Uuid,
        context: &Map<String, Value>,
        cancelled: &CancellationToken,
    ) -> (Assessment, Option<Arc<ToolDefinition>>) {
        let mut assessment = Assessment::default();
        let rules = |definition: &ToolDefinition| match &self.sandbox {
            Some(sandbox) => (sandbox.rules)(definition),
            None => rcrt_validate::tool(definition),
        };
        let (report, definition) = rcrt_validate::context_with(schema_names::TOOL_CODE, context, rules);
        assessment.errors.extend(report.errors.into_iter().map(ToolFinding::from));
        // An error here, not a warning: the author sees the response and can correct the field.
        let (misspelled, warnings): (Vec<_>, Vec<_>) =
            report.warnings.into_iter().partition(|finding| finding.rule == rcrt_validate::MISSPELLED);
        assessment.errors.extend(misspelled.into_iter().map(ToolFinding::from));
        assessment.warnings.extend(warnings.into_iter().map(ToolFinding::from));
        let definition = definition.map(Arc::new);
        let Some(definition) = definition.clone().filter(|_| assessment.is_ok()) else {
            return (assessment, definition);
        };
        let Some(AssessorSandbox { examples, code, .. }) = &self.sandbox else {
            let message = "this process has no sandbox to try the tool in";
            assessment.errors.push(ToolFinding::new("", "no-sandbox", message, None));
            return (assessment, Some(definition));
        };
        // An id of its own: the executor keeps what it compiles by id and version.
        let tried = Uuid::new_v4();
        let loaded = code.load(&definition, owner_id, tried, 1).await;
        code.forget(tried, 1);
        let tested = match loaded {
            Ok(()) => examples.run(owner_id, &definition, cancelled).await,
            Err(failure) => Err(failure),
        };
        match tested {
            Ok(reports) => assessment.add_examples(reports),
            Err(failure) => assessment.add_load_failure(&failure),
        }
        (assessment, Some(definition))
    }
}
