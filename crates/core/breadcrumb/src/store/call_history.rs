//! The trait [`CallHistory`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{CallDetails, CallPage, CallQuery, CallStats, CallStatsQuery, StoreError};

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
