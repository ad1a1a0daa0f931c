//! The baseline for the engine: isolates from the same snapshot are made, loaded with the same
//! tool, called and dropped, without jail, protocol or limits. This runs in a separate program,
//! because nothing else in the bench links the engine.

use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::process::Command;

use crate::instance::program;

/// One isolate after the other. Medians in microseconds.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Engine {
    pub per_second: f64,
    pub made_us: f64,
    pub loaded_us: f64,
    pub called_us: f64,
    /// The first call of a fresh isolate, and later calls of the same one.
    pub warm_call_us: f64,
}

impl Engine {
    /// From making the isolate to the result.
    pub fn whole(&self) -> Duration {
        Duration::from_secs_f64((self.made_us + self.loaded_us + self.called_us) / 1e6)
    }
}

/// Idle isolates that have run the tool.
#[derive(Debug, Clone, Copy, Deserialize)]
pub struct Idle {
    pub bytes_each: f64,
}

/// One process at a time.
pub async fn at_low_load(time: Duration) -> anyhow::Result<Engine> {
    run(&["loop", &time.as_secs_f64().to_string()]).await
}

/// Isolates per second of `processes` processes at the same time.
pub async fn side_by_side(processes: usize, time: Duration) -> anyhow::Result<f64> {
    let runs = (0..processes).map(|_| at_low_load(time));
    let measured = futures::future::try_join_all(runs).await?;
    Ok(measured.iter().map(|engine| engine.per_second).sum())
}

pub async fn idle(isolates: usize) -> anyhow::Result<Idle> {
    run(&["idle", &isolates.to_string()]).await
}

async fn run<T: DeserializeOwned>(arguments: &[&str]) -> anyhow::Result<T> {
    let output = Command::new(program("engine_floor")?)
        .args(arguments)
        .stdin(Stdio::null())
        .kill_on_drop(true)
        .output()
        .await
        .context("engine_floor cannot be started")?;
    if !output.status.success() {
        bail!("engine_floor: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(serde_json::from_slice(&output.stdout)?)
}
