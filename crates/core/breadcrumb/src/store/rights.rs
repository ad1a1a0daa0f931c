//! The trait [`Rights`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{AclChange, AclEntry, AllowedTools, StoreError};

/// What agents can call, and grants that open records to other agents and tenants.
#[async_trait]
pub trait Rights: Send + Sync + 'static {
    /// The allow list of the agent for which this store acts, for a dispatcher that starts a call
    /// before its request is written. `None` if the agent can call every tool. A claim has the list
    /// already.
    async fn allowed_tools(&self) -> Result<Option<AllowedTools>, StoreError> {
        Ok(None)
    }

    /// Whether the agent for which this store acts is a curator. A store that is reached over a
    /// network knows it of the agent on whose behalf a runner acts, and else returns false.
    async fn is_curator(&self) -> Result<bool, StoreError> {
        Ok(false)
    }

    /// Lists the grants on one record or on all records, newest first. A curator sees all grants of
    /// the tenant. Other agents see the grants on records that they created.
    async fn grants(&self, _record: Option<Uuid>) -> Result<Vec<AclEntry>, StoreError> {
        Err(no_rights())
    }

    /// Opens a record of the tenant to an agent or to a whole tenant, and returns the grant's id.
    /// Each grantee has one grant per record; further actions are added to it.
    ///
    /// Curators and the agent that created the record can do this. For a `tool.response.v1`, only
    /// curators can. Others get [`StoreError::Forbidden`].
    async fn grant(&self, _change: &AclChange) -> Result<Uuid, StoreError> {
        Err(no_rights())
    }

    /// Revokes actions. Returns how many grants changed: 0 or 1. Open event streams stop sending
    /// events of the record within two seconds.
    async fn revoke(&self, _change: &AclChange) -> Result<u64, StoreError> {
        Err(no_rights())
    }
}

/// The error of a store that has no grants.
pub(super) fn no_rights() -> StoreError {
    StoreError::Internal("this store has no grants".into())
}
