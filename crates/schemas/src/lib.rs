//! A layer over a store: what the records of a schema name must be, how long they stay, and how models see them, as
//! `schema.def.v1` records say it.
//!
//! [`Schemas`] is a [`Tenancy`] before another one. Definitions are kept in memory and renewed by the tenant's events, so a
//! write or a read of a name without one asks the store nothing more. It deliberately knows no database, no HTTP and no
//! tool; and it does not touch records that were written before a definition.

mod checked_writes;
mod definition;
mod definition_cache;
pub mod hints;
mod layer;
mod local_runner;
mod tenancy;

use std::sync::Arc;

use breadcrumb::Tenancy;

use crate::definition_cache::DefinitionCache;

/// All tenants' stores, with their definitions in force. Ends with [`Schemas::close`], or when it is dropped.
pub struct Schemas {
    inner: Arc<dyn Tenancy>,
    definitions: Arc<DefinitionCache>,
}

impl Schemas {
    pub fn over(inner: Arc<dyn Tenancy>) -> Arc<Self> {
        Arc::new(Self { definitions: DefinitionCache::new(inner.clone()), inner })
    }

    /// Stops following events. To be called before the store is closed.
    pub async fn close(&self) {
        self.definitions.stop.cancel();
        self.definitions.tasks.close();
        self.definitions.tasks.wait().await;
    }
}

impl Drop for Schemas {
    fn drop(&mut self) {
        self.definitions.stop.cancel();
    }
}
