//! The memory of an isolate that has run a tool and waits for its next call.

use std::ops::RangeInclusive;
use std::time::Duration;

use anyhow::bail;
use rcrt_breadcrumb::Isolation;
use rcrt_load::Row;
use rcrt_sandbox::{Sandbox, SandboxOptions};
use uuid::Uuid;

use super::sandboxed::{self, ADD};
use crate::floors;
use crate::instance::{page_table_bytes, proportional_bytes, tree};
use crate::run::Run;

const SECTION: &str = "memory of an idle isolate";
const ISOLATES: usize = 100;
const MOST_MB: f64 = 3.0;
const MB: f64 = 1e6;
/// Long enough that none is stopped before the last one exists.
const IDLE: Duration = Duration::from_hours(1);
/// Workers have finished their work after a call by then.
const REST: Duration = Duration::from_secs(3);

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let isolates = run.times(ISOLATES);
    // No spare workers: one could start at any moment, and has run no tool.
    let options = SandboxOptions { spares: 0, idle: IDLE, ..sandboxed::options(isolates + 1)? };
    let sandbox = Sandbox::start(options).await?;
    // The first isolate also pays for what all share: the program, the snapshot and the process
    // that all are forked from.
    let (first, first_tables, before) = keep(&sandbox, 0..=0).await?;
    let (all, all_tables, after) = keep(&sandbox, 1..=isolates).await?;
    sandbox.close().await;
    let processes_each = after.saturating_sub(before) / isolates;
    if processes_each == 0 || after != before + processes_each * isolates {
        bail!("{before} worker processes for the first isolate, and {after} with {isolates} more");
    }
    let each = (all - first) / isolates as f64 / MB;
    let with_shared = all / (isolates + 1) as f64 / MB;
    let bare = floors::idle_engines(isolates).await;
    let mut row = Row::new(SECTION, format!("each of {isolates} idle isolates"), each, "MB")
        .target(format!("≤ {MOST_MB} MB"), each <= MOST_MB)
        .note(format!(
            "growth of proportional memory (PSS) beyond the first one, {processes_each} processes each; {with_shared:.1} MB \
             with their share of what all share"
        ));
    if let Ok(bare) = &bare {
        row = row.ratio(bare.bytes_each / MB, "a bare isolate");
    }
    run.push(row);
    let tables = (all_tables - first_tables) / isolates as f64 / MB;
    run.push(
        Row::new(SECTION, "the same with the page tables of their processes", each + tables, "MB")
            .note("the kernel has separate page tables for each process; proportional memory does not include them"),
    );
    let name = "floor: each of as many isolates in one bare process";
    run.push(match bare {
        Ok(bare) => Row::new(SECTION, name, bare.bytes_each / MB, "MB"),
        Err(why) => Row::missing(SECTION, name, format!("{why:#}")),
    });
    Ok(())
}

/// Makes the sandbox keep an isolate for each number, one after the other: calls that wait for each
/// other would wait forever if one of them gets no worker. Returns the memory of all idle workers
/// and of their page tables in bytes, and the number of processes.
async fn keep(sandbox: &Sandbox, numbers: RangeInclusive<usize>) -> anyhow::Result<(f64, f64, usize)> {
    for number in numbers {
        // Each has its own tenant and tool, so that none gets the worker of another.
        let mut call = sandboxed::invocation(&format!("{ADD}\n// {number}"), Isolation::Tool);
        call.owner_id = Uuid::from_u128(number as u128 + 1);
        sandboxed::run(sandbox, call).await.map_err(anyhow::Error::msg)?;
    }
    tokio::time::sleep(REST).await;
    let workers: Vec<u32> = tree(std::process::id())?.into_iter().filter(|id| is_worker(*id)).collect();
    Ok((proportional_bytes(&workers)? as f64, page_table_bytes(&workers) as f64, workers.len()))
}

fn is_worker(process: u32) -> bool {
    let line = std::fs::read(format!("/proc/{process}/cmdline")).unwrap_or_default();
    sandboxed::is_worker(&String::from_utf8_lossy(&line))
}
