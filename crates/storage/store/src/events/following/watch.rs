//! Which tenants have changed, for a watcher of all of them.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use tokio::sync::Notify;
use uuid::Uuid;

/// The watchers of all tenants.
#[derive(Default)]
pub(crate) struct Watches(Mutex<Vec<Arc<Watch>>>);

/// Changed tenants that one watcher has not visited yet: at most all tenants.
#[derive(Default)]
pub(crate) struct Watch {
    changed: Mutex<HashSet<Uuid>>,
    ring: Notify,
}

impl Watches {
    /// The watch exists until the store is closed.
    pub(crate) fn watch(&self) -> Arc<Watch> {
        let watch = Arc::new(Watch::default());
        locked(&self.0).push(watch.clone());
        watch
    }

    pub(crate) fn notify(&self, owner_id: Uuid) {
        for watch in locked(&self.0).iter() {
            locked(&watch.changed).insert(owner_id);
            watch.ring.notify_one();
        }
    }

    /// Wakes all watchers without naming a tenant.
    pub(crate) fn ring(&self) {
        for watch in locked(&self.0).iter() {
            watch.ring.notify_one();
        }
    }
}

impl Watch {
    pub(crate) async fn changed(&self) {
        self.ring.notified().await;
    }

    pub(crate) fn take(&self) -> HashSet<Uuid> {
        std::mem::take(&mut locked(&self.changed))
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics while it holds one of these locks.
    mutex.lock()
}
