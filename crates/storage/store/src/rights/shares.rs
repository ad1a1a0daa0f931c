//! Which tenants have shared records with other tenants, cached in memory: most have not, and their
//! lists cost nothing extra.

use std::collections::HashSet;

use parking_lot::Mutex;
use uuid::Uuid;

use crate::database::Database;
use crate::database::batches::tenants;
use crate::database::failure::Result;

#[derive(Default)]
pub(crate) struct Shares {
    tenants: Mutex<HashSet<Uuid>>,
}

impl Shares {
    /// Whether other tenants may have shared records with this tenant. A grant of another server is
    /// seen a second later.
    pub(crate) fn reach(&self, tenant: Uuid) -> bool {
        self.tenants.lock().contains(&tenant)
    }

    /// Refreshes the cache.
    pub(crate) async fn refresh(&self, database: &Database) -> Result<()> {
        let tenants = tenants(database, "SELECT tenants_with_shares()").await?;
        *self.tenants.lock() = tenants.into_iter().collect();
        Ok(())
    }
}
