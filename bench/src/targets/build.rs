//! A cold build of what `make up` builds, into an empty folder.

use std::time::Instant;

use anyhow::{Context, bail};
use nix::sys::resource::{UsageWho, getrusage};
use rcrt_load::Row;
use tokio::process::Command;

use crate::run::Run;

const SECTION: &str = "cold build";
const WALL_SECONDS: f64 = 360.0;

pub async fn run(run: &mut Run) -> anyhow::Result<()> {
    let target = run.folder("build");
    let before = processor_seconds()?;
    let begun = Instant::now();
    let status = Command::new("cargo")
        .args(["build", "--locked", "--quiet", "--bin", "rcrt"])
        .env("CARGO_TARGET_DIR", &target)
        .current_dir(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
        .kill_on_drop(true)
        .status()
        .await
        .context("cargo cannot be started")?;
    if !status.success() {
        bail!("the build failed: {status}");
    }
    let wall = begun.elapsed().as_secs_f64();
    run.push(
        Row::new(SECTION, "wall time", wall, "s")
            .target(format!("< {WALL_SECONDS} s"), wall < WALL_SECONDS)
            .note("crates were downloaded before"),
    );
    run.push(Row::new(SECTION, "processor time", processor_seconds()? - before, "s"));
    Ok(())
}

/// The processor time of children that have exited.
fn processor_seconds() -> anyhow::Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN)?;
    let seconds = |time: nix::sys::time::TimeVal| time.tv_sec() as f64 + time.tv_usec() as f64 / 1e6;
    Ok(seconds(usage.user_time()) + seconds(usage.system_time()))
}
