//! One run of the bench: how long measurements take, where files are, and the results so far.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use rcrt_load::{Measured, Pace, Plan, Report, Row, Target, drive};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::instance::{Instance, wait_until_idle};

/// Calls per second at low load: so few that each finds an idle system.
pub const LOW_LOAD_PER_SECOND: f64 = 20.0;
/// The most calls in flight at low load, if one is slow.
const LOW_LOAD_IN_FLIGHT: usize = 64;

pub struct Run {
    /// A smoke test: everything runs, but too shortly for meaningful numbers.
    pub is_quick: bool,
    /// Stops the current measurement.
    pub stop: CancellationToken,
    /// The results of the current section.
    pub report: Report,
    /// The section's pictures: a file name that starts with the section's name, and the SVG text.
    pub pictures: Vec<(String, String)>,
    /// Fresh folders are made in it. It is removed when the run finishes.
    root: TempDir,
}

impl Run {
    pub fn new(is_quick: bool, stop: CancellationToken, report: Report) -> anyhow::Result<Self> {
        let root = tempfile::Builder::new().prefix("rcrt-bench-").tempdir_in(on_disk()?)?;
        Ok(Self { is_quick, stop, report, pictures: Vec::new(), root })
    }

    /// A path in this run's folder that does not exist yet.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    pub fn root(&self) -> &Path {
        self.root.path()
    }

    /// How long to measure something that takes `whole` seconds in a complete run.
    pub fn seconds(&self, whole: u64) -> Duration {
        if self.is_quick { Duration::from_secs(whole.div_ceil(6).min(2)) } else { Duration::from_secs(whole) }
    }

    /// How often to do something that is done `whole` times in a complete run.
    pub fn times(&self, whole: usize) -> usize {
        if self.is_quick { whole.div_ceil(10) } else { whole }
    }

    /// Starts an instance on this data folder, and records its versions.
    pub async fn instance(&mut self, data: &Path, arguments: &[&str]) -> anyhow::Result<Instance> {
        let instance = Instance::start(data, arguments).await?;
        if let Some(version) = instance.hello["postgres"].as_str() {
            self.report.versions.insert("Postgres".into(), version.into());
        }
        Ok(instance)
    }

    /// Starts an instance and waits until it is idle.
    pub async fn idle_instance(&mut self, data: &Path, arguments: &[&str]) -> anyhow::Result<Instance> {
        let instance = self.instance(data, arguments).await?;
        self.rest(&instance).await?;
        Ok(instance)
    }

    /// Waits until the instance is idle.
    pub async fn rest(&self, instance: &Instance) -> anyhow::Result<()> {
        if self.is_quick {
            return Ok(());
        }
        wait_until_idle(instance.process_id()).await
    }

    pub fn push(&mut self, row: Row) {
        self.report.push(row);
    }

    /// A closed loop with `in_flight` callers, each as fast as it gets responses.
    pub async fn closed(
        &self,
        target: Arc<dyn Target>,
        in_flight: usize,
        warm_up: Duration,
        time: Duration,
    ) -> Measured {
        drive(target, &Plan { pace: Pace::Closed { in_flight }, warm_up, duration: time }, &self.stop).await
    }

    /// Calls at such a low rate that each is alone.
    pub async fn at_low_load(&self, target: Arc<dyn Target>, time: Duration) -> Measured {
        let pace = Pace::Open { per_second: LOW_LOAD_PER_SECOND, in_flight: LOW_LOAD_IN_FLIGHT };
        drive(target, &Plan { pace, warm_up: Duration::from_millis(250), duration: time }, &self.stop).await
    }
}

/// A folder on a disk. Its path is short, because the path of Postgres's socket starts with it.
fn on_disk() -> anyhow::Result<&'static str> {
    ["/tmp", "/var/tmp"]
        .into_iter()
        .find(|folder| is_disk(folder))
        .context("/tmp and /var/tmp are in memory; the bench needs one of them on a disk")
}

#[cfg(target_os = "linux")]
fn is_disk(folder: &str) -> bool {
    use nix::sys::statfs::{TMPFS_MAGIC, statfs};
    statfs(folder).is_ok_and(|found| found.filesystem_type() != TMPFS_MAGIC)
}

#[cfg(not(target_os = "linux"))]
fn is_disk(folder: &str) -> bool {
    Path::new(folder).is_dir()
}

pub fn millis(took: Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

pub fn micros(took: Duration) -> f64 {
    took.as_secs_f64() * 1e6
}
