//! The sandbox's public interface.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use serde::Serialize;
use serde_json::value::to_raw_value;
use tokio::sync::{Mutex, Semaphore};
use tokio::task::JoinHandle;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::call_end::CallEnd;
use crate::console::Console;
use crate::limits::Cgroups;
use crate::pool::{Kept, Pool, PooledWorker, WorkerRequest};
use crate::protocol::{CallResult, CallStart, MAX_INPUT_BYTES, encode_large};
use crate::snapshot::Snapshot;
use crate::spawner::Spawner;
use crate::supervise::{Ending, Watch, WorkerFate, supervise};
use crate::upload::UploadCapacity;
use crate::worker::Death;
use crate::{
    CgroupUse, HostOps, Invocation, Isolation, Report, RequestContext, RunOutcome, SandboxError, SandboxOptions, Task,
};

/// How many workers a call tries. A worker without a process for it is due to its tenant's earlier
/// calls, not to this call.
const MAX_WORKERS_TRIED: usize = 3;

/// How one run of a call ended.
struct CallOutcome {
    call_end: CallEnd,
    /// See [`Ending::is_repeatable`].
    is_repeatable: bool,
}

impl From<CallEnd> for CallOutcome {
    fn from(call_end: CallEnd) -> Self {
        Self { call_end, is_repeatable: false }
    }
}

pub struct Sandbox {
    pool: Arc<Pool>,
    report: Report,
    options: SandboxOptions,
    /// Memory for request bodies that all calls share.
    uploads: Arc<Semaphore>,
    tending: Mutex<Option<JoinHandle<()>>>,
}

impl Sandbox {
    /// Makes the start-up snapshot, starts the first worker and reads from it which protections
    /// this machine supports.
    pub async fn start(options: SandboxOptions) -> Result<Self, SandboxError> {
        let (cgroups, findings) = match options.cgroups {
            CgroupUse::WhereTheyAre => {
                tokio::task::spawn_blocking(Cgroups::open).await.map_err(|_| SandboxError::Closed)?
            }
            CgroupUse::None => Cgroups::none(),
        };
        let cgroups = Arc::new(cgroups);
        let locations = cgroups.locations();
        let spawner = Spawner::start(options.worker.clone(), cgroups.clone())?;
        let snapshot = Snapshot::make(&spawner).await?;
        let has_snapshot = snapshot.is_some();
        let pool = Arc::new(Pool::new(options.clone(), spawner, snapshot, (cgroups, findings)));
        let (worker, hello) = match pool.start_worker().await {
            Ok(started) => started,
            Err(error) => {
                pool.close().await;
                pool.ended().await;
                return Err(error);
            }
        };
        pool.add_spare(worker);
        let report = Report {
            engine_version: hello.engine_version,
            has_snapshot,
            level: options.level,
            left_to_process: hello.left_to_process,
            protections: hello.protections,
            cgroups: locations,
        };
        let tended = pool.clone();
        let tending = tokio::spawn(async move { tended.maintain().await });
        let uploads = UploadCapacity::shared(options.upload_bytes);
        Ok(Self { pool, report, options, uploads, tending: Mutex::new(Some(tending)) })
    }

    pub fn report(&self) -> &Report {
        &self.report
    }

    /// Runs one call until it finishes, reaches a limit or is cancelled. `timeout_ms` counts from
    /// the moment when a worker has an isolate for it.
    pub async fn run(
        &self,
        invocation: Invocation,
        host: Arc<dyn HostOps>,
        cancelled: CancellationToken,
    ) -> RunOutcome {
        let mut console = Console::default();
        let isolation = self.isolation_of(&invocation, &*host);
        let mut end = self.end_of(&invocation, isolation, host.clone(), &cancelled, &mut console).await;
        if end.is_repeatable {
            console = Console::default();
            end = self.end_of(&invocation, Isolation::Process, host, &cancelled, &mut console).await;
            if matches!(end.call_end, CallEnd::Finished(CallResult::Ok(_))) {
                invocation.script.sharing.refuse(&invocation.script.file_name);
            }
        }
        let result = end.call_end.result(&invocation.script, &invocation.limits);
        RunOutcome { result, console: console.lines, console_truncated: console.truncated }
    }

    /// Calls that others can follow in the same process are ordinary ones of a script that is
    /// called often. A seed changes builtins, and who observes a call must see it once. The
    /// operator can give every call its own process.
    fn isolation_of(&self, invocation: &Invocation, host: &dyn HostOps) -> Isolation {
        let is_ordinary = invocation.task == Task::Call && invocation.seed.is_none() && host.observer().is_none();
        match invocation.isolation {
            _ if self.options.process_per_call => Isolation::Process,
            Isolation::Call if is_ordinary && invocation.script.sharing.begin(self.options.idle) => Isolation::Call,
            Isolation::Call => Isolation::Process,
            isolation => isolation,
        }
    }

