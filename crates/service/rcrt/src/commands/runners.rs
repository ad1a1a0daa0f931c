//! `rcrt runners`: the runners that are live, and what they do.

use chrono::{DateTime, Utc};
use clap::Args;
use rcrt_breadcrumb::{RunnerInfo, Runners as _, SlotCount};

use crate::config::Config;
use crate::connection;
use crate::output::{Output, one_line};

/// List the live runners with their slots and calls
#[derive(Debug, Args)]
#[command(after_long_help = "\
WORKER counts the slots of calls of code and native tools, WAITING those of HTTP tools: used of all. CLAIMED calls wait \
in the runner, RUNNING ones have begun. A runner is listed until it stops, or until the end of its lease if it is lost.

Examples:
  rcrt runners
  rcrt runners --output json")]
pub struct Runners {}

impl Runners {
    #[allow(clippy::unused_self)]
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let runners = connection::client(config)?.runners().await?;
        if runners.is_empty() {
            output.note("no runner is live; `rcrt runner` starts one");
        }
        let heading = [
            "ID",
            "HOST",
            "VERSION",
            "STATE",
            "WORKER",
            "WAITING",
            "CLAIMED",
            "RUNNING",
            "STARTED (UTC)",
            "REPORTED (UTC)",
            "FOLDER",
        ];
        output.list(&runners, &heading, row)
    }
}

fn row(runner: &RunnerInfo) -> Vec<String> {
    let slots = |count: SlotCount| format!("{}/{}", count.used, u64::from(count.used) + u64::from(count.free));
    let time = |at: DateTime<Utc>| at.format("%Y-%m-%d %H:%M:%S").to_string();
    vec![
        runner.runner_id.to_string(),
        one_line(&runner.host, 40),
        one_line(&runner.version, 20),
        if runner.draining { "draining" } else { "ready" }.into(),
        slots(runner.slots.worker),
        slots(runner.slots.waiting),
        runner.claimed.to_string(),
        runner.running.to_string(),
        time(runner.started_at),
        time(runner.reported_at),
        one_line(runner.working_folder.as_deref().unwrap_or_default(), 200),
    ]
}
