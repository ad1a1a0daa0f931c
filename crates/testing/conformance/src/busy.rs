//! Blocks a tenant's background threads until a test releases them.

use std::sync::{Arc, LazyLock, mpsc};

use tokio::sync::{Mutex, OwnedMutexGuard, oneshot};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Keeps all threads busy that a tenant can use, until it is dropped. Only one at a time, so that
/// some threads stay free.
pub struct Busy {
    ends: Vec<mpsc::Sender<()>>,
    running: Vec<JoinHandle<()>>,
    _alone: OwnedMutexGuard<()>,
}

static ONE_AT_A_TIME: LazyLock<Arc<Mutex<()>>> = LazyLock::new(Arc::default);

impl Busy {
    pub async fn of(tenant: Uuid) -> Self {
        let alone = ONE_AT_A_TIME.clone().lock_owned().await;
        let (mut ends, mut running) = (Vec::new(), Vec::new());
        for _ in 0..rcrt_compute::pool().share() {
            let (began, has_begun) = oneshot::channel();
            let (end, ended) = mpsc::channel::<()>();
            running.push(tokio::spawn(async move {
                let work = move || {
                    began.send(()).unwrap();
                    // Until the sender is dropped.
                    ended.recv().unwrap_err();
                };
                rcrt_compute::pool().run(tenant, work).await.unwrap();
            }));
            has_begun.await.unwrap();
            ends.push(end);
        }
        Self { ends, running, _alone: alone }
    }

    /// Returns when `waiting` jobs of the tenant wait.
    pub async fn wait_for(tenant: Uuid, waiting: usize) {
        while rcrt_compute::pool().waiting(tenant) < waiting {
            tokio::task::yield_now().await;
        }
    }

    pub async fn end(self) {
        drop(self.ends);
        for running in self.running {
            running.await.unwrap();
        }
    }
}
