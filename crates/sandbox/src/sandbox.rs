//! The sandbox as its users see it.

use std::sync::Arc;

use bytes::Bytes;
use serde_json::json;
use serde_json::value::to_raw_value;
use tokio::sync::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

use crate::console::Console;
use crate::ending::Ending;
use crate::pool::Pool;
use crate::protocol::{CallStart, MAX_INPUT_BYTES, encode};
use crate::snapshot::Snapshot;
use crate::spawner::Spawner;
use crate::supervise::{After, Watch, supervise};
use crate::{Invocation, Isolation, Outcome, Report, SandboxError, SandboxOptions, World};

pub struct Sandbox {
    pool: Arc<Pool>,
    report: Report,
    options: SandboxOptions,
    tending: Mutex<Option<JoinHandle<()>>>,
}

impl Sandbox {
    /// Makes the start-up snapshot, starts the first worker and hears from it what protects this machine.
    pub async fn start(options: SandboxOptions) -> Result<Self, SandboxError> {
        let spawner = Spawner::start(options.worker.clone())?;
        let snapshot = Snapshot::make(&spawner).await?;
        let has_snapshot = snapshot.is_some();
        let pool = Arc::new(Pool::new(options.clone(), spawner, snapshot));
        let (worker, hello) = pool.start_worker().await?;
        pool.add_spare(worker);
        let report = Report {
            engine: hello.engine,
            engine_version: hello.engine_version,
            has_snapshot,
            protections: hello.protections,
        };
        let tended = pool.clone();
        let tending = tokio::spawn(async move { tended.tend().await });
        Ok(Self { pool, report, options, tending: Mutex::new(Some(tending)) })
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Runs one call to its end, its limit or its cancellation. `timeout_ms` counts from the moment when
    /// a worker has an isolate for it.
    pub async fn run(&self, invocation: Invocation, world: Arc<dyn World>, cancelled: CancellationToken) -> Outcome {
        let mut console = Console::default();
        let ending = self.end_of(&invocation, world, &cancelled, &mut console).await;
        let result = ending.result(&invocation.script, &invocation.limits);
        Outcome { result, console: console.lines, console_truncated: console.truncated }
    }

    async fn end_of(
        &self,
        invocation: &Invocation,
        world: Arc<dyn World>,
        cancelled: &CancellationToken,
        console: &mut Console,
    ) -> Ending {
        let leased = tokio::select! {
            biased;
            () = cancelled.cancelled() => return Ending::Cancelled,
            leased = self.pool.lease(invocation.owner_id, &invocation.script, invocation.isolation) => leased,
        };
        let mut lease = match leased {
            Ok(lease) => lease,
            Err(error) => return Ending::NoWorker(error),
        };
        let start = match start_payload(invocation, lease.has_script) {
            Ok(start) => start,
            Err(ending) => {
                self.pool.give_back(lease, None);
                return ending;
            }
        };
        let watch = Watch {
            script: &invocation.script,
            has_script: lease.has_script,
            world,
            cancelled,
            closed: &self.pool.closed,
            timeout: invocation.limits.timeout(),
            grace: self.options.grace,
        };
        let (ending, after) = supervise(&mut lease.worker, start, watch, console).await;
        match (ending, after) {
            (ending, After::Kept) => {
                self.pool.give_back(lease, Some(invocation.script.clone()));
                ending
            }
            (ending, After::Fresh) => {
                self.pool.give_back(lease, None);
                ending
            }
            (Ending::WorkerDied(_), After::Unusable) => Ending::WorkerDied(lease.worker.death().await),
            (ending, After::Unusable) => {
                tracing::warn!(reason = ?ending, process = lease.worker.process_id(), "a sandbox worker is killed");
                lease.worker.kill().await;
                ending
            }
        }
    }

    /// Ends every worker. Calls that still run are cancelled; new ones are refused.
    pub async fn close(&self) {
        self.pool.close().await;
        let tending = self.tending.lock().await.take();
        if let Some(tending) = tending {
            let _ = tending.await;
        }
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // The tending task lets go of the pool, and the pool of its processes.
        self.pool.closed.cancel();
    }
}

fn start_payload(invocation: &Invocation, has_script: bool) -> Result<Bytes, Ending> {
    let unreadable = |error: serde_json::Error| Ending::Breach(format!("input that cannot be written: {error}"));
    let input = to_raw_value(&invocation.input).map_err(unreadable)?;
    let context = json!({ "request": invocation.request, "secrets": invocation.secrets });
    let context = to_raw_value(&context).map_err(unreadable)?;
    if input.get().len() + context.get().len() > MAX_INPUT_BYTES {
        return Err(Ending::TooMuchInput(MAX_INPUT_BYTES));
    }
    let start = CallStart {
        task: invocation.task,
        file_name: invocation.script.file_name.clone(),
        javascript: (!has_script).then(|| invocation.script.javascript.clone()),
        input,
        context,
        memory_mb: invocation.limits.memory_mb,
        keep: invocation.isolation == Isolation::Tool,
    };
    encode(&start).map_err(unreadable)
}
