//! What a runner reports at intervals, what it learns from that, and what is known of each runner.

use std::time::Duration;

use chrono::{DateTime, Datelike, Utc};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{EventNumber, PrivateHost, Violations};

/// The longest time that the write of a tool waits for runners that have not applied it.
pub const RUNNERS_WAIT: Duration = Duration::from_secs(1);
/// The most characters of a report's `host`, `version` and `working_folder`.
const MAX_CHARS: usize = 4096;
/// The most private hosts of a report.
pub const MAX_ALLOWED_HOSTS: usize = 1000;

/// Slots of one kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct SlotCount {
    pub used: u32,
    pub free: u32,
}

/// The slots in which a runner's calls run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunnerSlots {
    /// For calls of code and of native tools.
    pub worker: SlotCount,
    /// For calls that only wait, of tools of the type `http`.
    pub waiting: SlotCount,
}

/// That a runner is live, what it does, and how far it has followed the tenant's tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunnerReport {
    pub runner_id: Uuid,
    /// How long the runner counts as live without another report, in milliseconds: 1,000 to
    /// 600,000. 0 when it stops.
    #[schema(maximum = 600_000)]
    pub lease_ms: u64,
    /// The runner uses every change of a tool up to this event.
    pub applied: EventNumber,
    /// The name of its machine.
    pub host: String,
    /// The folder that its file tools use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_folder: Option<String>,
    /// The version of its program.
    pub version: String,
    pub started_at: DateTime<Utc>,
    pub slots: RunnerSlots,
    /// It takes no more calls and finishes those that it has.
    pub draining: bool,
    /// The private hosts that its tools can reach, as `[TOOL=]HOST[:PORT]`. At most 1,000.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schema(max_items = 1000)]
    pub allowed_private_hosts: Vec<String>,
}

/// A runner of the tenant whose lease has not ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LiveRunner {
    pub runner_id: Uuid,
    pub host: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_folder: Option<String>,
    /// How long it counts as live without another report, in milliseconds.
    pub lease_left_ms: u64,
}

/// A runner of the tenant whose lease has not ended, with its load.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RunnerInfo {
    pub runner_id: Uuid,
    pub host: String,
    /// The version of its program.
    pub version: String,
    /// The folder that its file tools use.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_folder: Option<String>,
    /// By its last report. Calls whose requests are not written yet count too.
    pub slots: RunnerSlots,
    /// Calls that it has claimed and not started.
    pub claimed: u64,
    /// Calls that it runs.
    pub running: u64,
    /// It takes no more calls and finishes those that it has.
    pub draining: bool,
    /// An operator wants it to drain. It follows with its next report.
    pub drain_requested: bool,
    /// By the clock of its machine.
    pub started_at: DateTime<Utc>,
    /// When its last report was stored. A report without news is stored only when a third of the
    /// lease has passed.
    pub reported_at: DateTime<Utc>,
    /// How long it counts as live without another report, in milliseconds.
    pub lease_left_ms: u64,
    /// The private hosts that its tools can reach, as `[TOOL=]HOST[:PORT]`.
    pub allowed_private_hosts: Vec<String>,
}

impl RunnerInfo {
    /// The private hosts that all these runners allow: those for which a tool is valid on each.
    /// Runners that drain do not count.
    pub fn all_allow(runners: &[Self]) -> Vec<PrivateHost> {
        let mut live = runners.iter().filter(|runner| !runner.draining);
        let Some(first) = live.next() else { return Vec::new() };
        let hosts = first.allowed_private_hosts.iter();
        let by_all = hosts.filter(|host| live.clone().all(|other| other.allowed_private_hosts.contains(host)));
        by_all.filter_map(|host| host.parse().ok()).collect()
    }
}

/// What an operator wants of a runner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunnerDrain {
    /// True: it takes no more calls and finishes those that it has. False: it takes calls again.
    pub drain: bool,
}

/// The reply to a [`RunnerReport`].
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ReportReply {
    /// All live runners of the tenant, with the one that reports.
    pub runners: Vec<LiveRunner>,
    /// Changes with every change of a secret or a grant.
    pub secrets_revision: String,
    /// An operator wants the runner that reports to take no more calls.
    #[serde(default)]
    pub drain: bool,
}

impl RunnerReport {
    /// Checks the fields.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if self.lease_ms != 0 && !(1_000..=600_000).contains(&self.lease_ms) {
            found.add("lease_ms", "must be 0, or from 1000 to 600000");
        }
        let folder = self.working_folder.as_deref().unwrap_or_default();
        for (field, text) in
            [("host", self.host.as_str()), ("version", self.version.as_str()), ("working_folder", folder)]
        {
            if text.contains('\0') || text.chars().count() > MAX_CHARS {
                found.add(field, format!("must have at most {MAX_CHARS} characters, none of them NUL"));
            }
        }
        for (kind, slots) in [("worker", self.slots.worker), ("waiting", self.slots.waiting)] {
            for (name, count) in [("used", slots.used), ("free", slots.free)] {
                // As the description of the API states for 32-bit integers.
                if i32::try_from(count).is_err() {
                    found.add(format!("slots.{kind}.{name}"), format!("must be at most {}", i32::MAX));
                }
            }
        }
        let hosts = &self.allowed_private_hosts;
        if hosts.len() > MAX_ALLOWED_HOSTS {
            found.add("allowed_private_hosts", format!("must have at most {MAX_ALLOWED_HOSTS} entries"));
        } else if let Some(index) = hosts.iter().position(|host| host.parse::<PrivateHost>().is_err()) {
            found.add(format!("allowed_private_hosts[{index}]"), "must be [TOOL=]HOST[:PORT]");
        }
        if !(1970..=9999).contains(&self.started_at.year()) {
            found.add("started_at", "must be in a year from 1970 to 9999");
        }
        found.into_result()
    }
}
