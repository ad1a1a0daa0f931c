//! One run of the bench: how long things may take, where they lie, and what is known so far.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use load::{Measured, Pace, Plan, Report, Row, Target, drive};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use crate::instance::{Instance, wait_until_idle};

/// How often a call at rest is made, so that each finds a system that has come to rest.
pub const AT_REST_PER_SECOND: f64 = 20.0;
/// Calls that may be under way at rest, should one be slow.
const AT_REST_IN_FLIGHT: usize = 64;

pub struct Run {
    /// A smoke test: everything is done, and nothing long enough to be believed.
    pub is_quick: bool,
    /// Ends what is being measured.
    pub stop: CancellationToken,
    /// What the section that runs now has found.
    pub report: Report,
    /// The section's pictures: a file's name, which begins with the section's, and the SVG text.
    pub pictures: Vec<(String, String)>,
    /// Fresh folders are made in it, and it is removed in the end.
    place: TempDir,
}

impl Run {
    pub fn new(is_quick: bool, stop: CancellationToken, report: Report) -> anyhow::Result<Self> {
        let place = tempfile::Builder::new().prefix("rcrt-bench-").tempdir_in(on_disk()?)?;
        Ok(Self { is_quick, stop, report, pictures: Vec::new(), place })
    }

    /// A path in this run's folder at which nothing is yet.
    pub fn folder(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    pub fn place(&self) -> &Path {
        self.place.path()
    }

    /// How long something is measured that takes so many seconds in a whole run.
    pub fn seconds(&self, whole: u64) -> Duration {
        if self.is_quick { Duration::from_secs(whole.div_ceil(6).min(2)) } else { Duration::from_secs(whole) }
    }

    /// How often something is done that is done so often in a whole run.
    pub fn times(&self, whole: usize) -> usize {
        if self.is_quick { whole.div_ceil(10) } else { whole }
    }

    /// Starts an instance on this data folder, and notes what it is made of.
    pub async fn instance(&mut self, data: &Path, arguments: &[&str]) -> anyhow::Result<Instance> {
        let instance = Instance::start(data, arguments).await?;
        if let Some(version) = instance.hello["postgres"].as_str() {
            self.report.versions.insert("Postgres".into(), version.into());
        }
        Ok(instance)
    }

    /// An instance that has nothing more to do of its own.
    pub async fn idle_instance(&mut self, data: &Path, arguments: &[&str]) -> anyhow::Result<Instance> {
        let instance = self.instance(data, arguments).await?;
        self.rest(&instance).await?;
        Ok(instance)
    }

    /// Waits until the instance has nothing more to do of its own.
    pub async fn rest(&self, instance: &Instance) -> anyhow::Result<()> {
        if self.is_quick {
            return Ok(());
        }
        wait_until_idle(instance.process_id()).await
    }

    pub fn push(&mut self, row: Row) {
        self.report.push(row);
    }

    /// As many callers as that, each as fast as it gets answers.
    pub async fn closed(
        &self,
        target: Arc<dyn Target>,
        in_flight: usize,
        warm_up: Duration,
        time: Duration,
    ) -> Measured {
        drive(target, &Plan { pace: Pace::Closed { in_flight }, warm_up, duration: time }, &self.stop).await
    }

    /// Calls that come so seldom that each is alone.
    pub async fn at_rest(&self, target: Arc<dyn Target>, time: Duration) -> Measured {
        let pace = Pace::Open { per_second: AT_REST_PER_SECOND, in_flight: AT_REST_IN_FLIGHT };
        drive(target, &Plan { pace, warm_up: Duration::from_millis(250), duration: time }, &self.stop).await
    }
}

/// A folder for what must survive a crash. Its path is short, because Postgres's socket lies below it.
fn on_disk() -> anyhow::Result<&'static str> {
    ["/tmp", "/var/tmp"]
        .into_iter()
        .find(|folder| is_disk(folder))
        .context("/tmp and /var/tmp lie in memory, where writing costs nothing: the bench needs one of them on a disk")
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
