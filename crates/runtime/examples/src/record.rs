//! Makes an example that runs from one that needs the network or records, by one real run.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Breadcrumbs, Example, ToolDefinition};
use rcrt_egress::Vault;
use rcrt_executors::DiscardProgress;
use rcrt_sandbox::Seed;
use tokio_util::sync::CancellationToken;

use crate::runner::{DEFAULT_SEED, ExampleRunner};
use crate::update::{exact, merged};
use crate::{ExampleStatus, LiveReport, LiveRun};

impl ExampleRunner {
    /// Runs the tool once on the real network, and returns the example with `http`, `calls`,
    /// `breadcrumbs` and `writes` of that run; `None` if the tool used none of them. The output is
    /// that of a run of the new example, which must pass. The error says why it cannot be recorded.
    pub async fn record(
        &self,
        definition: &Arc<ToolDefinition>,
        example: &Example,
        secrets: Vault,
        breadcrumbs: Option<Arc<dyn Breadcrumbs>>,
        cancelled: &CancellationToken,
    ) -> Result<Option<Example>, String> {
        // The clock of the run, so that both runs send the same times.
        let now = example.now.unwrap_or_else(Utc::now).timestamp_millis();
        let run = LiveRun {
            input: example.input.clone(),
            secrets,
            breadcrumbs,
            progress: Arc::new(DiscardProgress),
            recording: Some(Seed { now_ms: now, random: example.seed.unwrap_or(DEFAULT_SEED) }),
        };
        let LiveReport { result, writes, exchanges, calls, breadcrumbs, .. } =
            self.run_live(definition, run, cancelled).await;
        if let (Err(failure), None) = (&result, &example.error) {
            return Err(format!("the tool failed: {failure}"));
        }
        if writes.is_empty() && exchanges.is_empty() && calls.is_empty() && breadcrumbs.is_empty() {
            return Ok(None);
        }
        let mut recorded = Example {
            http: (!exchanges.is_empty()).then_some(exchanges),
            calls: (!calls.is_empty()).then_some(calls),
            breadcrumbs,
            now: DateTime::<Utc>::from_timestamp_millis(now),
            output: None,
            // The values are those of the operator.
            secrets: std::collections::BTreeMap::new(),
            ..example.clone()
        };
        let report = self.run_example(definition, &recorded, cancelled).await.map_err(|failure| failure.message)?;
        if report.status != ExampleStatus::Passed {
            let reason = report.reason.unwrap_or_else(|| "its result differs".to_owned());
            return Err(format!("the recorded example does not pass: {reason}"));
        }
        recorded.writes = (!report.writes.is_empty()).then(|| report.writes.iter().map(exact).collect());
        if recorded.error.is_none() {
            recorded.output = match (&example.output, report.actual) {
                (Some(expected), Some(actual)) => Some(merged(expected, &actual)),
                (_, actual) => actual.as_ref().map(exact),
            };
        }
        Ok(Some(recorded))
    }
}
