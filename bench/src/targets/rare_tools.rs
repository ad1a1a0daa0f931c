//! A thousand tools that are called once: no call finds a process that another one left. So the
//! default must not prepare processes for further calls, and must cost what a process for each
//! call costs.

use std::time::Duration;

use rcrt_breadcrumb::Isolation;
use rcrt_load::Row;
use serde_json::json;

use crate::instance::{Answers, CpuTime, Instance, adding, proportional_bytes, tree};
use crate::run::Run;

const SECTION: &str = "1,000 tools called once";
const TOOLS: usize = 1_000;
const ROUNDS: usize = 4;
const KINDS: [(&str, Isolation); 2] =
    [("a process for each call", Isolation::Process), ("by default", Isolation::Call)];
const PAUSE: Duration = Duration::from_millis(20);
/// "No more than a process for each call", with room for what rounds differ by.
const MOST: f64 = 1.1;
const MB: f64 = 1e6;

struct Kind {
    what: &'static str,
    instance: Instance,
    tools: Vec<String>,
    spent: CpuTime,
    memory: f64,
}

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let mut kinds = Vec::new();
    for (number, (what, isolation)) in KINDS.into_iter().enumerate() {
        kinds.push(prepare(run, number, what, isolation).await?);
    }
    for kind in &kinds {
        run.rest(&kind.instance).await?;
    }
    let in_a_round = (run.times(TOOLS) / ROUNDS).max(1);
    for _ in 0..ROUNDS {
        for kind in &mut kinds {
            kind.round(in_a_round).await?;
        }
    }
    let calls = (in_a_round * ROUNDS) as u64;
    let process = &kinds[0];
    let base = process.spent.of_each(calls).0;
    for kind in &kinds {
        let (each, parts) = kind.spent.of_each(calls);
        run.push(kind.row("processor time of a call", each, base, "ms").note(parts));
    }
    for kind in &kinds {
        run.push(kind.row("memory of the system after the last call", kind.memory, process.memory, "MB"));
    }
    for kind in kinds {
        kind.instance.stop().await?;
    }
    Ok(())
}

async fn prepare(run: &mut Run, number: usize, what: &'static str, isolation: Isolation) -> anyhow::Result<Kind> {
    let instance = run.idle_instance(&run.folder(&format!("rare-tools-{number}")), &[]).await?;
    let client = instance.client();
    let mut tools = Vec::new();
    for number in 1..run.times(TOOLS) {
        tools.push(adding(&format!("bench-rare-{number}"), isolation).write(&client).await?);
    }
    // When this one is offered, all older ones are.
    tools.push(adding("bench-rare-last", isolation).add(&client).await?);
    Ok(Kind { what, instance, tools, spent: CpuTime::default(), memory: 0.0 })
}

impl Kind {
    /// `base`: the value of a process for each call. The default has a target.
    fn row(&self, what: &str, value: f64, base: f64, unit: &'static str) -> Row {
        let [(process, _), (default, _)] = KINDS;
        let row = Row::new(SECTION, format!("{}: {what}", self.what), value, unit).ratio(base, process);
        if self.what == default { row.target(format!("≤ {MOST} × {process}"), value <= MOST * base) } else { row }
    }

    /// Calls as many tools that were not called before.
    async fn round(&mut self, calls: usize) -> anyhow::Result<()> {
        let answers = Answers::follow(&self.instance).await?;
        let process = self.instance.process_id();
        let before = CpuTime::of(process)?;
        for tool in self.tools.drain(..calls) {
            tokio::time::sleep(PAUSE).await;
            answers.call(&tool, json!({"a": 1, "b": 2})).await.map_err(anyhow::Error::msg)?;
        }
        self.spent.add(&CpuTime::of(process)?.since(&before));
        self.memory = proportional_bytes(&tree(process)?)? as f64 / MB;
        Ok(())
    }
}
