//! Calls, finished or not, the egress log and the audit log.

use async_trait::async_trait;
use rcrt_breadcrumb::{
    AuditEntry, AuditLog, AuditQuery, CallDetails, CallHistory, CallPage, CallQuery, CallStats, CallStatsQuery,
    EgressEntry, EgressLog, EgressQuery, EgressRecord, StoreError,
};
use uuid::Uuid;

use super::TenantStore;
use crate::calls::{self, egress_log, stats};
use crate::database::row_access::RequiredPermission;
use crate::rights::audit;

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

#[async_trait]
impl EgressLog for TenantStore {
    async fn log_egress(&self, records: Vec<EgressRecord>) -> Result<(), StoreError> {
        egress_log::check(&records)?;
        Ok(egress_log::write(self.begin_async_commit().await?, &records).await?)
    }

    async fn egress_log(&self, query: &EgressQuery) -> Result<Vec<EgressEntry>, StoreError> {
        egress_log::check_query(query)?;
        Ok(egress_log::read(self.begin().await?, query).await?)
    }
}

#[async_trait]
impl AuditLog for TenantStore {
    async fn audit_log(&self, query: &AuditQuery) -> Result<Vec<AuditEntry>, StoreError> {
        if !self.actor.is_curator {
            return Err(StoreError::Forbidden("only a curator can read the audit log".into()));
        }
        audit::check_query(query)?;
        Ok(audit::read(&mut self.begin().await?, query).await?)
    }
}
