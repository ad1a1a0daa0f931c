//! The audit log.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

from_row! {
    /// One line of a tenant's audit log.
    #[derive(Debug, Clone, PartialEq, Eq)]
    pub struct AuditEntry {
        pub at: DateTime<Utc>,
        /// `None`: the operator.
        pub agent_id: Option<Uuid>,
        /// `secret.decrypted`, `secret.created`, `agent.deleted`, …
        pub action: String,
        /// The id of what the action changed or used.
        pub subject: Uuid,
        pub subject_name: String,
        /// The reason that the caller gave; for `secret.bound`, the hosts.
        pub reason: Option<String>,
        /// The tool's record for which it was done, or whose use of `subject` was granted or
        /// revoked.
        pub tool_id: Option<Uuid>,
    }
}

/// The entry to write.
#[derive(Clone, Copy)]
pub(crate) struct AuditLine<'l> {
    agent: Option<Uuid>,
    action: &'static str,
    subject: Uuid,
    subject_name: &'l str,
    reason: Option<&'l str>,
    tool: Option<Uuid>,
}

impl<'l> AuditLine<'l> {
    pub(crate) fn by(agent: Uuid, action: &'static str) -> Self {
        Self { agent: Some(agent), ..Self::by_operator(action) }
    }

    pub(crate) fn by_operator(action: &'static str) -> Self {
        Self { agent: None, action, subject: Uuid::nil(), subject_name: "", reason: None, tool: None }
    }

    pub(crate) fn on(self, subject: Uuid, subject_name: &'l str) -> Self {
        Self { subject, subject_name, ..self }
    }

    pub(crate) fn because(self, reason: &'l str) -> Self {
        Self { reason: Some(reason), ..self }
    }

    pub(crate) fn for_tool(self, tool: Uuid) -> Self {
        Self { tool: Some(tool), ..self }
    }
}

pub(crate) async fn write(tx: &mut TenantTransaction, line: AuditLine<'_>) -> Result<()> {
    let owner_id = tx.owner_id;
    sqlx::query(
        "INSERT INTO audit (owner_id, agent_id, action, subject, subject_name, reason, tool_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(owner_id)
    .bind(line.agent)
    .bind(line.action)
    .bind(line.subject)
    .bind(line.subject_name)
    .bind(line.reason)
    .bind(line.tool)
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// Newest first.
pub(crate) async fn read(tx: &mut TenantTransaction, limit: u32) -> Result<Vec<AuditEntry>> {
    Ok(sqlx::query_as(
        "SELECT at, agent_id, action, subject, subject_name, reason, tool_id FROM audit ORDER BY id DESC LIMIT $1",
    )
    .bind(i64::from(limit))
    .fetch_all(tx.connection())
    .await?)
}
