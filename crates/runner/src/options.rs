//! The settings of a runner.

use std::collections::HashSet;
use std::time::Duration;

use breadcrumb::ToolRequest;
use executors::egress::PrivateHost;
use uuid::Uuid;

use crate::speculative_run::SMALL_RESULT;

#[derive(Debug, Clone)]
pub struct RunnerOptions {
    /// Names this runner in claims and responses. Default: a new one.
    pub runner_id: Uuid,
    /// Concurrent calls. Default: 8 for each processor, from 8 to 64: each can hold a process with
    /// the tool's memory. The sandbox should have as many workers; calls that wait for a worker
    /// keep their slot here.
    pub max_calls: usize,
    /// Concurrent calls of one tool, so that one tool leaves slots for others. Default: three
    /// quarters of `max_calls`.
    ///
    /// A quarter of `max_calls` (at least 2, at most half of it) is reserved for tools that have no
    /// call running, so that a few tools with many long calls never block the others. The rule
    /// applies to tools, whether their calls compute or wait: in the reserved slots each tool has
    /// one call at a time. If this cap leaves fewer slots than that, the reserve is smaller, and
    /// there is none if one tool can have every slot.
    pub max_calls_per_tool: usize,
    /// Calls side by side that only wait for others (an HTTP exchange): those hold no worker. Of one tool three quarters
    /// of them, and a quarter is kept as above. Default 2000.
    pub max_waiting: usize,
    /// How long a claim holds without a heartbeat; the runner beats three times as often. 1 s to 10 min, default 15 s.
    pub lease: Duration,
    /// How often the queue is asked when no event says that there is something. Default 3 s.
    pub poll: Duration,
    /// How long running calls can continue after the runner was told to stop. Default 10 s.
    pub drain: Duration,
    /// How long an executor may take to stop a call that was cancelled or ran out of time, before the call is dropped.
    /// Default 3 s.
    pub grace: Duration,
    /// How long past its own `timeout_ms` a call may be before the runner ends it. Executors keep the limit themselves;
    /// this is for one that does not. Default 30 s.
    pub overtime: Duration,
    /// Tools that are prepared side by side. Default 4.
    pub max_loads: usize,
    /// How often the list of tools is compared with the store's, whatever the events said. Default 60 s.
    pub reconcile: Duration,
    /// How often tools are checked again: whether those that wait for a secret, a program or a
    /// setting can be offered, and whether those that are offered still can. Default 30 s.
    pub readiness: Duration,
    /// The pause between one response of a `continuous` tool and its next request. Default 1 s; it
    /// doubles with each failure in a row, up to 5 min.
    pub continuous_pause: Duration,
    /// Agents whose tools are the system's own (those that `rcrt bootstrap` writes as): other rules hold for them.
    pub system_authors: HashSet<Uuid>,
    /// Non-public hosts that tools can name in `permissions.net`; the same as the egress gate has.
    /// Default: none.
    pub allowed_private: Vec<PrivateHost>,
    /// From what size on a result is handed over in parts, and how long those are kept. Default: 64,000 characters,
    /// 20 minutes.
    pub large_results: memory::large_result::Settings,
    /// What RCRT's clients and tools expect and other callers do not need: a catalog record of its shape, and secrets by
    /// their ids. Default: false.
    pub rcrt_compat: bool,
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
            allowed_private: Vec::new(),
            large_results: memory::large_result::Settings::default(),
            rcrt_compat: false,
        }
    }
}

impl RunnerOptions {
    /// Whether a small result goes into the response of this request as it is.
    pub(crate) fn takes_small_results(&self, request: &ToolRequest) -> bool {
        // A character may take six in JSON.
        request.max_result_chars.is_none() && self.large_results.max_result_chars >= 6 * SMALL_RESULT
    }

    /// The default `max_calls_per_tool` beside this `max_calls`.
    pub fn share_of_one_tool(max_calls: usize) -> usize {
        (max_calls * 3 / 4).max(1)
    }

    pub(crate) fn lease_ms(&self) -> u64 {
        (self.lease.as_millis() as u64).clamp(1_000, 600_000)
    }
}
