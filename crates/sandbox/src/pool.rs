//! The pool of worker processes: some are ready for any tenant, each of the others belongs to one
//! tenant until it ends.

use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use breadcrumb::{Isolation, Limits};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::limits::{self, Cgroups, EnforcedLimits, Findings};
use crate::protocol::{Hello, Mode, Protection};
use crate::snapshot::Snapshot;
use crate::spawner::Spawner;
use crate::worker::{REAP, Worker};
use crate::{Level, SandboxError, SandboxOptions, Script, level};

/// How often idle workers are looked at.
const SHORTEST_ROUND: Duration = Duration::from_millis(100);
const LONGEST_ROUND: Duration = Duration::from_secs(5);
/// Processor time that a worker without a call may use: it makes the next isolate ready.
const IDLE_CPU: Duration = Duration::from_secs(2);
/// When the process of a worker's next isolate is usually there.
const NEXT_CHILD: Duration = Duration::from_millis(12);
/// After a worker could not be started, the next try waits this long.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

pub struct Pool {
    options: SandboxOptions,
    spawner: Spawner,
    snapshot: Option<Snapshot>,
    cgroups: Arc<Cgroups>,
    /// Which control groups there are, and why not.
    findings: Findings,
    /// What the first worker reported.
    protections: OnceLock<Vec<Protection>>,
    /// Said once: a later worker has other protections than the first.
    told: Once,
    /// The bounds of the first worker. One that cannot have the same does not run tools.
    enforced: OnceLock<EnforcedLimits>,
    /// One permit for each call that runs; those who wait are served in order.
    permits: Arc<Semaphore>,
    state: Mutex<State>,
    spare_taken: Notify,
    /// A worker came back whose next process is on its way.
    spent: Notify,
    pub closed: CancellationToken,
}

#[derive(Default)]
struct State {
    spares: Vec<Worker>,
    /// Longest idle first.
    idle: Vec<Idle>,
}

struct Idle {
    worker: Worker,
    owner: Uuid,
    /// Whose isolate the worker kept.
    kept: Option<Arc<Script>>,
    since: Instant,
    /// Its processor time then.
    cpu_time: Option<Duration>,
}

impl Idle {
    /// Nothing of a tool runs between calls, and nothing of the last one stays.
    fn is_well(&mut self) -> bool {
        let spent = self.worker.bounds.cpu_time().zip(self.cpu_time).map(|(now, then)| now.saturating_sub(then));
        if spent.is_some_and(|spent| spent > IDLE_CPU) {
            tracing::warn!(
                process = self.worker.process_id(),
                ?spent,
                "a sandbox worker without a call keeps busy: ended"
            );
            return false;
        }
        if self.worker.is_overdue(self.since) {
            tracing::warn!(process = self.worker.process_id(), "the process of a spent isolate does not end: ended");
            return false;
        }
        if self.kept.is_none() && self.worker.bounds.is_swollen() {
            tracing::debug!(process = self.worker.process_id(), "a sandbox worker holds on to memory: ended");
            return false;
        }
        self.worker.is_alive()
    }
}

/// Which worker a call would like.
pub struct WorkerRequest<'a> {
    pub owner: Uuid,
    pub script: &'a Arc<Script>,
    pub isolation: Isolation,
    /// One that no tool's code ever came to is worth more than one of the tenant.
    pub is_best_untouched: bool,
}

/// A worker for one call. Dropped instead of given back, it takes its process with it.
pub struct PooledWorker {
    pub worker: Worker,
    /// The worker still has the isolate of this very script.
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
            told: Once::new(),
            enforced: OnceLock::new(),
            state: Mutex::default(),
            spare_taken: Notify::new(),
            spent: Notify::new(),
            closed: CancellationToken::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker and waits until it is ready and has the protections that the level requires:
    /// a kernel may refuse to one process what it gave to another. Returns its handshake with all
    /// protections, including the parent's.
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

    /// Tells the operator, once, that the report of the start is true no more.
    fn compare(&self, protections: &[Protection]) {
        let first = self.protections.get_or_init(|| protections.to_vec());
        let lost = level::lost(first, protections);
        if !lost.is_empty() {
            self.told.call_once(|| {
                tracing::error!(
                    ?lost,
                    level = %self.options.level,
                    "a sandbox worker lacks protections that the first one had: the kernel refuses them now"
                );
            });
        }
    }

