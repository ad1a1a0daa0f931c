//! What an isolate holds that has run a tool and waits for its next call.

use std::sync::Arc;

use breadcrumb::Isolation;
use load::Row;
use tokio::sync::Barrier;

use super::sandboxed::{self, Meeting};
use crate::floors;
use crate::house::{proportional_bytes, tree};
use crate::run::Run;

const SECTION: &str = "memory of an idle isolate";
const ISOLATES: usize = 100;
const MOST_MB: f64 = 3.0;
const MB: f64 = 1e6;
/// The first one waits until the last process has started.
const PATIENCE_MS: u64 = 600_000;
/// Waits for the others once, so that no two calls share an isolate.
const MEET: &str = "let met = false;
export async function execute(input, context) {
  if (!met) { met = true; await context.api.getBreadcrumb('meet'); }
  return { sum: input.a + input.b };
}";

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let isolates = run.times(ISOLATES);
    let sandbox = sandboxed::start(isolates).await?;
    let meeting = Arc::new(Meeting(Some(Barrier::new(isolates))));
    let calls = (0..isolates).map(|number| {
        // A tool of its own for each, as a hundred tools would be.
        let mut tool = sandboxed::invocation(&format!("{MEET}\n// {number}"), Isolation::Tool);
        tool.limits.timeout_ms = PATIENCE_MS;
        sandboxed::run(&sandbox, tool, meeting.clone())
    });
    futures::future::try_join_all(calls).await.map_err(anyhow::Error::msg)?;
    let workers: Vec<u32> = tree(std::process::id())?.into_iter().filter(|id| is_worker(*id)).collect();
    let (held, processes) = (proportional_bytes(&workers)? as f64, workers.len());
    sandbox.close().await;
    let each = held / isolates as f64 / MB;
    let bare = floors::idle_engines(isolates).await;
    let mut row = Row::new(SECTION, format!("each of {isolates} isolates that were kept"), each, "MB")
        .target(format!("≤ {MOST_MB} MB"), each <= MOST_MB)
        .note(format!("proportional memory (PSS) of all {processes} worker processes, divided by {isolates}"));
    if let Ok(bare) = &bare {
        row = row.ratio(bare.bytes_each / MB, "a bare isolate");
    }
    run.push(row);
    let name = "floor: each of as many isolates in one bare process";
    run.push(match bare {
        Ok(bare) => Row::new(SECTION, name, bare.bytes_each / MB, "MB"),
        Err(why) => Row::missing(SECTION, name, format!("{why:#}")),
    });
    Ok(())
}

fn is_worker(process: u32) -> bool {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    sandboxed::is_worker(&String::from_utf8_lossy(&line))
}
