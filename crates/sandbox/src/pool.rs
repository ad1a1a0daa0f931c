//! The worker processes: some stand ready for anybody, the others belong to one tenant each until they end.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use breadcrumb::{Isolation, Limits};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use crate::protocol::{Hello, Mode};
use crate::snapshot::Snapshot;
use crate::spawner::Spawner;
use crate::worker::Worker;
use crate::{SandboxError, SandboxOptions, Script};

/// After a worker could not be started, the next try waits this long.
const AFTER_FAILURE: Duration = Duration::from_secs(1);

pub struct Pool {
    options: SandboxOptions,
    spawner: Spawner,
    snapshot: Option<Snapshot>,
    /// One permit for each call that runs; those who wait are served in order.
    permits: Arc<Semaphore>,
    state: Mutex<State>,
    spare_taken: Notify,
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
}

/// A worker for one call. Dropped instead of given back, it takes its process with it.
pub struct Lease {
    pub worker: Worker,
    /// The worker still has the isolate of this very script.
    pub has_script: bool,
    owner: Uuid,
    _permit: OwnedSemaphorePermit,
}

impl Pool {
    pub fn new(options: SandboxOptions, spawner: Spawner, snapshot: Option<Snapshot>) -> Self {
        Self {
            permits: Arc::new(Semaphore::new(options.max_workers.max(1))),
            options,
            spawner,
            snapshot,
            state: Mutex::default(),
            spare_taken: Notify::new(),
            closed: CancellationToken::new(),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a worker and waits until it is ready.
    pub async fn start_worker(&self) -> Result<(Worker, Hello), SandboxError> {
        let snapshot = self.snapshot.as_ref().map(Snapshot::share).transpose()?;
        let memory_mb = Limits::default().memory_mb;
        let mut worker = Worker::spawn(&self.spawner, Mode::Serve, snapshot, memory_mb).await?;
        let hello = worker.hello().await?;
        tracing::debug!(process = worker.process_id(), "a sandbox worker is ready");
        Ok((worker, hello))
    }

    pub fn add_spare(&self, worker: Worker) {
        self.state().spares.push(worker);
    }

    /// Waits for a turn, then gives the best worker there is: the one that kept the script, another of the tenant, a
    /// spare, a new one.
    pub async fn lease(&self, owner: Uuid, script: &Arc<Script>, isolation: Isolation) -> Result<Lease, SandboxError> {
        let permit = self.permits.clone().acquire_owned().await.map_err(|_| SandboxError::Closed)?;
        while let Some((mut worker, has_script)) = self.take(owner, script, isolation) {
            if worker.is_alive() {
                return Ok(Lease { worker, has_script, owner, _permit: permit });
            }
        }
        let (worker, _) = self.start_worker().await?;
        Ok(Lease { worker, has_script: false, owner, _permit: permit })
    }

    fn take(&self, owner: Uuid, script: &Arc<Script>, isolation: Isolation) -> Option<(Worker, bool)> {
        let mut state = self.state();
        let own = |idle: &Idle| idle.owner == owner;
        let kept_this = |idle: &Idle| idle.kept.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, script));
        if isolation == Isolation::Tool
            && let Some(at) = state.idle.iter().rposition(|idle| own(idle) && kept_this(idle))
        {
            return Some((state.idle.remove(at).worker, true));
        }
        if let Some(at) = state.idle.iter().rposition(|idle| own(idle) && idle.kept.is_none()) {
            return Some((state.idle.remove(at).worker, false));
        }
        if let Some(spare) = state.spares.pop() {
            self.spare_taken.notify_one();
            self.make_room(&mut state);
            return Some((spare, false));
        }
        if let Some(at) = state.idle.iter().position(own) {
            return Some((state.idle.remove(at).worker, false));
        }
        self.make_room(&mut state);
        None
    }

    /// Ends idle workers, longest idle first, until one more process fits.
    fn make_room(&self, state: &mut State) {
        let busy = self.options.max_workers.max(1).saturating_sub(self.permits.available_permits());
        let room = self.options.max_workers.max(1).saturating_sub(busy);
        let surplus = state.idle.len().saturating_sub(room);
        state.idle.drain(..surplus);
    }

    /// Takes a worker back after a call that ended well for it.
    pub fn give_back(&self, lease: Lease, kept: Option<Arc<Script>>) {
        if self.closed.is_cancelled() || lease.worker.is_worn_out() {
            return;
        }
        let idle = Idle { worker: lease.worker, owner: lease.owner, kept, since: Instant::now() };
        self.state().idle.push(idle);
    }

    /// Keeps spares in stock and ends what was idle for too long, until the pool is closed.
    pub async fn tend(&self) {
        let mut rounds = tokio::time::interval((self.options.idle / 4).max(Duration::from_millis(100)));
        loop {
            tokio::select! {
                () = self.closed.cancelled() => return,
                () = self.spare_taken.notified() => {}
                _ = rounds.tick() => self.retire(),
            }
            while self.state().spares.len() < self.options.spares {
                let started = tokio::select! {
                    () = self.closed.cancelled() => return,
                    started = self.start_worker() => started,
                };
                match started {
                    Ok((worker, _)) => self.add_spare(worker),
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

    fn retire(&self) {
        let mut state = self.state();
        let idle = self.options.idle;
        state.idle.retain_mut(|worker| worker.since.elapsed() < idle && worker.worker.is_alive());
        state.spares.retain_mut(Worker::is_alive);
    }

    /// Ends every worker that has nothing to do; those at work end with their calls.
    pub async fn close(&self) {
        self.closed.cancel();
        self.permits.close();
        let state = std::mem::take(&mut *self.state());
        let workers = state.spares.into_iter().chain(state.idle.into_iter().map(|idle| idle.worker));
        futures::future::join_all(workers.map(Worker::kill)).await;
    }
}
