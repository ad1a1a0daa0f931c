//! The traits [`CallHistory`], [`EgressLog`] and [`AuditLog`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    AuditEntry, AuditQuery, CallDetails, CallPage, CallQuery, CallStats, CallStatsQuery, EgressEntry, EgressQuery,
    EgressRecord, StoreError,
};

/// Calls, finished or not, for people and dashboards.
#[async_trait]
pub trait CallHistory: Send + Sync + 'static {
    /// Lists calls, newest first. An agent sees the calls whose requests it can read; curators and
    /// runners see all of the tenant.
    async fn list_calls(&self, _query: &CallQuery) -> Result<CallPage, StoreError> {
        Err(no_history())
    }

    /// One call with its request and response. [`StoreError::NotFound`] if there is none, or if the
    /// agent cannot see its request.
    async fn call_details(&self, _request: Uuid) -> Result<CallDetails, StoreError> {
        Err(no_history())
    }

    /// Counts and durations of finished calls of the whole tenant, for curators. The cost does not
    /// depend on the number of calls.
    async fn call_stats(&self, _query: &CallStatsQuery) -> Result<CallStats, StoreError> {
        Err(no_history())
    }
}

fn no_history() -> StoreError {
    StoreError::Internal("this store has no history of calls".into())
}

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
