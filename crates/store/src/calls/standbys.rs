//! The runners of this process that take calls as they are written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use breadcrumb::{Standby, StandingBy};
use uuid::Uuid;

use crate::author::Author;

/// One of them, and whose it is.
#[derive(Clone)]
struct Runner {
    standby: Arc<dyn Standby>,
    author: Author,
}

#[derive(Default)]
pub(crate) struct Standbys {
    tenants: Mutex<HashMap<Uuid, Vec<Runner>>>,
}

impl Standbys {
    fn locked(&self) -> MutexGuard<'_, HashMap<Uuid, Vec<Runner>>> {
        // Nothing here panics while it holds the lock.
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The first offer of a runner, and whose that runner is.
    pub(crate) fn first<T>(&self, owner_id: Uuid, offer: impl Fn(&dyn Standby) -> Option<T>) -> Option<(T, Author)> {
        // Asked without the lock: who is asked may stop standing by.
        let runners = self.locked().get(&owner_id)?.clone();
        runners.iter().find_map(|runner| Some((offer(&*runner.standby)?, runner.author)))
    }

    pub(crate) fn join(self: &Arc<Self>, owner_id: Uuid, author: Author, standby: Arc<dyn Standby>) -> StandingBy {
        self.locked().entry(owner_id).or_default().push(Runner { standby: standby.clone(), author });
        let standbys = Arc::downgrade(self);
        StandingBy::new(move || {
            if let Some(standbys) = standbys.upgrade() {
                standbys.leave(owner_id, &standby);
            }
        })
    }

    fn leave(&self, owner_id: Uuid, standby: &Arc<dyn Standby>) {
        let mut tenants = self.locked();
        if let Some(standbys) = tenants.get_mut(&owner_id) {
            standbys.retain(|other| !Arc::ptr_eq(&other.standby, standby));
            if standbys.is_empty() {
                tenants.remove(&owner_id);
            }
        }
    }
}
