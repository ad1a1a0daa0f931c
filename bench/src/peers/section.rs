//! RCRT and every peer in turns, under the same loads: 32 calls in flight, and one call at a time
//! at low load.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::Isolation;
use rcrt_load::plot::Bars;
use rcrt_load::{Row, Target};
use serde_json::json;

use super::{Missing, Peer, Which, start};
use crate::instance::{Answers, Instance, ToolCalls, adding};
use crate::rounds::Rounds;
use crate::run::{Run, millis};

const SECTION: &str = "RCRT and its peers";
const IN_FLIGHT: usize = 32;
const ROUNDS: usize = 3;
/// Enough calls for a just-in-time compiler to finish.
const WARM_UP: Duration = Duration::from_secs(2);
const TIMES_A_PEER: f64 = 2.0;
const RCRT: &str = "RCRT";
const RCRT_WITH_REUSE: &str = "RCRT, with reuse";

/// The results of one system in all rounds.
#[derive(Default)]
struct PeerResults {
    loaded: Rounds,
    at_low_load: Rounds,
    /// Requests and results survive a crash, as RCRT's do.
    is_durable: bool,
    settings: &'static str,
}

impl PeerResults {
    async fn measure(&mut self, run: &Run, target: &Arc<dyn Target>, at_low_load: LowLoad) {
        self.loaded.add(&run.closed(target.clone(), IN_FLIGHT, WARM_UP, run.seconds(6)).await);
        self.at_low_load.add(&match at_low_load {
            LowLoad::Seldom => run.at_low_load(target.clone(), run.seconds(8)).await,
            LowLoad::OneAfterTheOther => run.closed(target.clone(), 1, Duration::ZERO, run.seconds(5)).await,
        });
    }

    /// Whether its numbers count: a system that loses calls is not a valid comparison.
    fn is_sound(&self) -> bool {
        self.loaded.failed + self.at_low_load.failed == 0
    }

    fn median_ms(&self) -> f64 {
        millis(self.at_low_load.quantile(0.5))
    }
}

/// How the calls at low load are sent.
#[derive(Clone, Copy)]
enum LowLoad {
    Seldom,
    /// One after the other, for systems whose calls take longer than the time between calls at
    /// rest.
    OneAfterTheOther,
}

type AllResults = BTreeMap<&'static str, PeerResults>;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let (mut done, mut missing): (AllResults, BTreeMap<&str, String>) = Default::default();
    for round in 0..run.times(ROUNDS).max(1) {
        ours(run, round, &mut done).await?;
        for which in Which::ALL {
            if run.stop.is_cancelled() {
                return Ok(());
            }
            let folder = run.folder(&format!("{}{round}", which.folder()));
            match start(which, &folder).await {
                Ok(peer) => theirs(run, which, peer, &mut done).await,
                Err(Missing { name, why }) => drop(missing.insert(name, why)),
            }
            // Some write gigabytes.
            let _ = std::fs::remove_dir_all(folder);
        }
    }
    for (name, why) in missing {
        done.remove(name);
        run.push(Row::missing(SECTION, name, why));
    }
    tell(run, &done)
}

/// RCRT on its own store, as each peer has one.
async fn ours(run: &mut Run, round: usize, done: &mut AllResults) -> anyhow::Result<()> {
    let instance: Instance = run.idle_instance(&run.folder(&format!("rcrt{round}")), &[]).await?;
    let client = instance.client();
    let answers = Answers::follow(&instance).await?;
    let input = |number| json!({"a": number, "b": 2});
    for (name, isolation) in [(RCRT, Isolation::Call), (RCRT_WITH_REUSE, Isolation::Tool)] {
        let tool = adding(&format!("bench-{isolation:?}").to_lowercase(), isolation).add(&client).await?;
        let target: Arc<dyn Target> = Arc::new(ToolCalls { answers: answers.clone(), tool, input });
        let of_this = done.entry(name).or_default();
        of_this.is_durable = true;
        of_this.measure(run, &target, LowLoad::Seldom).await;
    }
    instance.stop().await
}

async fn theirs(run: &mut Run, which: Which, peer: Peer, done: &mut AllResults) {
    run.report.versions.insert(peer.name.into(), peer.version.clone());
    let of_this = done.entry(peer.name).or_default();
    (of_this.is_durable, of_this.settings) = (peer.is_durable, peer.settings);
    let at_low_load = if which == Which::Deno { LowLoad::OneAfterTheOther } else { LowLoad::Seldom };
    of_this.measure(run, &peer.target(), at_low_load).await;
    peer.stop().await;
}

fn tell(run: &mut Run, done: &AllResults) -> anyhow::Result<()> {
    let mut rates = Bars::new("Calls per second, 32 in flight", "calls/s");
    let mut medians = Bars::new("Latency at low load, p50", "ms");
    for (name, done) in done {
        let promise = if done.is_durable { "durable" } else { "not durable" };
        let note = [promise, done.settings].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("; ");
        let rate = Row::new(SECTION, format!("{name}: 32 in flight"), done.loaded.per_second(), "calls/s").note(note);
        run.push(done.loaded.with_failures(rate));
        for (share, quantile) in [("p50", 0.5), ("p99", 0.99)] {
            let value = millis(done.at_low_load.quantile(quantile));
            let row = Row::new(SECTION, format!("{name}: latency at low load, {share}"), value, "ms");
            run.push(done.at_low_load.with_failures(row));
        }
        rates = rates.bar(format!("{name} ({promise})"), done.loaded.per_second());
        medians = medians.bar(format!("{name} ({promise})"), done.median_ms());
    }
    run.pictures.push(("peers-rate".into(), rates.svg()?));
    run.pictures.push(("peers-latency".into(), medians.svg()?));
    judge(run, done);
    Ok(())
}

fn judge(run: &mut Run, done: &AllResults) {
    let is_ours = |name: &str| [RCRT, RCRT_WITH_REUSE].contains(&name);
    let durable: Vec<_> =
        done.iter().filter(|(name, done)| !is_ours(name) && done.is_durable && done.is_sound()).collect();
    let (Some(fresh), Some(reuse)) = (done.get(RCRT), done.get(RCRT_WITH_REUSE)) else { return };
    let rate = |done: &PeerResults| done.loaded.per_second();
    let Some((best, of_best)) = durable.iter().max_by(|(_, a), (_, b)| rate(a).total_cmp(&rate(b))) else {
        run.push(Row::missing(SECTION, "against durable peers", "none was measured"));
        return;
    };
    run.push(
        Row::new(SECTION, "warm tool with reuse, against the best durable peer", rate(reuse), "calls/s")
            .ratio(rate(of_best), **best)
            .target(format!("≥ {TIMES_A_PEER} ×"), rate(reuse) >= TIMES_A_PEER * rate(of_best)),
    );
    let row = Row::new(SECTION, "the default, against the same", rate(fresh), "calls/s");
    run.push(row.ratio(rate(of_best), **best));
    for (name, peer) in &durable {
        let (ours, theirs) = (fresh.median_ms(), peer.median_ms());
        let row = Row::new(SECTION, format!("p50 at low load, against {name}"), ours, "ms").ratio(theirs, **name);
        run.push(row.target("below it", ours < theirs));
        let row = Row::new(SECTION, format!("p50 at low load with reuse, against {name}"), reuse.median_ms(), "ms");
        run.push(row.ratio(theirs, **name));
    }
}
