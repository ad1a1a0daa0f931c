//! CPU-bound work outside of the async runtime: on a bounded number of threads, with a deadline,
//! and with a fair share for each tenant.
//!
//! It knows nothing about the work. Work that runs cannot be stopped, so the caller bounds its
//! cost. All of it is in this file; begin with [`Pool`].

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError, Weak};
use std::thread::available_parallelism;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

/// Why there is no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    #[error("the processors were busy until the deadline")]
    DeadlineExceeded,
    #[error("too much of the tenant's work waits for its turn")]
    QueueFull,
    #[error("the work broke off")]
    Panicked,
}

/// Of one tenant's work with a deadline, what may wait for its turn.
const MOST_WAITING: usize = 256;

/// Threads that tenants share.
#[derive(Debug)]
pub struct Pool {
    threads: Arc<Semaphore>,
    share: usize,
    /// Of tenants that have work here.
    tenants: Mutex<HashMap<Uuid, Weak<TenantQueue>>>,
}

/// One tenant's work.
#[derive(Debug)]
struct TenantQueue {
    share: Arc<Semaphore>,
    waiting: AtomicUsize,
}

static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::new(available_parallelism().map_or(2, usize::from)));

/// The pool of this process: a thread for each processor, two at least.
pub fn pool() -> &'static Pool {
    &POOL
}

impl Pool {
    /// At least two threads, of which one tenant gets all but one: others never wait for a tenant's whole line.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(2);
        Self { threads: Arc::new(Semaphore::new(threads)), share: threads - 1, tenants: Mutex::default() }
    }

    /// How many threads one tenant gets at most.
    pub fn share(&self) -> usize {
        self.share
    }

    /// How much of a tenant's work waits for its turn.
    pub fn waiting(&self, tenant: Uuid) -> usize {
        self.line(tenant).waiting.load(Ordering::Acquire)
    }

    /// Runs the work when it is its tenant's turn, however long its line is: for whoever has a bounded number of it. Work that
    /// nobody waits for any more before it began is not done.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: Uuid,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        let turn = self.turn(tenant).await;
        worked(turn, work).await
    }

    /// The same, given up at the deadline, and at once where the line is long. Work that runs at the deadline ends by itself,
    /// on its tenant's share.
    pub async fn run_until<T: Send + 'static>(
        &self,
        tenant: Uuid,
        deadline: Instant,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        if self.waiting(tenant) >= MOST_WAITING {
            return Err(ComputeError::QueueFull);
        }
        timeout_at(deadline, self.run(tenant, work)).await.unwrap_or(Err(ComputeError::DeadlineExceeded))
    }

    /// First within the tenant, then among the tenants: so each tenant has no more than its share in the common line.
    async fn turn(&self, tenant: Uuid) -> Permit {
        let line = self.line(tenant);
        let waits = WaitingGuard::in_line(&line);
        let share = acquired(line.share.clone()).await;
        let thread = acquired(self.threads.clone()).await;
        drop(waits);
        Permit { _thread: thread, _share: share, _line: line }
    }

    fn line(&self, tenant: Uuid) -> Arc<TenantQueue> {
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(line) = tenants.get(&tenant).and_then(Weak::upgrade) {
            return line;
        }
        tenants.retain(|_, line| line.strong_count() > 0);
        let line = Arc::new(TenantQueue { share: Arc::new(Semaphore::new(self.share)), waiting: AtomicUsize::new(0) });
        tenants.insert(tenant, Arc::downgrade(&line));
        line
    }
}

/// Counted as long as it waits, also where it gives up.
struct WaitingGuard<'l>(&'l TenantQueue);

impl<'l> WaitingGuard<'l> {
    fn in_line(line: &'l TenantQueue) -> Self {
        line.waiting.fetch_add(1, Ordering::AcqRel);
        Self(line)
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A place on a thread, held until the work has ended.
struct Permit {
    _thread: Option<OwnedSemaphorePermit>,
    _share: Option<OwnedSemaphorePermit>,
    /// So that the tenant keeps its line as long as it has work here.
    _line: Arc<TenantQueue>,
}

/// The semaphores here are never closed: there always is a permit.
async fn acquired(permits: Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    permits.acquire_owned().await.ok()
}

async fn worked<T: Send + 'static>(turn: Permit, work: impl FnOnce() -> T + Send + 'static) -> Result<T, ComputeError> {
    let working = spawn_blocking(move || {
        let done = work();
        drop(turn);
        done
    });
    working.await.map_err(|_| ComputeError::Panicked)
}
