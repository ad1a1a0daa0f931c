//! Refuses a tool whose examples fail, before it replaces a version that works.

use async_trait::async_trait;
use rcrt_egress::EgressOptions;
use rcrt_examples::ExampleStatus;
use rcrt_sandbox::Level;
use tokio::sync::OnceCell;

use super::local_sandbox::LocalSandbox;
use super::tested_tool::{CandidateTool, failures};
use crate::seed::{Seed, SeedCheck};

/// Runs the examples of code in a sandbox of this command. The first tool with examples starts it.
pub struct ExampleCheck {
    level: Level,
    sandbox: OnceCell<LocalSandbox>,
}

impl ExampleCheck {
    pub fn new(level: Level) -> Self {
        Self { level, sandbox: OnceCell::new() }
    }

    pub async fn close(self) {
        if let Some(sandbox) = self.sandbox.into_inner() {
            sandbox.close().await;
        }
    }
}

#[async_trait]
impl SeedCheck for ExampleCheck {
    async fn findings(&self, seed: &Seed) -> Vec<String> {
        let Some(Ok(definition)) = rcrt_validate::seed::definition(&seed.record) else { return Vec::new() };
        if !definition.is_code() || definition.examples.is_empty() {
            return Vec::new();
        }
        let path = &seed.path;
        let start = || LocalSandbox::start(self.level, EgressOptions::default());
        let sandbox = match self.sandbox.get_or_try_init(start).await {
            Ok(sandbox) => sandbox,
            Err(error) => {
                return vec![format!("{path}: its examples cannot run ({error:#}); --no-examples publishes without")];
            }
        };
        let candidate = CandidateTool { name: seed.name().to_owned(), path: None, definition: Ok(definition) };
        let tested = candidate.test(&sandbox.runner).await;
        let failed = tested.examples.iter().filter(|example| example.status == ExampleStatus::Failed);
        let failed = failed.map(|example| {
            let reasons = failures(example).collect::<Vec<_>>().join("; ");
            format!("{path}: the example {:?} fails: {reasons}", example.description)
        });
        tested.errors.iter().map(|error| format!("{path}: {error}")).chain(failed).collect()
    }
}
