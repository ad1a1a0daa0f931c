//! The warm pool of worker processes: some are ready for any tenant, each of the others belongs to
//! one tenant until it exits.

use std::sync::{Arc, Once, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rcrt_breadcrumb::{Isolation, Limits};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::limits::{self, Cgroups, EnforcedLimits, Findings};
use crate::protocol::{Hello, Mode, Protection};
use crate::snapshot::Snapshot;
use crate::spawner::Spawner;
use crate::worker::{REAP, Worker};
use crate::{Level, SandboxError, SandboxOptions, Script, level};

/// How often idle workers are checked.
const SHORTEST_ROUND: Duration = Duration::from_millis(100);
const LONGEST_ROUND: Duration = Duration::from_secs(5);
/// CPU time that a worker can use without a call: it prepares the next isolate.
const IDLE_CPU: Duration = Duration::from_secs(2);
/// When the process of a worker's next isolate is usually ready.
const NEXT_CHILD: Duration = Duration::from_millis(12);
/// The delay after a worker could not be started.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

pub struct Pool {
    options: SandboxOptions,
    spawner: Spawner,
    snapshot: Option<Snapshot>,
    cgroups: Arc<Cgroups>,
    /// Which control groups are in use, and why not.
    findings: Findings,
    /// The protections of the first worker.
    protections: OnceLock<Vec<Protection>>,
    /// Logs once that a later worker has other protections than the first.
    warned: Once,
    /// The limits of the first worker. A worker that cannot have the same does not run tools.
    enforced: OnceLock<EnforcedLimits>,
    /// One permit for each running call; waiting calls get one in order.
    permits: Arc<Semaphore>,
    state: Mutex<State>,
    spare_taken: Notify,
    /// A worker was released whose next process is being forked.
    spent: Notify,
    pub closed: CancellationToken,
}

#[derive(Default)]
struct State {
    spares: Vec<Worker>,
    /// Ordered by idle time, longest first.
    idle: Vec<Idle>,
}

struct Idle {
    worker: Worker,
    owner: Uuid,
    /// What the worker kept its isolate for.
    kept: Option<Kept>,
    since: Instant,
    /// Its CPU time at that moment.
    cpu_time: Option<Duration>,
}

/// What a worker keeps its isolate for.
pub struct Kept {
    pub script: Arc<Script>,
    pub isolation: Isolation,
}

impl Idle {
    /// Whether nothing of a tool runs between calls and the worker can be used again.
    fn is_reusable(&mut self) -> bool {
        let spent = self.worker.bounds.cpu_time().zip(self.cpu_time).map(|(now, then)| now.saturating_sub(then));
        if spent.is_some_and(|spent| spent > IDLE_CPU) {
            tracing::warn!(
                process = self.worker.process_id(),
                ?spent,
                "stopping a sandbox worker that uses CPU time without a call"
            );
            return false;
        }
        if self.worker.is_overdue(self.since) {
            tracing::warn!(
                process = self.worker.process_id(),
                "stopping a sandbox worker: the process of its last isolate does not exit"
            );
            return false;
        }
        // The state of a tool that keeps it is its own.
        let has_state = self.kept.as_ref().is_some_and(|kept| kept.isolation == Isolation::Tool);
        if !has_state && self.worker.bounds.uses_excess_memory() {
            tracing::debug!(process = self.worker.process_id(), "stopping a sandbox worker that holds too much memory");
            return false;
        }
        self.worker.is_alive()
    }
}

/// Which worker a call prefers.
pub struct WorkerRequest<'a> {
    pub owner: Uuid,
    pub script: &'a Arc<Script>,
    pub isolation: Isolation,
    /// Prefer a worker that never ran tool code to one of the tenant.
    pub is_best_untouched: bool,
}

