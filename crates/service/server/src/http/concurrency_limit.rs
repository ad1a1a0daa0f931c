//! Limits the concurrent requests of each tenant, including event streams: each holds a connection.

use std::{collections::HashMap, sync::Arc, time::Duration};

use parking_lot::Mutex;
use uuid::Uuid;

use crate::http::problem::Problem;

pub struct ConcurrencyLimit {
    /// For tenants without their own quota.
    most: usize,
    tenants: Mutex<HashMap<Uuid, usize>>,
}

impl ConcurrencyLimit {
    pub fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, tenants: Mutex::default() })
    }

    /// The limit in force for a tenant with this quota of its own. `None`: no limit.
    pub fn in_force(&self, own: Option<u64>) -> Option<u64> {
        Some(own.unwrap_or(self.most as u64)).filter(|most| *most > 0)
    }

    /// Counts one more request of the tenant until the permit is dropped. `own`: its own quota.
    pub fn acquire(self: &Arc<Self>, owner_id: Uuid, own: Option<u64>) -> Result<ConcurrencyPermit, Problem> {
        let most = self.in_force(own);
        let mut tenants = self.tenants.lock();
        let count = tenants.entry(owner_id).or_default();
        if most.is_some_and(|most| *count as u64 >= most) {
            let why = format!("the agents of this tenant have {count} requests in progress, which is the maximum");
            return Err(Problem::rate_limited(&why, Duration::from_secs(1)));
        }
        *count += 1;
        drop(tenants);
        Ok(ConcurrencyPermit { concurrency_limit: self.clone(), owner_id })
    }
}

/// Counts one request in progress.
pub struct ConcurrencyPermit {
    concurrency_limit: Arc<ConcurrencyLimit>,
    owner_id: Uuid,
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut tenants = self.concurrency_limit.tenants.lock();
        if let Some(count) = tenants.get_mut(&self.owner_id) {
            *count -= 1;
            if *count == 0 {
                tenants.remove(&self.owner_id);
            }
        }
    }
}
