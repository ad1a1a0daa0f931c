//! The settings of a runner.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::ToolRequest;
use rcrt_egress::PrivateHost;
use uuid::Uuid;

use crate::claim_health::ClaimHealth;

/// A result up to this size is never too long for the caller, unless the caller or the operator
/// said so.
pub(crate) const SMALL_RESULT: usize = 2048;

#[derive(Debug, Clone)]
pub struct RunnerOptions {
    /// Identifies this runner in claims and responses. Default: a random id.
    pub runner_id: Uuid,
    /// Concurrent CPU-bound calls. Default: 8 per processor, between 8 and 64, because each call
    /// can hold a process with the tool's memory. The sandbox should have as many workers, and
    /// [`Self::max_parked`] more: a call that waits for a worker keeps its slot here.
    pub max_calls: usize,
    /// Concurrent calls of one tool, so that one tool leaves slots for others. Default: three
    /// quarters of `max_calls`.
    ///
    /// A quarter of `max_calls` (at least 2, at most half of it) is reserved for tools that have no
    /// call running, so that a few tools with many long calls never block the others. In the
    /// reserved slots each tool has one call at a time. If this cap leaves fewer slots than that,
    /// the reserve is smaller. There is no reserve if one tool can have every slot.
    pub max_calls_per_tool: usize,
    /// Concurrent I/O-bound calls, such as an HTTP exchange, which hold no worker. One tool can
    /// have three quarters of them, and a quarter is reserved as above. Default: 2000.
    pub max_waiting: usize,
    /// How long a lease lasts without a heartbeat, from 1 s to 10 min. The runner sends a heartbeat
    /// every third of it. Default: 15 s.
    pub lease: Duration,
    /// How often the queue is polled when no event announces a call. Default: 3 s.
    pub poll: Duration,
    /// How long running calls can continue after the runner is stopped. Default: 10 s.
    pub drain: Duration,
    /// How long an executor can take to stop a call that was cancelled or ran out of time, before
    /// the call is dropped. Default: 3 s.
    pub grace: Duration,
    /// How long a call can exceed its own `timeout_ms` before the runner stops it. Executors
    /// enforce the limit themselves; this is for one that does not. Default: 30 s.
    pub overtime: Duration,
    /// Tools that are prepared concurrently. Default: 4.
    pub max_loads: usize,
    /// How often the list of tools is compared with the store's, regardless of events. Default: 60
    /// s.
    pub reconcile: Duration,
    /// How often all tools are checked again: whether those that wait for a secret, a program or a
    /// setting can be offered, and whether those that are offered still can be. A change of secrets
    /// or grants is noticed within half a second anyway. Default: 30 s.
    pub readiness: Duration,
    /// The pause between a response of a `continuous` tool and its next request. Default: 1 s. It
    /// doubles with each failure in a row, up to 5 min.
    pub continuous_pause: Duration,
    /// Agents whose tools are system tools (those that `rcrt bootstrap` writes as). Different
    /// validation rules apply to them.
    pub system_authors: HashSet<Uuid>,
    /// The name of this machine and the folder of the file tools, for the list of runners and the
    /// warning at the start of runners whose files differ. Default: none.
    pub host: String,
    pub working_folder: Option<String>,
    /// The protections around tools, for the announcement of the runner. Default: not known.
    pub protections: Option<Protections>,
    /// Non-public hosts that tools can name in `permissions.net`; the same as the egress gate has.
    /// Default: none.
    pub allowed_private: Vec<PrivateHost>,
    /// The size above which a result is split into chunks, and how long the chunks are kept.
    /// Default: 64,000 characters, 20 minutes.
    pub large_results: rcrt_large_results::Settings,
    /// The share of the meaning in the score of a tool that is searched for, from 0 to 1; the rest
    /// is that of its words. Default: [`rcrt_tool_search::MEANING_WEIGHT`].
    pub meaning_weight: f64,
    /// The only tools whose calls this runner takes. Such a runner leaves everything about all
    /// tools to the others: the catalog, errors of definitions, triggers and bootstraps. It also
    /// takes no calls by local dispatch. Default: empty, for all tools.
    pub only_tools: Vec<String>,
    /// Tells whether the runner can claim calls. Keep a copy, to serve it to a probe.
    pub claim_health: Arc<ClaimHealth>,
    /// Compatibility with clients and tools of the original RCRT: a catalog record in its format,
    /// and secrets by id. Default: false.
    pub rcrt_compat: bool,
}

/// The protections around tools on the machine of a runner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Protections {
    /// What the operator requires: `strict` or `minimal`.
    pub level: String,
    /// The names of those in force.
    pub in_force: Vec<String>,
    pub absent: Vec<AbsentProtection>,
}

/// A protection that the machine does not have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AbsentProtection {
    pub name: String,
    pub reason: String,
}

impl Default for RunnerOptions {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
        let max_calls = (8 * processors).clamp(8, 64);
        Self {
            runner_id: Uuid::new_v4(),
            max_calls,
            max_calls_per_tool: Self::share_of_one_tool(max_calls),
            max_waiting: 2000,
            lease: Duration::from_secs(15),
            poll: Duration::from_secs(3),
            drain: Duration::from_secs(10),
            grace: Duration::from_secs(3),
            overtime: Duration::from_secs(30),
            max_loads: 4,
            reconcile: Duration::from_mins(1),
            readiness: Duration::from_secs(30),
            continuous_pause: Duration::from_secs(1),
            system_authors: HashSet::new(),
            host: String::new(),
            working_folder: None,
            protections: None,
            allowed_private: Vec::new(),
            large_results: rcrt_large_results::Settings::default(),
            meaning_weight: rcrt_tool_search::MEANING_WEIGHT,
            only_tools: Vec::new(),
            claim_health: Arc::default(),
            rcrt_compat: false,
        }
    }
}

impl RunnerOptions {
    /// Whether a small result always fits into the response to this request without being split.
    pub(crate) fn takes_small_results(&self, request: &ToolRequest) -> bool {
        // JSON can escape one character to six.
        request.max_result_chars.is_none() && self.large_results.max_result_chars >= 6 * SMALL_RESULT
    }

    /// How many calls can wait for calls that they made without a slot, for this `max_calls`. Each
    /// still has its worker.
    pub fn max_parked(max_calls: usize) -> usize {
        (2 * max_calls).max(8)
    }

    /// The default `max_calls_per_tool` for this `max_calls`.
    pub fn share_of_one_tool(max_calls: usize) -> usize {
        (max_calls * 3 / 4).max(1)
    }

    /// Whether it is a runner for all tools.
    pub(crate) fn takes_all_tools(&self) -> bool {
        self.only_tools.is_empty()
    }

    pub(crate) fn lease_ms(&self) -> u64 {
        (self.lease.as_millis() as u64).clamp(1_000, 600_000)
    }
}
