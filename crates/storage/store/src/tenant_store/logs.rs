//! The egress log and the audit log.

use async_trait::async_trait;
use rcrt_breadcrumb::{
    AuditEntry, AuditLog, AuditQuery, EgressEntry, EgressLog, EgressQuery, EgressRecord, StoreError,
};

use super::TenantStore;
use crate::calls::egress_log;
use crate::rights::audit;

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
