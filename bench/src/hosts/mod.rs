//! More than one machine: two runners work for one store with a tool that only computes. Each has
//! one processor and, if this user can create one, its own network namespace. The section also
//! measures what a call costs the store, which shows the next limit.

mod cost;
mod invoking;
mod network;
mod processes;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::bail;
use rcrt_breadcrumb::Isolation;
use rcrt_load::{Measured, Row};
use serde_json::json;

use self::cost::Costs;
use self::invoking::Invoking;
use self::network::Host;
use self::processes::{Runner, Server};
use crate::instance::{Tool, adding};
use crate::rounds::median;
use crate::run::Run;

const SECTION: &str = "hosts";
/// More than two runners claim at once, so that neither waits for work.
const IN_FLIGHT: usize = 24;
const LEAST: f64 = 1.8;
/// The processor time of one call: much more than the store's work for it.
const WORK: Duration = Duration::from_millis(250);
/// A first guess. The bench measures how many steps make up `WORK` on this machine.
const STEPS: u64 = 6_000_000;
const WARM_UP: Duration = Duration::from_secs(3);

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    if std::thread::available_parallelism()?.get() < 2 {
        bail!("two runners need two processors, and this machine has one");
    }
    let folder = run.folder("hosts");
    std::fs::create_dir_all(&folder)?;
    let server = Server::start(&folder).await?;
    let hosts = [Host::new(0).await, Host::new(1).await];
    let measured = measure(run, &folder, &hosts, &server).await;
    server.stop().await;
    measured
}

async fn measure(run: &mut Run, folder: &Path, hosts: &[Host; 2], server: &Server) -> anyhow::Result<()> {
    let mut working = Runner::start(folder, &hosts[0], server).await?;
    let tool = computing().add(&server.client()?).await?;
    let steps = if run.is_quick { STEPS / 20 } else { steps(run, server, &tool).await? };
    let target = Arc::new(Invoking { client: server.client()?, tool, input: json!({"steps": steps}) });

    // One, both, the other one, both, the first one: other load on the machine affects all alike.
    let mut alone = vec![rate(&run.closed(target.clone(), IN_FLIGHT, WARM_UP, run.seconds(12)).await)?];
    let mut together = Vec::new();
    for round in 1..=run.times(2).max(1) {
        let other = Runner::start(folder, &hosts[round % 2], server).await?;
        together.push(rate(&run.closed(target.clone(), IN_FLIGHT, WARM_UP, run.seconds(12)).await)?);
        working.stop().await;
        working = other;
        alone.push(rate(&run.closed(target.clone(), IN_FLIGHT, WARM_UP, run.seconds(12)).await)?);
    }
    let (one, two) = (median(alone), median(together));
    run.push(
        Row::new(SECTION, "one runner, one processor, a tool that computes", one, "calls/s")
            .note(format!("{:.0} ms of its processor for each call", 1e3 / one)),
    );
    run.push(
        Row::new(SECTION, "two runners, a processor each, one store", two, "calls/s")
            .ratio(one, "one runner")
            .target(format!("≥ {LEAST} ×"), two >= LEAST * one)
            .note(format!("{}; store, server and client share the two processors with them", hosts[0].describe())),
    );
    costs(run, server, &working).await?;
    working.stop().await;
    Ok(())
}

/// How many steps take as long as `WORK`.
async fn steps(run: &Run, server: &Server, tool: &str) -> anyhow::Result<u64> {
    let input = json!({"steps": STEPS});
    let target = Arc::new(Invoking { client: server.client()?, tool: tool.to_owned(), input });
    let rate = rate(&run.closed(target, IN_FLIGHT, WARM_UP, run.seconds(5)).await)?;
    Ok((STEPS as f64 * rate * WORK.as_secs_f64()) as u64)
}

/// What a call costs apart from its tool, measured with a tool that does almost nothing. Each
/// further runner adds this to the store's load.
async fn costs(run: &mut Run, server: &Server, runner: &Runner) -> anyhow::Result<()> {
    let tool = adding("bench-adding", Isolation::Tool).add(&server.client()?).await?;
    let target = Arc::new(Invoking { client: server.client()?, tool, input: json!({"a": 1, "b": 2}) });
    run.closed(target.clone(), 32, Duration::ZERO, WARM_UP).await;
    let before = Costs::now(server, runner).await?;
    let measured = run.closed(target, 32, Duration::ZERO, run.seconds(8)).await;
    let cost = Costs::now(server, runner).await?.since(&before);
    let calls = rate(&measured)? * measured.took.as_secs_f64();
    let rows = [
        ("the server's processor time for a call", cost.server.as_secs_f64() * 1e6, "µs"),
        ("Postgres's processor time for a call", cost.postgres.as_secs_f64() * 1e6, "µs"),
        ("the runner's processor time for a call, tool included", cost.runner.as_secs_f64() * 1e6, "µs"),
        ("transactions for a call", cost.transactions as f64, ""),
        ("write-ahead log for a call", cost.log_bytes as f64, "bytes"),
        ("what a call leaves in the database", cost.kept_bytes as f64, "bytes"),
    ];
    for (name, value, unit) in rows {
        run.push(Row::new(SECTION, name, value / calls, unit));
    }
    let store = (cost.server + cost.postgres).as_secs_f64() / calls;
    run.push(
        Row::new(SECTION, "calls that one processor of server and Postgres carries", 1.0 / store, "calls/s").note(
            format!(
                "the limit: with tools of 100 ms, {:.0} processors of runners keep one processor of the store busy",
                0.1 / store
            ),
        ),
    );
    Ok(())
}

/// A loop that the engine cannot optimise away.
fn computing() -> Tool {
    let source = "export async function execute(input: { steps: number }): Promise<{ rest: number }> {\n  \
                  let rest = 1;\n  \
                  for (let step = 0; step < input.steps; step++) rest = (rest * 48271) % 2147483647;\n  \
                  return { rest };\n}\n";
    let steps = json!({"steps": {"type": "integer", "description": "The number of steps."}});
    Tool::code("bench-computing", source, Isolation::Tool, &steps, &json!({"steps": 1}))
}

/// The rate of a run. A run with failed calls is an error.
fn rate(measured: &Measured) -> anyhow::Result<f64> {
    match measured.failures.iter().next() {
        Some((why, times)) => bail!("{times} calls failed: {why}"),
        None if measured.calls == 0 => bail!("no call finished in {:?}", measured.took),
        None => Ok(measured.per_second()),
    }
}
