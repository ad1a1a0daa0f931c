//! Waits until an instance is idle. On a new store, embedding the included tools and guides takes
//! some seconds, and so does validating thousands of new tools. Both would disturb a measurement.

use std::time::Duration;

use anyhow::{Context, bail};
use tokio::time::{Instant, sleep};

use super::cpu_time::processor_time;

const LOOK_EVERY: Duration = Duration::from_secs(1);
/// It is idle after this many idle samples in a row.
const LOOKS: u32 = 2;
/// The share of a processor that an idle process uses at most.
const IDLE_SHARE: f64 = 0.05;
const PATIENCE: Duration = Duration::from_mins(5);

/// Returns when the process has used almost no processor time for a while.
pub async fn wait_until_idle(process: u32) -> anyhow::Result<()> {
    let read = |process| processor_time(process).with_context(|| format!("process {process}"));
    let (begun, mut idle) = (Instant::now(), 0);
    let mut before = (begun, read(process)?);
    while idle < LOOKS {
        if begun.elapsed() > PATIENCE {
            bail!("the system is not idle after {} s", PATIENCE.as_secs());
        }
        sleep(LOOK_EVERY).await;
        let now = (Instant::now(), read(process)?);
        let took = now.1.saturating_sub(before.1).as_secs_f64() / (now.0 - before.0).as_secs_f64();
        idle = if took < IDLE_SHARE { idle + 1 } else { 0 };
        before = now;
    }
    Ok(())
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_process_that_waits_is_idle() {
        let run =
            |program: &str, argument: &[&str]| std::process::Command::new(program).args(argument).spawn().unwrap();
        let (mut waits, mut works) = (run("sleep", &["60"]), run("sh", &["-c", "while :; do :; done"]));
        // The other process is still busy when the first is found idle.
        let is_idle = tokio::select! {
            biased;
            idle = wait_until_idle(works.id()) => idle.is_ok(),
            idle = wait_until_idle(waits.id()) => { idle.unwrap(); false }
        };
        for child in [&mut waits, &mut works] {
            child.kill().unwrap();
            child.wait().unwrap();
        }
        assert!(!is_idle);
    }
}
