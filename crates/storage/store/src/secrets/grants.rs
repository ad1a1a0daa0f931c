//! Which tools' records can use which secret.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{GrantedTool, SecretInfo, StoreError, Violations, schema_names};
use uuid::Uuid;

use super::{get, unknown};
use crate::database::failure::{Failure, Result};
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::rights::actor::Actor;
use crate::rights::audit::{self, AuditLine};

from_row! {
    struct GrantRow {
        secret_id: Uuid,
        tool_id: Uuid,
        tool: String,
        tool_version: i64,
        granted_at: DateTime<Utc>,
        granted_by: Uuid,
    }
}

/// The grants of one secret or of all, oldest first, without grants of expired records.
pub(super) async fn of(tx: &mut TenantTransaction, secret: Option<Uuid>) -> Result<HashMap<Uuid, Vec<GrantedTool>>> {
    let rows: Vec<GrantRow> = sqlx::query_as(
        "SELECT g.secret_id, g.tool_id, coalesce(b.context->>'name', b.title) AS tool, g.tool_version,
            g.granted_at, g.granted_by
         FROM secret_grants g JOIN breadcrumbs b ON b.owner_id = g.owner_id AND b.id = g.tool_id
         WHERE ($1 IS NULL OR g.secret_id = $1) AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
         ORDER BY g.granted_at, g.tool_id",
    )
    .bind(secret)
    .fetch_all(tx.connection())
    .await?;
    let mut grants: HashMap<Uuid, Vec<GrantedTool>> = HashMap::new();
    for GrantRow { secret_id, tool_id, tool, tool_version, granted_at, granted_by } in rows {
        let granted = GrantedTool { tool_id, tool, tool_version, granted_at, granted_by };
        grants.entry(secret_id).or_default().push(granted);
    }
    Ok(grants)
}

/// An existing grant keeps its time and its author.
pub(crate) async fn grant(mut tx: TenantTransaction, agent: Uuid, id: Uuid, tool: Uuid) -> Result<SecretInfo> {
    // Locked, so that the record cannot change or be deleted between the check and the grant.
    tx.lock(tool).await?;
    let name = name_of(&mut tx, id).await?;
    let record: Option<(Option<String>, i64)> = sqlx::query_as(
        "SELECT schema_name, version FROM breadcrumbs WHERE id = $1 AND (ttl IS NULL OR ttl > clock_timestamp())",
    )
    .bind(tool)
    .fetch_optional(tx.connection())
    .await?;
    let (schema, version) = record.ok_or(StoreError::NotFound { what: "tool", id: tool })?;
    if !schema_names::is_tool(schema.as_deref()) && schema.as_deref() != Some(schema_names::MCP_SERVER) {
        let message = format!(
            "names a {}; expected a tool ({} or {}) or an MCP server ({})",
            schema.as_deref().unwrap_or("note without a schema"),
            schema_names::TOOL_CODE,
            schema_names::TOOL_V1,
            schema_names::MCP_SERVER
        );
        return Err(Violations::one("tool_id", message).into());
    }
    let owner_id = tx.owner_id;
    let done = sqlx::query(
        "INSERT INTO secret_grants (owner_id, secret_id, tool_id, tool_version, granted_at, granted_by)
         VALUES ($1, $2, $3, $4, clock_timestamp(), $5)
         ON CONFLICT (owner_id, secret_id, tool_id) DO NOTHING",
    )
    .bind(owner_id)
    .bind(id)
    .bind(tool)
    .bind(version)
    .bind(agent)
    .execute(tx.connection())
    .await
    .map_err(|error| {
        let failure = Failure::from(error);
        // The secret was deleted after it was looked up.
        if failure.violates("secret_grants_owner_id_secret_id_fkey") { unknown(id).into() } else { failure }
    })?;
    if done.rows_affected() > 0 {
        audit::write(&mut tx, AuditLine::by(agent, "secret.granted").on(id, &name).for_tool(tool)).await?;
    }
    let secret = get(&mut tx, id).await?;
    tx.commit().await?;
    Ok(secret)
}

pub(crate) async fn revoke(mut tx: TenantTransaction, agent: Uuid, id: Uuid, tool: Uuid) -> Result<SecretInfo> {
    let name = name_of(&mut tx, id).await?;
    let done = sqlx::query("DELETE FROM secret_grants WHERE secret_id = $1 AND tool_id = $2")
        .bind(id)
        .bind(tool)
        .execute(tx.connection())
        .await?;
    if done.rows_affected() == 0 {
        return Err(StoreError::NotFound { what: "grant", id: tool }.into());
    }
    audit::write(&mut tx, AuditLine::by(agent, "secret.revoked").on(id, &name).for_tool(tool)).await?;
    let secret = get(&mut tx, id).await?;
    tx.commit().await?;
    Ok(secret)
}

/// Ends the grants of records that are being deleted. `agent`: who deletes them, `None` if they
/// expired.
pub(crate) async fn end_with_records(tx: &mut TenantTransaction, agent: Option<Uuid>, records: &[Uuid]) -> Result<()> {
    sqlx::query(
        "WITH ended AS (DELETE FROM secret_grants WHERE tool_id = ANY($1) RETURNING owner_id, secret_id, tool_id)
         INSERT INTO audit (owner_id, agent_id, action, subject, subject_name, reason, tool_id)
         SELECT s.owner_id, $2, 'secret.revoked', s.id, s.name, 'the tool''s record was deleted', ended.tool_id
         FROM ended JOIN secrets s ON s.owner_id = ended.owner_id AND s.id = ended.secret_id
         ORDER BY ended.tool_id, s.name",
    )
    .bind(records)
    .bind(agent)
    .execute(tx.connection())
    .await?;
    Ok(())
}

/// The author of a tool's code controls what happens to the secrets that were granted to it. So
/// only curators can change or delete a record with grants. An expired record is deleted
/// nevertheless. The record must be locked, so that no grant is added meanwhile.
pub(crate) async fn refuse_change_by_others(tx: &mut TenantTransaction, actor: Actor, record: Uuid) -> Result<()> {
    if actor.is_curator {
        return Ok(());
    }
    let names: Vec<String> = sqlx::query_scalar(
        "SELECT s.name FROM secret_grants g JOIN secrets s ON s.owner_id = g.owner_id AND s.id = g.secret_id
         WHERE g.tool_id = $1
         ORDER BY s.name COLLATE \"C\"",
    )
    .bind(record)
    .fetch_all(tx.connection())
    .await?;
    if names.is_empty() {
        return Ok(());
    }
    // A curator that calls such a tool lacks that role in the call.
    let by_call = if actor.is_acting_for_another() {
        "; a call, such as one of update_tool, cannot: use PATCH or DELETE /breadcrumbs/{id} with a curator's token"
    } else {
        ""
    };
    let why = format!(
        "the tool can use secrets ({}): only a curator can change or delete it, or revoke them{by_call}",
        names.join(", ")
    );
    Err(StoreError::Forbidden(why).into())
}

async fn name_of(tx: &mut TenantTransaction, id: Uuid) -> Result<String> {
    let name: Option<String> =
        sqlx::query_scalar("SELECT name FROM secrets WHERE id = $1").bind(id).fetch_optional(tx.connection()).await?;
    Ok(name.ok_or_else(|| unknown(id))?)
}
