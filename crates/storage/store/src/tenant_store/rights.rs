//! What the agent can call, and grants.

use async_trait::async_trait;
use rcrt_breadcrumb::{AclChange, AclEntry, AllowedTools, Rights, StoreError};
use uuid::Uuid;

use super::TenantStore;
use crate::database::failure::retrying;
use crate::database::row_access::RequiredPermission;
use crate::rights::acl;

#[async_trait]
impl Rights for TenantStore {
    async fn allowed_tools(&self) -> Result<Option<AllowedTools>, StoreError> {
        // Only an agent that writes nothing but requests has a list.
        if !self.actor.is_acting_for_another() && !self.actor.writes_only_requests {
            return Ok(None);
        }
        Ok(self.rights_of_agent().await?.allowed_tools)
    }

    async fn is_curator(&self) -> Result<bool, StoreError> {
        if self.actor.is_acting_for_another() {
            return Ok(self.rights_of_agent().await?.is_curator);
        }
        Ok(self.actor.is_curator)
    }

    async fn grants(&self, record: Option<Uuid>) -> Result<Vec<AclEntry>, StoreError> {
        Ok(acl::list(&mut self.begin_for(RequiredPermission::View).await?, self.actor, record).await?)
    }

    async fn grant(&self, change: &AclChange) -> Result<Uuid, StoreError> {
        self.actor().await?.refuse_other_writes_of_callers()?;
        change.check()?;
        let granted =
            retrying!(async { acl::grant(self.begin_for(RequiredPermission::View).await?, self.actor, change).await })?;
        // This process sees the new grant at once.
        self.store.shares.refresh(&self.store.database).await?;
        Ok(granted)
    }

    async fn revoke(&self, change: &AclChange) -> Result<u64, StoreError> {
        self.actor().await?.refuse_other_writes_of_callers()?;
        change.check()?;
        retrying!(async { acl::revoke(self.begin_for(RequiredPermission::View).await?, self.actor, change).await })
    }
}