    pub fn add_spare(&self, worker: Worker) {
        self.state().spares.push(worker);
    }

    /// Waits for a turn, then gives the best worker there is: the one that kept the script, another of the tenant (one
    /// that is ready first), a spare, a new one.
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
        let mut state = self.state();
        let own = |idle: &Idle| idle.owner == wanted.owner;
        let kept_this = |idle: &Idle| idle.kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, wanted.script));
        if wanted.isolation == Isolation::Tool
            && let Some(at) = state.idle.iter().rposition(|idle| own(idle) && kept_this(idle))
        {
            return Some((state.idle.remove(at).worker, true));
        }
        if wanted.is_best_untouched
            && let Some(spare) = self.take_spare(&mut state)
        {
            return Some((spare, false));
        }
        let is_free = |idle: &Idle| own(idle) && idle.kept.is_none();
        // One that is still making its isolate is only waited for when no other stands ready.
        let ready = state.idle.iter_mut().rposition(|idle| is_free(idle) && idle.worker.is_ready());
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

    /// Ends idle workers, longest idle first, until one more process fits.
    fn make_room(&self, state: &mut State) {
        let busy = self.options.max_workers.max(1).saturating_sub(self.permits.available_permits());
        let room = self.options.max_workers.max(1).saturating_sub(busy);
        let surplus = state.idle.len().saturating_sub(room);
        state.idle.drain(..surplus);
    }

    /// Takes a worker back after a call that ended well for it.
    pub fn release(&self, pooled: PooledWorker, kept: Option<Arc<Script>>) {
        if self.closed.is_cancelled() || pooled.worker.is_worn_out() {
            return;
        }
        let cpu_time = pooled.worker.bounds.cpu_time();
        let idle = Idle { worker: pooled.worker, owner: pooled.owner, kept, since: Instant::now(), cpu_time };
        let is_spent = idle.kept.is_none() && idle.worker.has_child;
        self.state().idle.push(idle);
        if is_spent {
            self.spent.notify_one();
        }
    }

    /// Keeps spares in stock and ends what was idle for too long, until the pool is closed.
    pub async fn tend(&self) {
        let mut rounds = tokio::time::interval((self.options.idle / 4).clamp(SHORTEST_ROUND, LONGEST_ROUND));
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return,
                () = self.spare_taken.notified() => {}
                () = self.spent.notified() => self.welcome().await,
                _ = rounds.tick() => self.retire(),
            }
            while self.state().spares.len() < self.options.spares {
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

    /// Takes hold of the processes that are there since, so that no call has to wait for that.
    async fn welcome(&self) {
        tokio::select! {
            () = self.closed.cancelled() => return,
            () = tokio::time::sleep(NEXT_CHILD) => {}
        }
        let mut state = self.state();
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
        let mut state = self.state();
        let idle = self.options.idle;
        state.idle.retain_mut(|worker| worker.since.elapsed() < idle && worker.is_well());
        state.spares.retain_mut(Worker::is_alive);
        drop(state);
        self.cgroups.tidy();
    }

    /// Ends every worker that has nothing to do; those at work end with their calls. What tends the pool goes on until
    /// it sees that, and `ended` tells when its last worker has ended as well.
    pub async fn close(&self) {
        self.closed.cancel();
        self.permits.close();
        let state = std::mem::take(&mut *self.state());
        let workers = state.spares.into_iter().chain(state.idle.into_iter().map(|idle| idle.worker));
        futures::future::join_all(workers.map(Worker::kill)).await;
    }

    /// Waits for the ends of all processes, those of calls that are being ended too, and clears up.
    pub async fn ended(&self) {
        self.spawner.close().await;
        self.spawner.ends.close();
        let _ = tokio::time::timeout(REAP, self.spawner.ends.wait()).await;
        let cgroups = self.cgroups.clone();
        let _ = tokio::task::spawn_blocking(move || cgroups.close()).await;
    }
}
