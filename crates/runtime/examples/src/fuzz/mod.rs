//! Tries a tool with inputs made from its `input_schema`.

mod generate;
mod shrink;

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Example, ToolDefinition, ToolFailure, check_javascript_numbers};
use serde_json::{Value, json};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::network::shown_failure;
use crate::report::{ExampleReport, ExampleStatus};
use crate::runner::{Attempt, ExampleRunner, Tested};
use generate::Generator;

/// Most inputs that are made for one that fits the schema. The generator does not know patterns.
const TRIES: u32 = 20;
/// The most time of one run, whose limit the sandbox enforces before.
const MAX_RUN: Duration = Duration::from_mins(1);
/// Most runs to make a counterexample smaller.
const MAX_SHRINKS: u32 = 300;
/// What the engine throws for a mistake in the code. A tool reports a failure with other names.
const MISTAKES: [&str; 4] = ["TypeError", "RangeError", "ReferenceError", "SyntaxError"];

/// How one input ended.
enum Judged {
    Fine,
    /// The tool needs a network or a record, which the input does not describe.
    NotDescribed,
    /// The tool was denied something. That is right for some inputs, but not for all.
    Refused(Value, String),
    Wrong(Value, String),
}

impl ExampleRunner {
    /// Runs a tool with this many inputs that fit its schema, the same ones for the same seed, and
    /// reports them as one example. Each must end with an output that fits `output_schema` or with
    /// a failure that the tool states: a thrown error that is not one of the engine's. The report
    /// of a failure has the smallest input that was found for it.
    pub async fn fuzz(
        &self,
        definition: &Arc<ToolDefinition>,
        inputs: u32,
        seed: u64,
        cancelled: &CancellationToken,
    ) -> Result<ExampleReport, ToolFailure> {
        let tool = Tested::prepare(Uuid::nil(), definition).await?;
        let began = Instant::now();
        let mut generator = Generator::new(&definition.input_schema, &definition.examples, seed);
        let (mut ran, mut judged) = (0, 0);
        let (mut wrong, mut refused) = (None, None);
        for _ in 0..u64::from(inputs) * u64::from(TRIES) {
            if ran == inputs || cancelled.is_cancelled() {
                break;
            }
            let input = generator.input();
            if !tool.accepts(&input) {
                continue;
            }
            ran += 1;
            match self.judge(&tool, &input, cancelled).await {
                Judged::Fine => judged += 1,
                Judged::NotDescribed => {}
                Judged::Refused(actual, reason) => {
                    refused.get_or_insert((input, actual, reason));
                }
                Judged::Wrong(actual, reason) => {
                    wrong = Some(self.shrunk(&tool, (input, actual, reason), cancelled).await);
                    break;
                }
            }
        }
        let description = format!("{ran} inputs made from input_schema (seed {seed})");
        let mut report = match wrong.or(refused.filter(|_| judged == 0)) {
            Some((input, actual, reason)) => {
                let mut report =
                    ExampleReport::failed(&description, format!("with the input {}: {reason}", shown(&input)));
                report.actual = Some(actual);
                report
            }
            None if ran == 0 => ExampleReport::not_run(&description, "no input was found that fits input_schema"),
            None if judged == 0 => ExampleReport::not_run(&description, "each run used the network"),
            None => ExampleReport::of(&description, ExampleStatus::Passed, None),
        };
        report.duration_ms = began.elapsed().as_millis() as u64;
        Ok(report)
    }

    async fn judge(&self, tool: &Tested<'_>, input: &Value, cancelled: &CancellationToken) -> Judged {
        let example = Example { input: input.clone(), ..Example::default() };
        let Attempt { outcome, seen, .. } =
            match self.attempt(tool, &example, Instant::now() + MAX_RUN, cancelled).await {
                Ok(attempt) => attempt,
                Err(problem) => return Judged::Wrong(Value::Null, problem),
            };
        if seen.not_described.is_some() {
            return Judged::NotDescribed;
        }
        match outcome.result {
            Ok(output) => match tool.output_problem(&output) {
                Some(problem) => Judged::Wrong(output, problem),
                None => Judged::Fine,
            },
            Err(failure) if is_stated(&failure) => Judged::Fine,
            Err(failure) => {
                let actual = shown_failure(failure.code.as_str(), &failure.message);
                let reason = format!("the tool failed{}: {failure}", tool.place(&failure));
                let is_refused = failure.code == ErrorCode::PermissionDenied;
                if is_refused { Judged::Refused(actual, reason) } else { Judged::Wrong(actual, reason) }
            }
        }
    }

    /// The smallest input that still fails.
    async fn shrunk(
        &self,
        tool: &Tested<'_>,
        mut found: (Value, Value, String),
        cancelled: &CancellationToken,
    ) -> (Value, Value, String) {
        let mut runs = 0;
        'smaller: loop {
            for input in shrink::smaller(&found.0) {
                if runs == MAX_SHRINKS || cancelled.is_cancelled() {
                    return found;
                }
                if !tool.accepts(&input) {
                    continue;
                }
                runs += 1;
                if let Judged::Wrong(actual, reason) = self.judge(tool, &input, cancelled).await {
                    found = (input, actual, reason);
                    continue 'smaller;
                }
            }
            return found;
        }
    }
}

impl Tested<'_> {
    /// Whether a call with this input would run.
    fn accepts(&self, input: &Value) -> bool {
        self.fits(input) && check_javascript_numbers(input).is_ok()
    }
}

/// Whether the tool chose to fail: it threw an error of its own.
fn is_stated(failure: &ToolFailure) -> bool {
    let name = failure.details.as_ref().and_then(|details| details["name"].as_str());
    failure.code == ErrorCode::ExecutionFailed && name.is_some_and(|name| !MISTAKES.contains(&name))
}

/// An input for a person: a long one is cut.
fn shown(input: &Value) -> String {
    const MAX_SHOWN: usize = 500;
    let text = input.to_string();
    if text.chars().count() <= MAX_SHOWN {
        return text;
    }
    let start: String = text.chars().take(MAX_SHOWN).collect();
    format!("{} ({} characters)", json!(start), text.chars().count())
}
