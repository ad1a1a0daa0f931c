//! The runners of this process that take calls as they are written.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use breadcrumb::{Birth, Offer, Profiles, Standby, StandingBy};
use uuid::Uuid;

#[derive(Default)]
pub(crate) struct Standbys {
    tenants: Mutex<HashMap<Uuid, Vec<Arc<dyn Standby>>>>,
}

impl Standbys {
    fn locked(&self) -> MutexGuard<'_, HashMap<Uuid, Vec<Arc<dyn Standby>>>> {
        // Nothing here panics while it holds the lock.
        self.tenants.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The word of the first runner that takes the call.
    pub(crate) fn offer(
        &self,
        owner_id: Uuid,
        tool: &str,
        profiles: &Profiles,
        birth: &dyn Fn() -> Birth,
    ) -> Option<Offer> {
        // Asked without the lock: who is asked may stop standing by.
        let standbys = self.locked().get(&owner_id)?.clone();
        standbys.iter().find_map(|standby| standby.offer(tool, profiles, birth))
    }

    pub(crate) fn join(self: &Arc<Self>, owner_id: Uuid, standby: Arc<dyn Standby>) -> StandingBy {
        self.locked().entry(owner_id).or_default().push(standby.clone());
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
            standbys.retain(|other| !Arc::ptr_eq(other, standby));
            if standbys.is_empty() {
                tenants.remove(&owner_id);
            }
        }
    }
}
