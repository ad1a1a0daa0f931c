//! Quotas of tools: how many a tenant has, how large they are, and how many an agent creates in an
//! hour. Every write of a tool's record comes here, whoever sends it.
//!
//! Tools are few and rarely written, so each write counts them in the database. New tools of one
//! process are counted one after the other. Concurrent changes, and other processes, can exceed a
//! quota by what they write at once; the next write is refused.

use std::sync::Arc;

use metrics::counter;
use rcrt_breadcrumb::StoreError;
use uuid::Uuid;

use super::quotas::{QuotaReservation, Quotas};
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// A write of a tool's record.
pub(crate) struct ToolWrite {
    /// Who creates a tool with it; `None` for a change of a tool, and for an agent whose creations
    /// are not limited.
    pub(crate) limited_creator: Option<Uuid>,
    pub(crate) is_new: bool,
    /// How much larger the tool becomes.
    pub(crate) more_bytes: i64,
}

impl Quotas {
    /// Refuses a new tool that exceeds a quota. The next new tool is counted when the reservation
    /// dropped or kept. The quotas are loaded.
    pub(crate) async fn reserve_tool(
        &self,
        database: &Arc<Database>,
        owner_id: Uuid,
        write: &ToolWrite,
        reserved: QuotaReservation,
    ) -> Result<QuotaReservation> {
        let tenant = self.tenant(owner_id);
        let in_force = self.in_force(&tenant);
        if in_force.max_tools.or(in_force.max_tool_bytes).or(in_force.max_tool_creations).is_none() {
            return Ok(reserved);
        }
        let turn = tenant.creating_tool.clone().lock_owned().await;
        let mut tx = TenantTransaction::begin(database, owner_id).await?;
        self.check_tool(&mut tx, write).await?;
        Ok(reserved.holding(turn))
    }

    /// Refuses a write of a tool that exceeds a quota of the transaction's tenant.
    pub(crate) async fn check_tool(&self, tx: &mut TenantTransaction, write: &ToolWrite) -> Result<()> {
        let in_force = self.in_force(&self.tenant(tx.owner_id));
        if in_force.max_tools.is_some() || in_force.max_tool_bytes.is_some() {
            let (tools, bytes) = count(tx).await?;
            refuse("tools", in_force.max_tools, tools, i64::from(write.is_new))?;
            refuse("tool_bytes", in_force.max_tool_bytes, bytes, write.more_bytes)?;
        }
        if let (Some(agent), Some(_)) = (write.limited_creator, in_force.max_tool_creations) {
            refuse("tool_creations", in_force.max_tool_creations, created_within_an_hour(tx, agent).await?, 1)?;
        }
        Ok(())
    }
}

fn refuse(quota: &str, limit: Option<u64>, used: i64, more: i64) -> Result<()> {
    let used = used.max(0).unsigned_abs();
    match limit {
        Some(limit) if more > 0 && used.saturating_add(more.unsigned_abs()) > limit => {
            counter!("rcrt_quota_refusals_total", "quota" => quota.to_owned()).increment(1);
            Err(StoreError::QuotaExceeded { quota: quota.to_owned(), limit, used }.into())
        }
        _ => Ok(()),
    }
}

/// How many tools the tenant has, and the bytes of their contexts.
async fn count(tx: &mut TenantTransaction) -> Result<(i64, i64)> {
    Ok(sqlx::query_as("SELECT tools, bytes FROM count_tools()").fetch_one(tx.connection()).await?)
}

/// From the audit log, which still has those that were deleted.
async fn created_within_an_hour(tx: &mut TenantTransaction, agent: Uuid) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM audit WHERE owner_id = current_tenant() AND action = 'tool.created' AND agent_id = $1
            AND at > clock_timestamp() - interval '1 hour'",
    )
    .bind(agent)
    .fetch_one(tx.connection())
    .await?)
}
