//! The dashboard in Chromium: what its first view transfers and takes, in turns with an empty page,
//! and what a frame of a long list costs. `dashboard/tests/measure.spec.ts` measures.

use std::process::Stdio;

use anyhow::{Context, bail};
use rcrt_load::Row;
use tokio::process::Command;

use crate::instance::program;
use crate::run::Run;

const SECTION: &str = "dashboard";
const ROUNDS: usize = 20;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let rows = run.folder("dashboard.json");
    let mut measuring = Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../build/test-dashboard"));
    measuring.arg(program("rcrt")?).stdin(Stdio::null()).kill_on_drop(true);
    measuring.env("RCRT_DASHBOARD_ROWS", &rows).env("RCRT_DASHBOARD_ROUNDS", run.times(ROUNDS).to_string());
    let output = measuring.output().await.context("build/test-dashboard cannot be started")?;
    let said = String::from_utf8_lossy(&output.stdout);
    let last = said.trim_end().lines().last().unwrap_or_default();
    if !output.status.success() {
        bail!("build/test-dashboard failed: {} {last}", String::from_utf8_lossy(&output.stderr).trim());
    }
    let Ok(text) = std::fs::read_to_string(&rows) else {
        // It says which program this machine lacks.
        run.push(Row::missing(SECTION, "the dashboard in a browser", last));
        return Ok(());
    };
    for row in serde_json::from_str::<Vec<Row>>(&text).context("the rows of build/test-dashboard")? {
        run.push(row);
    }
    Ok(())
}