/// A worker for one call. If it is dropped instead of released, its process is killed.
pub struct PooledWorker {
    pub worker: Worker,
    /// The worker has the kept isolate of this script.
    pub has_script: bool,
    owner: Uuid,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub fn new(
        options: SandboxOptions,
        spawner: Spawner,
        snapshot: Option<Snapshot>,
        (cgroups, findings): (Arc<Cgroups>, Findings),
    ) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(options.max_workers.max(1))),
            options,
            spawner,
            snapshot,
            cgroups,
            findings,
            protections: OnceLock::new(),
            warned: Once::new(),
            enforced: OnceLock::new(),
            state: Mutex::default(),
            spare_taken: Notify::new(),
            spent: Notify::new(),
            closed: CancellationToken::new(),
        }
    }

    /// Starts a worker and waits until it is ready and has the protections that the level requires:
    /// the kernel may refuse to one process what it granted to another. Returns the worker's
    /// handshake with all protections, including the parent's.
    pub async fn start_worker(&self) -> Result<(Worker, Hello), SandboxError> {
        let snapshot = self.snapshot.as_ref().map(Snapshot::share).transpose()?;
        let memory_mb = Limits::default().memory_mb;
        let mut worker = Worker::spawn(&self.spawner, Mode::Serve, snapshot, memory_mb).await?;
        let mut hello = worker.hello().await?;
        let enforced = worker.bounds.measure();
        if *self.enforced.get_or_init(|| enforced.clone()) != enforced {
            return Err(SandboxError::Limits(enforced.to_string()));
        }
        hello.protections.extend(limits::protections(self.findings.clone(), &enforced));
        self.compare(&hello.protections);
        let missing = level::missing(&hello.protections);
        if self.options.level == Level::Strict && !missing.is_empty() {
            return Err(SandboxError::Unprotected { missing });
        }
        tracing::debug!(process = worker.process_id(), "a sandbox worker is ready");
        Ok((worker, hello))
    }

    /// Logs once that a later worker lacks protections of the start report.
    fn compare(&self, protections: &[Protection]) {
        let first = self.protections.get_or_init(|| protections.to_vec());
        let lost = level::lost(first, protections);
        if !lost.is_empty() {
            self.warned.call_once(|| {
                tracing::error!(
                    ?lost,
                    level = %self.options.level,
                    "a sandbox worker lacks protections that the first one had: the kernel refuses them now"
                );
            });
        }
    }

    pub fn add_spare(&self, worker: Worker) {
        self.state.lock().spares.push(worker);
    }

    /// Waits for a permit, then returns the best worker: the one that kept the script, another one
    /// of the tenant that is ready, a spare, one of the tenant that is not ready, or a new one.
    pub async fn acquire(&self, wanted: &WorkerRequest<'_>) -> Result<PooledWorker, SandboxError> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| SandboxError::Closed)?;
        let owner = wanted.owner;
        while let Some((mut worker, has_script)) = self.take(wanted) {
            if worker.is_alive() {
                return Ok(PooledWorker { worker, has_script, owner, _permit: permit });
            }
        }
        let (worker, ..) = self.start_worker().await?;
        Ok(PooledWorker { worker, has_script: false, owner, _permit: permit })
    }

    fn take(&self, wanted: &WorkerRequest<'_>) -> Option<(Worker, bool)> {
        let mut state = self.state.lock();
        let own = |idle: &Idle| idle.owner == wanted.owner;
        let is_for_this = |kept: &Kept| kept.isolation == wanted.isolation && Arc::ptr_eq(&kept.script, wanted.script);
        let kept_this = |idle: &Idle| idle.kept.as_ref().is_some_and(is_for_this);
        if let Some(at) = state.idle.iter().rposition(|idle| own(idle) && kept_this(idle)) {
            return Some((state.idle.remove(at).worker, true));
        }
        if wanted.is_best_untouched
            && let Some(spare) = self.take_spare(&mut state)
        {
            return Some((spare, false));
        }
        let is_free = |idle: &Idle| own(idle) && idle.kept.is_none();
        // A worker that is still preparing its isolate is used only if no other is ready.
        let ready = state.idle.iter_mut().rposition(|idle| is_free(idle) && idle.worker.is_ready());
        if ready.is_none()
            && state.idle.len() < self.room_for_idle()
            && let Some(spare) = self.take_spare(&mut state)
        {
            return Some((spare, false));
        }
        if let Some(at) = ready.or_else(|| state.idle.iter().position(is_free)) {
            return Some((state.idle.remove(at).worker, false));
        }
        if let Some(spare) = self.take_spare(&mut state) {
            return Some((spare, false));
        }
        if let Some(at) = state.idle.iter().position(own) {
            return Some((state.idle.remove(at).worker, false));
        }
        self.make_room(&mut state);
        None
    }

    fn take_spare(&self, state: &mut State) -> Option<Worker> {
        let spare = state.spares.pop()?;
        self.spare_taken.notify_one();
        self.make_room(state);
        Some(spare)
    }

    /// Stops idle workers, longest idle first, until one more process fits.
    fn make_room(&self, state: &mut State) {
        let surplus = state.idle.len().saturating_sub(self.room_for_idle());
        state.idle.drain(..surplus);
    }

    /// How many workers can be idle beside those that run calls.
    fn room_for_idle(&self) -> usize {
        self.permits.available_permits().min(self.options.max_workers.max(1))
    }

    /// Returns a worker to the pool after a call that left it usable.
    pub fn release(&self, pooled: PooledWorker, kept: Option<Kept>) {
        if self.closed.is_cancelled() || pooled.worker.is_exhausted() {
            return;
        }
        let cpu_time = pooled.worker.bounds.cpu_time();
        let idle = Idle { worker: pooled.worker, owner: pooled.owner, kept, since: Instant::now(), cpu_time };
        let is_spent = idle.kept.is_none() && idle.worker.has_child;
        self.state.lock().idle.push(idle);
        if is_spent {
            self.spent.notify_one();
        }
    }

    /// Refills the spares and stops workers that were idle for too long or whose memory is needed,
    /// until the pool is closed.
    pub async fn maintain(&self) {
        let mut rounds = tokio::time::interval((self.options.idle / 4).clamp(SHORTEST_ROUND, LONGEST_ROUND));
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return,
                () = self.spare_taken.notified() => {}
                () = self.spent.notified() => self.open_forked().await,
                _ = rounds.tick() => self.retire(),
            }
            while self.state.lock().spares.len() < self.options.spares {
                let started = tokio::select! {
                    () = self.closed.cancelled() => return,
                    started = self.start_worker() => started,
                };
                match started {
                    Ok((worker, ..)) => self.add_spare(worker),
                    Err(error) => {
                        tracing::warn!(%error, "a spare sandbox worker could not be started");
                        tokio::select! {
                            () = self.closed.cancelled() => return,
                            () = tokio::time::sleep(AFTER_FAILURE) => {}
                        }
                    }
                }
            }
        }
    }

    /// Opens the processes that were forked since, so that no call has to wait for that.
    async fn open_forked(&self) {
        tokio::select! {
            () = self.closed.cancelled() => return,
            () = tokio::time::sleep(NEXT_CHILD) => {}
        }
        let mut state = self.state.lock();
        let mut is_awaited = false;
        for idle in state.idle.iter_mut().filter(|idle| idle.kept.is_none()) {
            is_awaited |= !idle.worker.is_ready();
        }
        drop(state);
        if is_awaited {
            self.spent.notify_one();
        }
    }

    fn retire(&self) {
        let is_memory_scarce = (self.options.is_memory_scarce)();
        let mut state = self.state.lock();
        let idle = self.options.idle;
        state.idle.retain_mut(|worker| worker.since.elapsed() < idle && worker.is_reusable());
        if is_memory_scarce {
            let half = state.idle.len().div_ceil(2);
            state.idle.drain(..half);
        }
        state.spares.retain_mut(Worker::is_alive);
        drop(state);
        self.cgroups.remove_leftovers();
    }

    /// Stops every idle worker; busy ones stop with their calls. `maintain` runs until it notices,
    /// and `ended` returns after the last worker has exited.
    pub async fn close(&self) {
        self.closed.cancel();
        self.permits.close();
        let state = std::mem::take(&mut *self.state.lock());
        let workers = state.spares.into_iter().chain(state.idle.into_iter().map(|idle| idle.worker));
        futures::future::join_all(workers.map(Worker::kill)).await;
    }

    /// Waits until all processes have exited, including those of calls that are being ended, and
    /// cleans up.
    pub async fn ended(&self) {
        self.spawner.close().await;
        self.spawner.ends.close();
        let _ = tokio::time::timeout(REAP, self.spawner.ends.wait()).await;
        let cgroups = self.cgroups.clone();
        let _ = tokio::task::spawn_blocking(move || cgroups.close()).await;
    }
}
