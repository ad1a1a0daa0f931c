//! The tools that wait for something, as the runners report it, otherwise as a runner on this
//! machine would find them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rcrt_authoring::Assessor;
use rcrt_breadcrumb::StoreError;
use rcrt_egress::{Egress, EgressOptions};
use rcrt_executors::Executor;
use serde::Serialize;
use uuid::Uuid;

use crate::assembly::NativeToolOptions;
use crate::config::Config;
use crate::output::{Output, Style};
use crate::{connection, embedded};

/// Timeout for reading the catalog.
const ANSWER_TIME: Duration = Duration::from_secs(5);

#[derive(Serialize)]
pub struct Tools {
    /// `catalog` if runners wrote it, or `this machine` if no server responds: then only native
    /// tools.
    from: &'static str,
    /// Number of tools that can be called.
    offered: usize,
    waiting: Vec<BlockedTool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<String>,
}

#[derive(Serialize)]
struct BlockedTool {
    name: String,
    /// Sentences that say what to do.
    missing_requirements: Vec<String>,
}

impl Tools {
    pub async fn find(config: &Config, native: &NativeToolOptions, server_answers: bool) -> Self {
        let (from, found) = if server_answers {
            ("catalog", of_catalog(config).await)
        } else {
            ("this machine", of_machine(config, native).await)
        };
        match found {
            Ok((offered, waiting)) => {
                let nothing = offered == 0 && waiting.is_empty();
                let problem = nothing.then(|| "no runner has validated its tools yet".to_owned());
                Self { from, offered, waiting, problem }
            }
            Err(error) => Self { from, offered: 0, waiting: Vec::new(), problem: Some(format!("{error:#}")) },
        }
    }

    pub fn print(&self, output: Output) -> anyhow::Result<()> {
        let scope = if self.from == "catalog" { "" } else { " of the program itself (no server responds)" };
        output.line(&format!("\n{}", output.paint(Style::Bold, &format!("Tools{scope}:"))))?;
        if let Some(problem) = &self.problem {
            return output.line(&format!("  {}", output.paint(Style::Warning, problem)));
        }
        let waiting =
            if self.waiting.is_empty() { "none has missing requirements" } else { "these have missing requirements:" };
        output.line(&format!("  {} can be called; {waiting}", self.offered))?;
        let width = self.waiting.iter().map(|tool| tool.name.chars().count()).fold(0, usize::max) + 2;
        for BlockedTool { name, missing_requirements } in &self.waiting {
            for (index, what) in missing_requirements.iter().enumerate() {
                let name = if index == 0 { name } else { "" };
                output.line(&format!("  {}{what}", output.paint(Style::Warning, &format!("{name:<width$}"))))?;
            }
        }
        Ok(())
    }
}

async fn of_catalog(config: &Config) -> anyhow::Result<(usize, Vec<BlockedTool>)> {
    let client = connection::client(config)?;
    let asked = tokio::time::timeout(ANSWER_TIME, client.tools()).await;
    let catalog = asked.map_err(|_| StoreError::Unavailable("it does not respond".into())).flatten()?;
    let waiting = catalog
        .waiting
        .into_iter()
        .map(|tool| BlockedTool { name: tool.name, missing_requirements: tool.missing_requirements });
    Ok((catalog.tools.len(), waiting.collect()))
}

/// Checks the native tools as a runner with these options does. Secrets cannot be checked without a
/// server.
async fn of_machine(config: &Config, native: &NativeToolOptions) -> anyhow::Result<(usize, Vec<BlockedTool>)> {
    let egress = Arc::new(Egress::new(EgressOptions::default())?);
    let executor = native.tools(&config.data, egress, Assessor::without_sandbox())?.executor;
    let (mut offered, mut waiting) = (0, Vec::new());
    for (path, text) in embedded::FILES.iter().filter(|(path, _)| path.starts_with("tools-native/")) {
        let seed = rcrt_validate::seed::read(path, text, None)?;
        let tool = seed.tool.with_context(|| format!("{path} is not a tool"))?;
        // After the load, `missing_requirements` is known.
        let _ = executor.load(&tool, Uuid::nil(), Uuid::nil(), 1).await;
        let mut missing_requirements = executor.missing_requirements(&tool);
        missing_requirements.extend(executor.required_secrets(&tool).into_iter().map(|secret| {
            format!(
                "It needs a grant of the secret {secret}. `rcrt secret list` shows the grants if the server is running."
            )
        }));
        if missing_requirements.is_empty() {
            offered += 1;
        } else {
            waiting.push(BlockedTool { name: tool.name, missing_requirements });
        }
    }
    Ok((offered, waiting))
}
