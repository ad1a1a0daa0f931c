//! The trait [`AuditLog`].

use async_trait::async_trait;

use crate::{AuditEntry, AuditQuery, StoreError};

/// The log of changes of rights, secrets and tools.
#[async_trait]
pub trait AuditLog: Send + Sync + 'static {
    /// Entries of the tenant's audit log, newest first. For curators.
    async fn audit_log(&self, _query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        Err(StoreError::Internal("this store has no audit log".into()))
    }
}
