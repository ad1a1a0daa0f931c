//! Sessions of MCP clients, so that any server continues them.

use chrono::TimeDelta;
use rcrt_breadcrumb::Violations;
use serde_json::Value;
use sqlx::types::Json;
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// How long a session is kept after it began, or was last continued or changed.
const KEPT_FOR: TimeDelta = TimeDelta::days(1);
/// The most sessions of one agent. The oldest are dropped.
const MOST: i64 = 256;
const MAX_BYTES: usize = 256 * 1024;

pub(crate) async fn read(mut tx: TenantTransaction, agent_id: Uuid, id: &str) -> Result<Option<Value>> {
    let state: Option<Json<Value>> = sqlx::query_scalar(
        "UPDATE mcp_sessions SET until = now() + $3
         WHERE owner_id = current_tenant() AND agent_id = $1 AND id = $2 AND until > now() RETURNING state",
    )
    .bind(agent_id)
    .bind(id)
    .bind(KEPT_FOR)
    .fetch_optional(tx.connection())
    .await?;
    tx.commit().await?;
    Ok(state.map(|state| state.0))
}

pub(crate) async fn keep(mut tx: TenantTransaction, agent_id: Uuid, id: &str, state: &Value) -> Result<()> {
    let bytes = state.to_string().len();
    if bytes > MAX_BYTES {
        let message = format!("has {bytes} bytes; a session is kept with at most {MAX_BYTES}");
        return Err(Violations::one("state", message).into());
    }
    sqlx::query(
        "INSERT INTO mcp_sessions (owner_id, agent_id, id, state, until)
         VALUES (current_tenant(), $1, $2, $3, now() + $4)
         ON CONFLICT (owner_id, agent_id, id) DO UPDATE SET state = EXCLUDED.state, until = EXCLUDED.until",
    )
    .bind(agent_id)
    .bind(id)
    .bind(Json(state))
    .bind(KEPT_FOR)
    .execute(tx.connection())
    .await?;
    sqlx::query(
        "DELETE FROM mcp_sessions WHERE owner_id = current_tenant() AND agent_id = $1 AND id IN (
            SELECT s.id FROM mcp_sessions s WHERE s.owner_id = current_tenant() AND s.agent_id = $1
            ORDER BY s.until DESC OFFSET $2)",
    )
    .bind(agent_id)
    .bind(MOST)
    .execute(tx.connection())
    .await?;
    tx.commit().await
}

pub(crate) async fn end(mut tx: TenantTransaction, agent_id: Uuid, id: &str) -> Result<()> {
    sqlx::query("DELETE FROM mcp_sessions WHERE owner_id = current_tenant() AND agent_id = $1 AND id = $2")
        .bind(agent_id)
        .bind(id)
        .execute(tx.connection())
        .await?;
    tx.commit().await
}
