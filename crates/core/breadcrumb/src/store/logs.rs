//! The traits of the tenant's logs: [`EgressLog`] and [`AuditLog`].

use async_trait::async_trait;

use crate::{AuditEntry, AuditQuery, EgressEntry, EgressQuery, EgressRecord, StoreError};

/// The log of the requests that tools sent.
#[async_trait]
pub trait EgressLog: Send + Sync + 'static {
    /// Adds up to [`crate::MAX_EGRESS_ENTRIES`] records to the tenant's egress log. For runners.
    async fn log_egress(&self, _records: Vec<EgressRecord>) -> Result<(), StoreError> {
        Err(no_egress_log())
    }

    /// Entries of the tenant's egress log, newest first. For curators.
    async fn egress_log(&self, _query: &EgressQuery) -> Result<Vec<EgressEntry>, StoreError> {
        Err(no_egress_log())
    }
}

fn no_egress_log() -> StoreError {
    StoreError::Internal("this store has no egress log".into())
}

/// The log of changes of rights, secrets and tools.
#[async_trait]
pub trait AuditLog: Send + Sync + 'static {
    /// Entries of the tenant's audit log, newest first. For curators.
    async fn audit_log(&self, _query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        Err(StoreError::Internal("this store has no audit log".into()))
    }
}
