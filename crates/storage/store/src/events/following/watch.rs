//! Which tenants have changed, for a watcher of all of them.

use std::collections::HashSet;
use std::sync::Arc;

use parking_lot::Mutex;
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
        self.0.lock().push(watch.clone());
        watch
    }

    pub(crate) fn notify(&self, owner_id: Uuid) {
        for watch in self.0.lock().iter() {
            watch.changed.lock().insert(owner_id);
            watch.ring.notify_one();
        }
    }

    /// Wakes all watchers without naming a tenant.
    pub(crate) fn ring(&self) {
        for watch in self.0.lock().iter() {
            watch.ring.notify_one();
        }
    }
}

impl Watch {
    pub(crate) async fn changed(&self) {
        self.ring.notified().await;
    }

    pub(crate) fn take(&self) -> HashSet<Uuid> {
        std::mem::take(&mut self.changed.lock())
    }
}
