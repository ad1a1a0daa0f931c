//! A layer over a store that applies `schema.def.v1` records: what records of a schema name
//! contain, how long they are kept, and how models see them.
//!
//! [`Schemas`] is a [`Tenancy`] that wraps another one. Definitions are cached and updated by the
//! tenant's events, so a read or a write of a schema name without a definition costs no extra
//! query. It deliberately knows no database, no HTTP and no tool. It does not change records that
//! were written before a definition.
//!
//! Begin with `definition.rs`, `layer.rs` and `checked_writes.rs`.
//!
//! # Example
//! ```
//! use std::sync::Arc;
//!
//! use rcrt_breadcrumb::{Created, Identity, NewBreadcrumb, StoreError, Tenancy};
//! use rcrt_schemas::Schemas;
//!
//! /// Writes a record. [`StoreError::Invalid`] if it does not fit the definition of its schema name.
//! async fn create(store: Arc<dyn Tenancy>, agent: Identity, record: NewBreadcrumb) -> Result<Created, StoreError> {
//!     let schemas = Schemas::over(store);
//!     let created = schemas.acting_as(agent).create(record, None).await;
//!     schemas.close().await;
//!     created
//! }
//! ```

mod checked_writes;
mod definition;
mod definition_cache;
pub mod hints;
mod layer;

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::Tenancy;

use crate::definition_cache::DefinitionCache;

/// The stores of all tenants, with their definitions applied. Stops with [`Schemas::close`], or
/// when it is dropped.
pub struct Schemas {
    inner: Arc<dyn Tenancy>,
    definitions: Arc<DefinitionCache>,
}

impl Schemas {
    /// A write waits at most 10 seconds for its check.
    pub fn over(inner: Arc<dyn Tenancy>) -> Arc<Self> {
        Self::with_check_timeout(inner, Duration::from_secs(10))
    }

    pub fn with_check_timeout(inner: Arc<dyn Tenancy>, check_timeout: Duration) -> Arc<Self> {
        Arc::new(Self { definitions: DefinitionCache::new(inner.clone(), check_timeout), inner })
    }

    /// Stops following events. Call it before the store is closed.
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
