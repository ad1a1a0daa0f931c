//! The audit log.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{AuditEntry, AuditQuery, MAX_AUDIT_ENTRIES, StoreError, Violations, check_audit_action};
use sqlx::{Postgres, QueryBuilder};
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

from_row! {
    struct EntryRow {
        id: i64,
        at: DateTime<Utc>,
        agent_id: Option<Uuid>,
        action: String,
        subject: Uuid,
        subject_name: String,
        reason: Option<String>,
        tool_id: Option<Uuid>,
    }
}

impl From<EntryRow> for AuditEntry {
    fn from(row: EntryRow) -> Self {
        let EntryRow { id, at, agent_id, action, subject, subject_name, reason, tool_id } = row;
        Self { id, at, agent_id, action, subject, subject_name, reason, tool_id }
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

    /// By this agent, or by the operator.
    pub(crate) fn by_any(agent: Option<Uuid>, action: &'static str) -> Self {
        Self { agent, ..Self::by_operator(action) }
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

pub(crate) fn check_query(query: &AuditQuery) -> std::result::Result<(), StoreError> {
    if let Some(action) = &query.action {
        check_audit_action(action)?;
    }
    if (1..=MAX_AUDIT_ENTRIES).contains(&query.limit) {
        return Ok(());
    }
    Err(Violations::one("limit", format!("must be from 1 to {MAX_AUDIT_ENTRIES}")).into())
}

/// Newest first.
pub(crate) async fn read(tx: &mut TenantTransaction, query: &AuditQuery) -> Result<Vec<AuditEntry>> {
    let mut sql = QueryBuilder::<Postgres>::new(
        "SELECT id, at, agent_id, action, subject, subject_name, reason, tool_id FROM audit
         WHERE owner_id = current_tenant()",
    );
    if let Some(action) = &query.action {
        // The group: what follows the name and a dot, since `/` is the character after the dot.
        sql.push(" AND (action COLLATE \"C\" = ").push_bind(action);
        sql.push(" OR action COLLATE \"C\" >= ").push_bind(format!("{action}."));
        sql.push(" AND action COLLATE \"C\" < ").push_bind(format!("{action}/")).push(")");
    }
    for (column, id) in [("agent_id", query.agent_id), ("subject", query.subject), ("tool_id", query.tool_id)] {
        if let Some(id) = id {
            sql.push(format!(" AND {column} = ")).push_bind(id);
        }
    }
    if let Some(since) = query.since {
        sql.push(" AND at >= ").push_bind(since);
    }
    if let Some(until) = query.until {
        sql.push(" AND at < ").push_bind(until);
    }
    if let Some(before) = query.before {
        sql.push(" AND id < ").push_bind(before);
    }
    sql.push(" ORDER BY id DESC LIMIT ").push_bind(i64::from(query.limit));
    let rows: Vec<EntryRow> = sql.build_query_as().persistent(false).fetch_all(tx.connection()).await?;
    Ok(rows.into_iter().map(AuditEntry::from).collect())
}