    async fn end_of(
        &self,
        invocation: &Invocation,
        isolation: Isolation,
        host: Arc<dyn HostOps>,
        cancelled: &CancellationToken,
        console: &mut Console,
    ) -> CallOutcome {
        let script = &invocation.script;
        let may_cache = script.cache.is_wanted(script.javascript.len());
        let wanted = WorkerRequest {
            owner: invocation.owner_id,
            script,
            isolation,
            is_best_untouched: may_cache && invocation.task == Task::Check,
        };
        let mut pooled = match self.acquire(&wanted, cancelled).await {
            Ok(pooled) => pooled,
            Err(call_end) => return call_end.into(),
        };
        let is_counted = pooled.has_script || pooled.worker.is_ready_for(invocation.limits.memory_mb);
        let wants_cache = may_cache && isolation != Isolation::Call && pooled.worker.is_untouched();
        let start = match start_payload(invocation, isolation, pooled.has_script, is_counted, wants_cache) {
            Ok(start) => start,
            Err(call_end) => {
                let kept = pooled.has_script.then(|| Kept { script: script.clone(), isolation });
                self.pool.release(pooled, kept);
                return call_end.into();
            }
        };
        if let Err(error) = pooled.worker.bounds.admit(&invocation.limits) {
            let died = pooled.worker.kill().await;
            tracing::warn!(%error, ?died, "killing a sandbox worker: cannot set its limits");
            return CallEnd::NoWorker(SandboxError::Limits(error.to_string())).into();
        }
        let watch = Watch {
            script,
            has_script: pooled.has_script,
            keeps: isolation != Isolation::Process,
            is_counted,
            wants_cache,
            host,
            cancelled,
            closed: &self.pool.closed,
            limits: &invocation.limits,
            grace: self.options.grace,
            uploads: &self.uploads,
        };
        let Ending { call_end, fate, is_repeatable } = supervise(&mut pooled.worker, start, watch, console).await;
        if isolation == Isolation::Call {
            script.sharing.end(fate == WorkerFate::Kept);
        }
        let call_end = match (call_end, fate) {
            (call_end, WorkerFate::Kept) => {
                self.pool.release(pooled, Some(Kept { script: script.clone(), isolation }));
                call_end
            }
            (call_end, WorkerFate::Fresh) => {
                if timeout(self.options.grace, pooled.worker.spend()).await.is_ok_and(|sent| sent.is_ok()) {
                    self.pool.release(pooled, None);
                }
                call_end
            }
            (CallEnd::WorkerDied(_), WorkerFate::Unusable) => {
                let call_end = ended(pooled.worker.death().await);
                tracing::warn!(reason = call_end.name(), process = pooled.worker.process_id(), "a sandbox worker died");
                call_end
            }
            (call_end, WorkerFate::Unusable) => {
                tracing::warn!(
                    reason = call_end.name(),
                    process = pooled.worker.process_id(),
                    "killing a sandbox worker"
                );
                pooled.worker.kill().await;
                call_end
            }
        };
        CallOutcome { call_end, is_repeatable }
    }

    /// Acquires a worker that has a process for the call.
    async fn acquire(
        &self,
        wanted: &WorkerRequest<'_>,
        cancelled: &CancellationToken,
    ) -> Result<PooledWorker, CallEnd> {
        let mut tries = 1;
        loop {
            let acquired = tokio::select! {
                biased;
                () = cancelled.cancelled() => return Err(CallEnd::Cancelled),
                acquired = self.pool.acquire(wanted) => acquired,
            };
            let mut pooled = acquired.map_err(CallEnd::NoWorker)?;
            if pooled.has_script {
                return Ok(pooled);
            }
            let ready = tokio::select! {
                biased;
                () = cancelled.cancelled() => None,
                () = self.pool.closed.cancelled() => None,
                ready = pooled.worker.next_child() => Some(ready),
            };
            match ready {
                Some(Ok(())) => return Ok(pooled),
                // Its next process is used by another call.
                None => {
                    self.pool.release(pooled, None);
                    return Err(CallEnd::Cancelled);
                }
                Some(Err(error)) => {
                    let died = pooled.worker.kill().await;
                    tracing::warn!(%error, ?died, "killing a sandbox worker: it has no process for the next call");
                    if tries == MAX_WORKERS_TRIED {
                        return Err(CallEnd::NoWorker(error));
                    }
                    tries += 1;
                }
            }
        }
    }

    /// Stops every worker. Running calls are cancelled; new ones are refused.
    pub async fn close(&self) {
        self.pool.close().await;
        let tending = self.tending.lock().await.take();
        if let Some(tending) = tending {
            let _ = tending.await;
        }
        self.pool.ended().await;
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // The tending task drops the pool, and the pool its processes.
        self.pool.closed.cancel();
    }
}

/// What the tool gets beside its input.
#[derive(Serialize)]
struct CallContext<'c> {
    request: &'c RequestContext,
    secrets: &'c BTreeMap<String, String>,
}

fn start_payload(
    invocation: &Invocation,
    isolation: Isolation,
    has_script: bool,
    is_counted: bool,
    wants_cache: bool,
) -> Result<Bytes, CallEnd> {
    let unreadable = |error: serde_json::Error| CallEnd::Breach(format!("cannot encode the input: {error}"));
    let input = to_raw_value(&invocation.input).map_err(unreadable)?;
    let context = CallContext { request: &invocation.request, secrets: &invocation.secrets };
    let context = to_raw_value(&context).map_err(unreadable)?;
    let bytes = input.get().len() + context.get().len();
    if bytes > MAX_INPUT_BYTES {
        return Err(CallEnd::InputSize(bytes as u64));
    }
    let javascript = (!has_script).then(|| invocation.script.javascript.clone());
    let texts = bytes + javascript.as_ref().map_or(0, String::len);
    let start = CallStart {
        task: invocation.task,
        file_name: invocation.script.file_name.clone(),
        javascript,
        input,
        context,
        memory_mb: invocation.limits.memory_mb,
        isolation,
        hrtime: invocation.hrtime,
        is_counted,
        wants_cache,
        seed: invocation.seed,
    };
    encode_large(&start, texts).map_err(unreadable)
}

/// Derives a call's ending from how its process ended.
fn ended(death: Option<Death>) -> CallEnd {
    match death {
        Some(death) if death.is_out_of_memory() => CallEnd::Memory,
        Some(death) if death.is_forbidden_call() => CallEnd::Breach("it made a forbidden system call".into()),
        death => CallEnd::WorkerDied(death),
    }
}
