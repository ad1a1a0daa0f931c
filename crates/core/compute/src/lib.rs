//! Runs CPU-bound work outside of the async runtime: on a bounded number of threads, with a
//! deadline, and with a fair share for each tenant.
//!
//! It knows nothing about the work. Running work cannot be stopped, so the caller must bound its
//! cost. All of it is in this file; begin with [`Pool`].
//!
//! # Example
//! ```
//! use rcrt_compute::Pool;
//! use uuid::Uuid;
//!
//! # tokio::runtime::Builder::new_current_thread().enable_time().build()?.block_on(async {
//! let pool = Pool::new(4);
//! assert_eq!(pool.share(), 3); // One tenant cannot use all threads.
//!
//! let tenant = Uuid::new_v4();
//! let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(60);
//! let sum = pool.run_until(tenant, deadline, || (1..=1_000_u64).sum::<u64>()).await;
//! assert_eq!(sum, Ok(500_500));
//! # });
//! # Ok::<(), std::io::Error>(())
//! ```

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, LazyLock, Weak};
use std::thread::available_parallelism;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::spawn_blocking;
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

/// Why work has no result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ComputeError {
    #[error("the processors that the tenant can use were busy until the deadline")]
    DeadlineExceeded,
    #[error("the limit of {MOST_WAITING} waiting tasks of the tenant is reached")]
    QueueFull,
    #[error("the work panicked")]
    Panicked,
}

/// How much work of one tenant can be queued before work with a deadline is refused.
const MOST_WAITING: usize = 256;

/// Threads that tenants share.
#[derive(Debug)]
pub struct Pool {
    threads: Arc<Semaphore>,
    share: usize,
    /// The tenants that have work in this pool.
    tenants: Mutex<HashMap<Uuid, Weak<TenantQueue>>>,
}

/// One tenant's work.
#[derive(Debug)]
struct TenantQueue {
    share: Arc<Semaphore>,
    waiting: AtomicUsize,
}

static POOL: LazyLock<Pool> = LazyLock::new(|| Pool::new(available_parallelism().map_or(2, usize::from)));

/// The pool of this process: a thread for each processor, and at least two.
pub fn pool() -> &'static Pool {
    &POOL
}

impl Pool {
    /// A pool of at least two threads. One tenant can use all but one of them, so other tenants
    /// never wait for its whole queue.
    pub fn new(threads: usize) -> Self {
        let threads = threads.max(2);
        Self { threads: Arc::new(Semaphore::new(threads)), share: threads - 1, tenants: Mutex::default() }
    }

    /// The maximum number of threads for one tenant.
    pub fn share(&self) -> usize {
        self.share
    }

    /// How much work of a tenant is queued.
    pub fn waiting(&self, tenant: Uuid) -> usize {
        self.queue(tenant).waiting.load(Ordering::Acquire)
    }

    /// Queues the work and runs it, however long the tenant's queue is. The caller must bound how
    /// much work it submits. Work whose future is dropped before it starts is not run.
    pub async fn run<T: Send + 'static>(
        &self,
        tenant: Uuid,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, ComputeError> {
        let turn = self.turn(tenant).await;
        worked(turn, work).await
    }

    /// The same, with a deadline. Fails at once if the tenant's queue is full. Work that is running
    /// at the deadline runs to its end and uses its tenant's share until then.
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

    /// Waits first for the tenant's share, then for a thread, so each tenant has no more than its
    /// share in the common queue.
    async fn turn(&self, tenant: Uuid) -> Permit {
        let queue = self.queue(tenant);
        let waits = WaitingGuard::enter(&queue);
        let share = acquired(queue.share.clone()).await;
        let thread = acquired(self.threads.clone()).await;
        drop(waits);
        Permit { _thread: thread, _share: share, _queue: queue }
    }

    fn queue(&self, tenant: Uuid) -> Arc<TenantQueue> {
        let mut tenants = self.tenants.lock();
        if let Some(queue) = tenants.get(&tenant).and_then(Weak::upgrade) {
            return queue;
        }
        tenants.retain(|_, queue| queue.strong_count() > 0);
        let queue = Arc::new(TenantQueue { share: Arc::new(Semaphore::new(self.share)), waiting: AtomicUsize::new(0) });
        tenants.insert(tenant, Arc::downgrade(&queue));
        queue
    }
}

/// Counts queued work. The drop also covers work that is given up.
struct WaitingGuard<'l>(&'l TenantQueue);

impl<'l> WaitingGuard<'l> {
    fn enter(queue: &'l TenantQueue) -> Self {
        queue.waiting.fetch_add(1, Ordering::AcqRel);
        Self(queue)
    }
}

impl Drop for WaitingGuard<'_> {
    fn drop(&mut self) {
        self.0.waiting.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The right to a thread, held until the work has finished.
struct Permit {
    _thread: Option<OwnedSemaphorePermit>,
    _share: Option<OwnedSemaphorePermit>,
    /// Keeps the tenant's queue alive while it has work here.
    _queue: Arc<TenantQueue>,
}

/// Always returns a permit, because the semaphores here are never closed.
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
