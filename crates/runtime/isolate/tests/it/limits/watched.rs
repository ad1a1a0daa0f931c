//! A sandbox with one worker at a time, whose processes can be distinguished from those of other
//! tests.

use std::fs;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rcrt_breadcrumb::ToolFailure;
use rcrt_sandbox::{CgroupUse, Invocation, ProtectionState, Sandbox, SandboxOptions, level::names};
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::fixture::{Gate, ZYGOTE, start, worker};

pub struct Watched {
    pub sandbox: Sandbox,
    mark: String,
}

impl Watched {
    pub async fn start(cgroups: CgroupUse, change: impl FnOnce(&mut SandboxOptions)) -> Self {
        static STARTED: AtomicU32 = AtomicU32::new(0);
        let mark = format!("watched-{}-{}", std::process::id(), STARTED.fetch_add(1, Ordering::Relaxed));
        let sandbox = start(|options| {
            options.worker = worker();
            options.worker.args.push(mark.clone().into());
            options.cgroups = cgroups;
            options.max_workers = 1;
            options.spares = 0;
            change(options);
        })
        .await;
        Self { sandbox, mark }
    }

    /// Whether a protection is in force according to the report.
    pub fn is_in_force(&self, name: &str) -> bool {
        let found = self.sandbox.report().protections.iter().find(|protection| protection.name == name);
        matches!(found.expect(name).state, ProtectionState::Applied)
    }

    pub fn has_groups(&self) -> bool {
        [names::MEMORY_CGROUP, names::CPU_CGROUP, names::PROCESSES_CGROUP].iter().all(|name| self.is_in_force(name))
    }

    /// The processes of its worker: the one that was started, the one in the jail, and that one's
    /// child.
    pub fn processes(&self) -> Vec<u32> {
        let is_mine = |pid: &u32| {
            fs::read(format!("/proc/{pid}/cmdline"))
                .is_ok_and(|line| line.split(|byte| *byte == 0).any(|word| word == self.mark.as_bytes()))
                && fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() != ZYGOTE)
        };
        let all = fs::read_dir("/proc").unwrap().flatten();
        let mut found: Vec<u32> =
            all.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter(is_mine).collect();
        found.sort_unstable();
        found
    }

    /// CPU time of all of them.
    pub fn cpu_time(&self) -> Duration {
        let ticks = |pid: u32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let fields: Vec<u64> =
                stat.rsplit_once(')')?.1.split_ascii_whitespace().map(|field| field.parse().unwrap_or(0)).collect();
            // Its own, and that of its reaped children.
            Some(fields[11..15].iter().sum::<u64>())
        };
        // A clock tick is 1/100 s in user space.
        Duration::from_millis(self.processes().into_iter().filter_map(ticks).sum::<u64>() * 10)
    }
}

impl Watched {
    /// Runs a call that waits at the gate, and calls `look` meanwhile.
    pub async fn at_the_gate<T>(
        &self,
        call: Invocation,
        look: impl AsyncFnOnce() -> T,
    ) -> (Result<Value, ToolFailure>, T) {
        let gate = Arc::new(Gate::default());
        let mut run = pin!(self.sandbox.run(call, gate.clone(), CancellationToken::new()));
        tokio::select! {
            outcome = &mut run => panic!("the call did not reach the gate: {:?}", outcome.result),
            () = gate.reached.notified() => {}
        }
        let seen = look().await;
        gate.open.notify_one();
        (run.await.result, seen)
    }
}

pub const PASSES_THE_GATE: &str = "await context.api.getBreadcrumb('x');";
