//! Calls, finished or not.

use async_trait::async_trait;
use rcrt_breadcrumb::{CallDetails, CallHistory, CallPage, CallQuery, CallStats, CallStatsQuery, StoreError};
use uuid::Uuid;

use super::TenantStore;
use crate::calls::{self, stats};
use crate::database::row_access::RequiredPermission;

#[async_trait]
impl CallHistory for TenantStore {
    async fn list_calls(&self, query: &CallQuery) -> Result<CallPage, StoreError> {
        query.check()?;
        let agent = self.restricted_agent().await?;
        let own = CallQuery { agent_id: Some(self.actor.on_behalf_of), ..query.clone() };
        let query = if self.actor().await?.reads_only_own_calls { &own } else { query };
        Ok(calls::history::list(&mut self.begin_for(RequiredPermission::Read).await?, agent, query).await?)
    }

    async fn call_details(&self, request: Uuid) -> Result<CallDetails, StoreError> {
        self.refuse_hidden(request).await?;
        let agent = self.restricted_agent().await?;
        Ok(calls::history_details::read(self.begin_for(RequiredPermission::Read).await?, agent, request).await?)
    }

    async fn call_stats(&self, query: &CallStatsQuery) -> Result<CallStats, StoreError> {
        query.check()?;
        Ok(stats::read(self.begin().await?, query).await?)
    }
}
