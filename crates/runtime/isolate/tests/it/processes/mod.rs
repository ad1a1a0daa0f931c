//! Worker processes: what they inherit, how they die, and how many there are.

mod confinement;
mod lifecycle;
mod zygote;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rcrt_breadcrumb::ToolFailure;
use rcrt_sandbox::{Invocation, Sandbox, SandboxOptions};
use serde_json::Value;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::fixture::{Gate, ZYGOTE, block_on, function, invocation, start, worker};

/// The worker program under a unique name, which distinguishes its processes from those of other
/// tests.
pub struct Program(PathBuf);

impl Program {
    pub fn new() -> Self {
        Self::of(&worker().program)
    }

    fn of(program: &Path) -> Self {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).canonicalize().unwrap().join(Uuid::new_v4().to_string());
        std::fs::hard_link(program, &path).unwrap();
        Self(path)
    }

    /// A sandbox with one worker.
    pub async fn start(&self, change: impl FnOnce(&mut SandboxOptions)) -> Sandbox {
        start(|options| {
            options.worker.program.clone_from(&self.0);
            options.max_workers = 1;
            options.spares = 0;
            change(options);
        })
        .await
    }

    /// Its processes that are children of this process.
    pub fn workers(&self) -> BTreeSet<u32> {
        // The process name is all that its user sees of a process that is not dumpable.
        let own = &self.0.file_name().unwrap().to_str().unwrap()[..15];
        children(|pid| std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == own))
    }

    /// The zygote of its workers, if there is one.
    fn zygote(&self) -> Option<u32> {
        let own = self.0.as_os_str().as_encoded_bytes();
        loop {
            let mut zygotes = children(|pid| {
                std::fs::read(format!("/proc/{pid}/cmdline")).is_ok_and(|line| line.starts_with(own))
                    && std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == ZYGOTE)
            });
            // A new worker has this name too until it restores its own.
            if zygotes.len() <= 1 {
                return zygotes.pop_first();
            }
            std::thread::yield_now();
        }
    }

    fn worker(&self) -> u32 {
        let workers = self.workers();
        assert_eq!(workers.len(), 1);
        workers.into_iter().next().unwrap()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// The children of this process.
fn children(is_wanted: impl Fn(u32) -> bool) -> BTreeSet<u32> {
    let me = std::process::id();
    std::fs::read_dir("/proc")
        .unwrap()
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|pid| parent_of(*pid) == Some(me) && is_wanted(*pid))
        .collect()
}

fn parent_of(pid: u32) -> Option<u32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(1)?.parse().ok()
}

const WAITS: &str = "return await context.api.getBreadcrumb('x')";

async fn waiting(sandbox: &Sandbox, gate: &Arc<Gate>, call: Invocation) -> Result<Value, ToolFailure> {
    sandbox.run(call, gate.clone(), CancellationToken::new()).await.result
}

/// The process that runs tool code: the last in a chain of only children.
fn inner(worker: u32) -> u32 {
    let children = std::fs::read_to_string(format!("/proc/{worker}/task/{worker}/children")).unwrap();
    children.split_whitespace().next().map_or(worker, |pid| inner(pid.parse().unwrap()))
}

fn status(pid: u32) -> BTreeMap<String, String> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    text.lines().filter_map(|line| line.split_once(":\t")).map(|(name, value)| (name.into(), value.into())).collect()
}

/// Runs a call that waits, and inspects its worker from outside meanwhile.
fn while_it_waits(look: impl FnOnce(&Sandbox, u32)) {
    block_on(async {
        let program = Program::new();
        let sandbox = program.start(|_| {}).await;
        let gate = Arc::new(Gate::default());
        let look = async {
            gate.reached.notified().await;
            look(&sandbox, program.worker());
            gate.open.notify_one();
        };
        let (result, ()) = tokio::join!(waiting(&sandbox, &gate, invocation(&function(WAITS), Value::Null)), look);
        assert_eq!(result.unwrap(), "open");
        sandbox.close().await;
    });
}

/// Whether workers are forked from a zygote here.
const HAS_ZYGOTE: bool = cfg!(target_os = "linux");
