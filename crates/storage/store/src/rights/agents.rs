//! Agents and their keys.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{AgentInfo, AgentRegistration, NewAgent, NewAgentKey, Profile, Role, StoreError, Violations};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::database::failure::{Failure, Result};
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::rights::audit::{self, AuditLine};

from_row! {
    struct AgentRow {
        id: Uuid,
        owner_id: Uuid,
        name: String,
        roles: Vec<String>,
        profile: String,
        key_hash: Vec<u8>,
        created_at: DateTime<Utc>,
    }
}

impl From<AgentRow> for AgentInfo {
    fn from(row: AgentRow) -> Self {
        Self {
            id: row.id,
            owner_id: row.owner_id,
            name: row.name,
            // A role that a newer version wrote is ignored here.
            roles: row.roles.iter().filter_map(|role| role.parse().ok()).collect(),
            // A profile that a newer version wrote must not allow more here.
            profile: row.profile.parse().unwrap_or(Profile::Subagent),
            created_at: row.created_at,
        }
    }
}

pub(crate) fn check(agent: &NewAgent) -> Result<(), Violations> {
    let mut found = Violations::default();
    if agent.name.trim().is_empty() || agent.name.chars().count() > 200 || agent.name.contains('\0') {
        found.add("name", "must have 1 to 200 characters, none of them NUL");
    }
    if agent.roles.is_empty() {
        found.add("roles", "must name at least one of curator, emitter, subscriber, runner");
    }
    found.into_result()
}

/// [`check`] for an agent whose id the caller chose.
pub(crate) fn check_registration(agent: &AgentRegistration) -> Result<(), Violations> {
    let name = agent.name.clone().unwrap_or_else(|| "its id".into());
    check(&NewAgent { name, roles: agent.roles.clone(), profile: Profile::Main })
}

/// Creates the agent with this id and returns its key, or changes the existing agent.
pub(crate) async fn put(
    mut tx: TenantTransaction,
    id: Uuid,
    agent: AgentRegistration,
) -> Result<(AgentInfo, Option<String>)> {
    let AgentRegistration { roles, name, profile } = agent;
    let present: Option<(Option<DateTime<Utc>>, String)> =
        sqlx::query_as("SELECT deleted_at, profile FROM agents WHERE id = $1 FOR UPDATE")
            .bind(id)
            .fetch_optional(tx.connection())
            .await?;
    let Some((deleted_at, own_profile)) = present else {
        let name = name.unwrap_or_else(|| id.to_string());
        let agent = NewAgent { name, roles, profile: profile.unwrap_or_default() };
        let made = create_as(tx, id, agent).await?;
        return Ok((made.agent, Some(made.agent_key)));
    };
    if deleted_at.is_some() {
        // Otherwise the deleted agent's tokens would be valid again.
        return Err(Violations::one("id", "is the id of an agent that was deleted; choose another").into());
    }
    if profile.is_some_and(|profile| profile.as_str() != own_profile) {
        let message = format!("is {own_profile} and cannot be changed; leave it out, or create another agent");
        return Err(Violations::one("profile", message).into());
    }
    let row: AgentRow = sqlx::query_as(
        "UPDATE agents SET roles = $2, name = coalesce($3, name) WHERE id = $1
         RETURNING id, owner_id, name, roles, profile, key_hash, created_at",
    )
    .bind(id)
    .bind(texts(roles))
    .bind(name)
    .fetch_one(tx.connection())
    .await
    .map_err(|error| refused(error, tx.owner_id))?;
    audit::write(&mut tx, AuditLine::by_operator("agent.changed").on(row.id, &row.name)).await?;
    tx.commit().await?;
    Ok((row.into(), None))
}

/// Sorted, without duplicates.
fn texts(mut roles: Vec<Role>) -> Vec<&'static str> {
    roles.sort_unstable();
    roles.dedup();
    roles.into_iter().map(Role::as_str).collect()
}

