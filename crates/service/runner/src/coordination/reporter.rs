//! Reports to the store that this runner is live, its load, and how far it has followed the tools.
//! The write of a tool waits for that, so the report follows each change of a tool at once. The
//! reply names the other live runners, and says whether secrets or grants have changed.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use chrono::Utc;
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    EventNumber, LiveRunner, MAX_ALLOWED_HOSTS, ReportReply, RunnerReport, RunnerSlots, Runners, StoreError,
};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use crate::backoff::with_retries;
use crate::coordination::peer_runners::PeerRunners;
use crate::coordination::slots::Slots;
use crate::options::RunnerOptions;
use crate::registry::readiness::Readiness;
use crate::registry::tool_loader::ToolLoader;

/// How often the runner reports when no tool changes. Within this time it learns of a change of
/// secrets or grants. Most of these reports only read.
pub(crate) const EVERY: Duration = Duration::from_millis(500);
/// The longest that a report waits for the tools that are being read. Without them it repeats the
/// number of the previous report.
pub(crate) const READING: Duration = Duration::from_millis(400);
/// The longest that the report of the end takes.
const LAST_REPORT: Duration = Duration::from_secs(2);

pub(crate) struct Reporter {
    store: Arc<dyn Runners>,
    loading: Arc<ToolLoader>,
    peers: Arc<PeerRunners>,
    readiness: Arc<Readiness>,
    slots: Arc<Slots>,
    /// Cancelled when this runner takes no more calls.
    draining: CancellationToken,
    /// What does not change between reports.
    report: RunnerReport,
    /// The newest event that was handed to the loader.
    seen: AtomicI64,
    report_soon: Notify,
    secrets_revision: Mutex<Option<String>>,
}

impl Reporter {
    pub fn new(
        store: Arc<dyn Runners>,
        loading: Arc<ToolLoader>,
        peers: Arc<PeerRunners>,
        readiness: Arc<Readiness>,
        slots: Arc<Slots>,
        draining: CancellationToken,
        options: &RunnerOptions,
    ) -> Arc<Self> {
        let allowed = options.allowed_private.iter().take(MAX_ALLOWED_HOSTS);
        let report = RunnerReport {
            runner_id: options.runner_id,
            lease_ms: options.lease_ms(),
            applied: EventNumber(0),
            host: options.host.clone(),
            working_folder: options.working_folder.clone(),
            version: env!("CARGO_PKG_VERSION").into(),
            started_at: Utc::now(),
            slots: RunnerSlots::default(),
            draining: false,
            allowed_private_hosts: allowed.map(ToString::to_string).collect(),
        };
        Arc::new(Self {
            store,
            loading,
            peers,
            readiness,
            slots,
            draining,
            report,
            seen: AtomicI64::new(0),
            report_soon: Notify::new(),
            secrets_revision: Mutex::default(),
        })
    }

    /// The loader knows of every change up to this event. `is_tool`: the event is one of a tool.
    pub fn seen(&self, number: EventNumber, is_tool: bool) {
        self.seen.store(number.0, Ordering::Release);
        if is_tool {
            self.report_soon.notify_one();
        }
    }

    fn report(&self, applied: EventNumber) -> RunnerReport {
        let (slots, draining) = (self.slots.counts(), self.draining.is_cancelled() || self.slots.drain.is_on());
        RunnerReport { applied, slots, draining, ..self.report.clone() }
    }

    /// The first report, before this runner claims calls. Warns of runners with other files.
    pub async fn begin(&self, latest: EventNumber) -> Result<(), StoreError> {
        self.seen(latest, false);
        let report = self.report(latest);
        let reply = with_retries("report this runner", || self.store.report_runner(&report)).await?;
        for other in reply.runners.iter().filter(|other| other.runner_id != self.report.runner_id) {
            if let Some(warning) = other_folder(&self.report, other) {
                tracing::warn!("{warning}");
            }
        }
        self.learn(&reply, Instant::now());
        Ok(())
    }

