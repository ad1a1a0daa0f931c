//! The audit log.

use breadcrumb::StoreError;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::Store;
use crate::failure::Done;
use crate::transaction::TenantTransaction;

/// One line of a tenant's audit log.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct AuditEntry {
    pub at: DateTime<Utc>,
    /// `None`: the operator.
    pub agent_id: Option<Uuid>,
    /// `secret.decrypted`, `secret.created`, `agent.deleted`, …
    pub action: String,
    /// The id of what it was done to.
    pub subject: Uuid,
    pub subject_name: String,
    /// Why, in the words of who did it.
    pub reason: Option<String>,
}

pub(crate) async fn write(
    tx: &mut TenantTransaction,
    agent: Option<Uuid>,
    action: &'static str,
    subject: Uuid,
    subject_name: &str,
    reason: Option<&str>,
) -> Done<()> {
    let owner_id = tx.owner_id;
    sqlx::query(
        "INSERT INTO audit (owner_id, agent_id, action, subject, subject_name, reason) VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(owner_id)
    .bind(agent)
    .bind(action)
    .bind(subject)
    .bind(subject_name)
    .bind(reason)
    .execute(tx.connection())
    .await?;
    Ok(())
}

impl Store {
    /// The newest lines of a tenant's audit log, newest first.
    pub async fn audit_log(&self, owner_id: Uuid, limit: u32) -> Result<Vec<AuditEntry>, StoreError> {
        let mut tx = TenantTransaction::begin(&self.inner, owner_id).await?;
        sqlx::query_as(
            "SELECT at, agent_id, action, subject, subject_name, reason FROM audit ORDER BY id DESC LIMIT $1",
        )
        .bind(i64::from(limit))
        .fetch_all(tx.connection())
        .await
        .map_err(|error| crate::failure::Failure::from(error).into())
    }
}
