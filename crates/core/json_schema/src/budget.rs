//! A shared memory budget for the compiled schemas of one owner.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The approximate bytes that compiled schemas can use together. Each releases its share when it is
/// dropped.
#[derive(Debug, Clone)]
pub struct Budget(Arc<Account>);

#[derive(Debug)]
struct Account {
    bytes: u64,
    left: AtomicU64,
}

/// The share of one schema.
#[derive(Debug)]
pub(crate) struct BudgetShare {
    account: Arc<Account>,
    bytes: u64,
}

impl Budget {
    pub fn new(bytes: u64) -> Self {
        Self(Arc::new(Account { bytes, left: AtomicU64::new(bytes) }))
    }

    /// Takes a share, or returns the size of the whole budget as the error.
    pub(crate) fn take(&self, bytes: u64) -> Result<BudgetShare, u64> {
        let took = self.0.left.fetch_update(Ordering::AcqRel, Ordering::Acquire, |left| left.checked_sub(bytes));
        took.map(|_| BudgetShare { account: self.0.clone(), bytes }).map_err(|_| self.0.bytes)
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.account.left.fetch_add(self.bytes, Ordering::AcqRel);
    }
}