    /// Reports until stopped, and then that this runner has stopped.
    pub async fn run(&self, stop: CancellationToken) {
        tokio::select! {
            () = stop.cancelled() => {}
            () = self.keep_reporting() => {}
        }
        let last = RunnerReport { lease_ms: 0, ..self.report.clone() };
        if !matches!(timeout(LAST_REPORT, self.store.report_runner(&last)).await, Ok(Ok(_))) {
            tracing::debug!("the end of this runner was not reported; it counts as live until its lease ends");
        }
    }

    async fn keep_reporting(&self) {
        let (mut applied, mut is_failing) = (EventNumber(self.seen.load(Ordering::Acquire)), false);
        loop {
            // Before the look at the loader, which knows of everything up to this event by now.
            let seen = EventNumber(self.seen.load(Ordering::Acquire));
            if timeout(READING, self.loading.changes_read()).await.is_ok() {
                applied = seen;
            }
            let asked = Instant::now();
            let report = self.report(applied);
            match timeout(self.lease() / 3, self.store.report_runner(&report)).await {
                Ok(Ok(reply)) => {
                    is_failing = false;
                    self.learn(&reply, asked);
                }
                failed => {
                    if !is_failing {
                        let error = failed.ok().and_then(Result::err).map(|error| error.to_string());
                        let error = error.unwrap_or_else(|| "the store does not respond".into());
                        tracing::warn!(%error, "this runner cannot report that it is live; retrying");
                    }
                    is_failing = true;
                }
            }
            tokio::select! {
                () = self.report_soon.notified(), if !is_failing => {}
                () = self.draining.cancelled(), if !is_failing && !report.draining => {}
                () = sleep(EVERY) => {}
            }
        }
    }

    fn lease(&self) -> Duration {
        Duration::from_millis(self.report.lease_ms)
    }

    fn learn(&self, reply: &ReportReply, asked: Instant) {
        self.peers.live(&reply.runners, asked);
        if self.slots.drain.set(reply.drain) {
            let now = if reply.drain { "takes no more calls" } else { "takes calls again" };
            tracing::info!("an operator asked for it: this runner {now}");
            self.report_soon.notify_one();
        }
        let before = self.secrets_revision.lock().replace(reply.secrets_revision.clone());
        if before.is_some_and(|before| before != reply.secrets_revision) {
            self.readiness.check_soon();
        }
    }
}

/// The warning if the other runner's tools work on other files than this runner's.
fn other_folder(own: &RunnerReport, other: &LiveRunner) -> Option<String> {
    let (folder, others) = (own.working_folder.as_ref()?, other.working_folder.as_ref()?);
    let fix = "start both with the same folder (--workdir)";
    let is_same_host = own.host == other.host;
    if is_same_host && folder == others {
        return None;
    }
    let (theirs, fix) = if is_same_host {
        (others.clone(), fix.to_owned())
    } else {
        (format!("{others} on {}", other.host), format!("{fix} that both machines share"))
    };
    Some(format!(
        "the runner {} has another working folder ({theirs}; this one has {folder}), so a call might not find the files \
         of another call; {fix}",
        other.runner_id
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use uuid::Uuid;

    use super::*;

    #[test]
    fn a_runner_with_another_working_folder_is_named() {
        let own = RunnerReport {
            runner_id: Uuid::from_u128(1),
            lease_ms: 1000,
            applied: EventNumber(0),
            host: "a".into(),
            working_folder: Some("/work".into()),
            version: "1".into(),
            started_at: Utc::now(),
            slots: RunnerSlots::default(),
            draining: false,
            allowed_private_hosts: Vec::new(),
        };
        let other = |host: &str, folder: Option<&str>| LiveRunner {
            runner_id: Uuid::from_u128(2),
            host: host.into(),
            working_folder: folder.map(str::to_owned),
            lease_left_ms: 1000,
        };
        assert_eq!(other_folder(&own, &other("a", Some("/work"))), None);
        assert_eq!(other_folder(&own, &other("b", None)), None);
        let warning = other_folder(&own, &other("a", Some("/other"))).unwrap();
        assert!(warning.contains("/other; this one has /work") && warning.contains("--workdir"), "{warning}");
        let warning = other_folder(&own, &other("b", Some("/work"))).unwrap();
        assert!(warning.contains("/work on b") && warning.contains("both machines share"), "{warning}");
    }
}