fn refused(error: sqlx::Error, owner_id: Uuid) -> Failure {
    let failure = Failure::from(error);
    if failure.violates("agents_name") {
        Violations::one("name", "is the name of another agent of this tenant").into()
    } else if failure.violates("agents_pkey") {
        Violations::one("id", "is the id of another tenant's agent; choose another").into()
    } else if failure.violates("agents_owner_id_fkey") {
        StoreError::NotFound { what: "tenant", id: owner_id }.into()
    } else {
        failure
    }
}

pub(crate) async fn create(tx: TenantTransaction, agent: NewAgent) -> Result<NewAgentKey> {
    create_as(tx, Uuid::now_v7(), agent).await
}

async fn create_as(mut tx: TenantTransaction, id: Uuid, agent: NewAgent) -> Result<NewAgentKey> {
    let mut secret = [0; 32];
    rand::fill(&mut secret).map_err(|_| StoreError::Internal("the system returned no random bytes".into()))?;
    let agent_key = format!("rcrt_{}", URL_SAFE_NO_PAD.encode(secret));
    let owner_id = tx.owner_id;
    let row: AgentRow = sqlx::query_as(
        "INSERT INTO agents (id, owner_id, name, roles, key_hash, profile) VALUES ($1, $2, $3, $4, $5, $6)
         RETURNING id, owner_id, name, roles, profile, key_hash, created_at",
    )
    .bind(id)
    .bind(owner_id)
    .bind(&agent.name)
    .bind(texts(agent.roles))
    .bind(&hash(&agent_key)[..])
    .bind(agent.profile.as_str())
    .fetch_one(tx.connection())
    .await
    .map_err(|error| refused(error, owner_id))?;
    audit::write(&mut tx, AuditLine::by_operator("agent.created").on(row.id, &row.name)).await?;
    tx.commit().await?;
    Ok(NewAgentKey { agent: row.into(), agent_key })
}

pub(crate) async fn list(tx: &mut TenantTransaction) -> Result<Vec<AgentInfo>> {
    let rows: Vec<AgentRow> = sqlx::query_as(
        "SELECT id, owner_id, name, roles, profile, key_hash, created_at FROM agents WHERE deleted_at IS NULL ORDER BY name",
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(AgentInfo::from).collect())
}

pub(crate) async fn delete(mut tx: TenantTransaction, id: Uuid) -> Result<()> {
    let name: Option<String> =
        sqlx::query_scalar("UPDATE agents SET deleted_at = now() WHERE id = $1 AND deleted_at IS NULL RETURNING name")
            .bind(id)
            .fetch_optional(tx.connection())
            .await?;
    let name = name.ok_or(StoreError::NotFound { what: "agent", id })?;
    audit::write(&mut tx, AuditLine::by_operator("agent.deleted").on(id, &name)).await?;
    tx.commit().await
}

async fn row(tx: &mut TenantTransaction, id: Uuid) -> Result<Option<AgentRow>> {
    Ok(sqlx::query_as(
        "SELECT id, owner_id, name, roles, profile, key_hash, created_at FROM agents WHERE id = $1 AND deleted_at IS NULL",
    )
    .bind(id)
    .fetch_optional(tx.connection())
    .await?)
}

pub(crate) async fn find(tx: &mut TenantTransaction, id: Uuid) -> Result<Option<AgentInfo>> {
    Ok(row(tx, id).await?.map(AgentInfo::from))
}

pub(crate) async fn find_by_key(tx: &mut TenantTransaction, id: Uuid, key: &str) -> Result<Option<AgentInfo>> {
    let given = hash(key);
    let row = row(tx, id).await?;
    // Compared even if the agent does not exist, so that the response time reveals nothing.
    let stored = row.as_ref().map_or_else(|| vec![0; given.len()], |row| row.key_hash.clone());
    let is_right = verify_slices_are_equal(&given, &stored).is_ok();
    Ok(row.filter(|_| is_right).map(AgentInfo::from))
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}
