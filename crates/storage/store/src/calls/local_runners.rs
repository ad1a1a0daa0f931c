//! The runners in this process that take calls while their requests are written.

use std::collections::HashMap;
use std::sync::Arc;

use parking_lot::{Mutex, MutexGuard};
use rcrt_breadcrumb::{LocalRunner, LocalRunnerGuard};
use uuid::Uuid;

use crate::actor::Actor;

/// One of them, and whose it is.
#[derive(Clone)]
struct Runner {
    runner: Arc<dyn LocalRunner>,
    actor: Actor,
}

#[derive(Default)]
pub(crate) struct LocalRunners {
    tenants: Mutex<HashMap<Uuid, Vec<Runner>>>,
}

impl LocalRunners {
    fn locked(&self) -> MutexGuard<'_, HashMap<Uuid, Vec<Runner>>> {
        // Nothing here panics while it holds the lock.
        self.tenants.lock()
    }

    /// The first reservation of a runner, and whose that runner is.
    pub(crate) fn first_reservation<T>(
        &self,
        owner_id: Uuid,
        reserve: impl Fn(&dyn LocalRunner) -> Option<T>,
    ) -> Option<(T, Actor)> {
        // Asked without the lock: who is asked may stop standing by.
        let runners = self.locked().get(&owner_id)?.clone();
        runners.iter().find_map(|runner| Some((reserve(&*runner.runner)?, runner.actor)))
    }

    pub(crate) fn join(
        self: &Arc<Self>,
        owner_id: Uuid,
        actor: Actor,
        runner: Arc<dyn LocalRunner>,
    ) -> LocalRunnerGuard {
        self.locked().entry(owner_id).or_default().push(Runner { runner: runner.clone(), actor });
        let local_runners = Arc::downgrade(self);
        LocalRunnerGuard::new(move || {
            if let Some(local_runners) = local_runners.upgrade() {
                local_runners.leave(owner_id, &runner);
            }
        })
    }

    fn leave(&self, owner_id: Uuid, runner: &Arc<dyn LocalRunner>) {
        let mut tenants = self.locked();
        if let Some(local_runners) = tenants.get_mut(&owner_id) {
            local_runners.retain(|other| !Arc::ptr_eq(&other.runner, runner));
            if local_runners.is_empty() {
                tenants.remove(&owner_id);
            }
        }
    }
}
