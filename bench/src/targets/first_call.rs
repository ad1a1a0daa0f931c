//! The first call of a tool: load, compile, a fresh isolate, run. Compared in turns with a warm
//! call, and with starting Deno.

use std::time::{Duration, Instant};

use rcrt_breadcrumb::Isolation;
use rcrt_load::{Histogram, Row};
use serde_json::json;

use super::sandboxed::{self, ADD};
use crate::instance::{Answers, adding};
use crate::peers::{self, Peer, Which};
use crate::run::{Run, millis};

const SECTION: &str = "first call of a tool";
const TOOLS: usize = 40;
const ABOVE_WARM_MS: f64 = 3.0;
const WRITTEN_AND_CALLED_MS: f64 = 8.0;
const FASTER_THAN_DENO: f64 = 8.0;
/// Long enough for the system to become idle.
const PAUSE: Duration = Duration::from_millis(60);

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let instance = run.idle_instance(&run.folder("first-call"), &[]).await?;
    let client = instance.client();
    let answers = Answers::follow(&instance).await?;
    let warm_tool = adding("bench-reuse", Isolation::Tool).add(&client).await?;
    let deno = Deno::start(run).await;
    let (mut first, mut warm, mut written) = (Histogram::new(), Histogram::new(), Histogram::new());
    for _ in 0..run.times(20) {
        timed(&answers, &warm_tool).await?;
    }
    let mut spawned = Histogram::new();
    for number in 0..run.times(TOOLS) {
        let tool = adding(&format!("bench-first-{number}"), Isolation::Call).add(&client).await?;
        warm.record(timed(&answers, &warm_tool).await?);
        first.record(timed(&answers, &tool).await?);
        if let Ok(deno) = &deno {
            spawned.record(deno.timed().await?);
        }
        tokio::time::sleep(PAUSE).await;
        let begun = Instant::now();
        let unread = adding(&format!("bench-unread-{number}"), Isolation::Call).write(&client).await?;
        answers.call(&unread, json!({"a": 1, "b": 2})).await.map_err(anyhow::Error::msg)?;
        written.record(begun.elapsed());
    }
    instance.stop().await?;
    let in_sandbox = in_the_sandbox(run).await?;
    let (first, warm) = (first.quantile(0.5), warm.quantile(0.5));
    let above = millis(first) - millis(warm);
    run.push(Row::new(SECTION, "warm call with reuse, p50", millis(warm), "ms"));
    run.push(Row::new(SECTION, "first call of a tool, p50", millis(first), "ms").ratio(millis(warm), "a warm call"));
    let target = format!("≤ {ABOVE_WARM_MS} ms");
    run.push(Row::new(SECTION, "first call over a warm one", above, "ms").target(target, above <= ABOVE_WARM_MS));
    let written = millis(written.quantile(0.5));
    run.push(
        Row::new(SECTION, "written, and called at once: p50", written, "ms")
            .ratio(millis(warm), "a warm call")
            .target(format!("< {WRITTEN_AND_CALLED_MS} ms"), written < WRITTEN_AND_CALLED_MS)
            .note("the tool's record, then its request: read, types stripped, validated, offered, and run"),
    );
    run.push(Row::new(SECTION, "in the sandbox alone: first call of a tool, p50", in_sandbox, "ms"));
    let spawned = match deno {
        Ok(deno) => {
            deno.0.stop().await;
            millis(spawned.quantile(0.5))
        }
        Err(why) => {
            run.push(Row::missing(SECTION, "against a deno spawn", why));
            return Ok(());
        }
    };
    run.push(Row::new(SECTION, "peer: deno, started for a call: p50", spawned, "ms"));
    let times = spawned / millis(first);
    run.push(
        Row::new(SECTION, "faster than a deno spawn by", times, "×")
            .target(format!("≥ {FASTER_THAN_DENO} ×"), times >= FASTER_THAN_DENO)
            .note("the whole call, from sending its request to the event of its response, both durable; deno's has neither"),
    );
    let name = "in the sandbox alone: faster than a deno spawn by";
    run.push(
        Row::new(SECTION, name, spawned / in_sandbox, "×").note("load, compile, a fresh isolate, run: as deno does it"),
    );
    Ok(())
}

/// Deno, started for each call.
struct Deno(Peer);

impl Deno {
    /// The error is the reason why it is missing, in one sentence.
    async fn start(run: &mut Run) -> Result<Self, String> {
        let peer = peers::start(Which::Deno, &run.folder("deno")).await.map_err(|missing| missing.why)?;
        run.report.versions.insert(peer.name.into(), peer.version.clone());
        Ok(Self(peer))
    }

    async fn timed(&self) -> anyhow::Result<Duration> {
        tokio::time::sleep(PAUSE).await;
        let begun = Instant::now();
        self.0.target().call(1).await.map_err(anyhow::Error::msg)?;
        Ok(begun.elapsed())
    }
}

/// What a spawned Deno does, without a store and its events: load, compile, a fresh isolate, run.
/// In milliseconds.
async fn in_the_sandbox(run: &Run) -> anyhow::Result<f64> {
    let sandbox = sandboxed::start(2).await?;
    let mut first = Histogram::new();
    for number in 0..run.times(TOOLS) {
        let call = sandboxed::invocation(&format!("{ADD}\n// {number}"), Isolation::Call);
        tokio::time::sleep(PAUSE).await;
        let begun = Instant::now();
        sandboxed::run(&sandbox, call).await.map_err(anyhow::Error::msg)?;
        first.record(begun.elapsed());
    }
    sandbox.close().await;
    Ok(millis(first.quantile(0.5)))
}

async fn timed(answers: &Answers, tool: &str) -> anyhow::Result<Duration> {
    tokio::time::sleep(PAUSE).await;
    let begun = Instant::now();
    answers.call(tool, json!({"a": 1, "b": 2})).await.map_err(anyhow::Error::msg)?;
    Ok(begun.elapsed())
}
