//! Agents and their keys.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use breadcrumb::{AgentInfo, AgentRegistration, NewAgent, NewAgentKey, Profile, Role, StoreError, Violations};
use chrono::{DateTime, Utc};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::audit::{self, AuditLine};
use crate::failure::{Failure, Result};
use crate::from_row::from_row;
use crate::transaction::TenantTransaction;

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
            // A role that a newer version wrote has no effect here.
            roles: row.roles.iter().filter_map(|role| role.parse().ok()).collect(),
            // One that a newer version wrote must not open anything here.
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

/// The same for an agent of a chosen id.
pub(crate) fn check_registration(agent: &AgentRegistration) -> Result<(), Violations> {
    let name = agent.name.clone().unwrap_or_else(|| "its id".into());
    check(&NewAgent { name, roles: agent.roles.clone(), profile: Profile::Main })
}

/// Makes the agent of this id, with its key, or changes it.
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
        // Else its old tokens would be good again.
        return Err(Violations::one("id", "is the id of an agent that was deleted; choose another").into());
    }
    if profile.is_some_and(|profile| profile.as_str() != own_profile) {
        let message = format!("is {own_profile} for good; leave it out, or make another agent");
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

/// Each once, in their order.
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
        Violations::one("id", "is the id of an agent that is not of this tenant; choose another").into()
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
    rand::fill(&mut secret).map_err(|_| StoreError::Internal("no random bytes".into()))?;
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
    // Compared also when there is no such agent, so that the time reveals nothing.
    let kept = row.as_ref().map_or_else(|| vec![0; given.len()], |row| row.key_hash.clone());
    let is_right = verify_slices_are_equal(&given, &kept).is_ok();
    Ok(row.filter(|_| is_right).map(AgentInfo::from))
}

fn hash(key: &str) -> [u8; 32] {
    Sha256::digest(key).into()
}
