//! Agents and their keys.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::rand;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    AgentInfo, AgentRegistration, AllowedTools, NewAgent, NewAgentKey, Profile, Role, StoreError, Violations,
};
use serde_json::Value;
use sha2::{Digest, Sha256};
use sqlx::types::Json;
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
        tools: Option<Json<Value>>,
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
            tools: row.tools.map(read_allowed_tools),
            created_at: row.created_at,
        }
    }
}

/// A list that a newer version wrote must not allow more here: it allows nothing.
pub(crate) fn read_allowed_tools(list: Json<Value>) -> AllowedTools {
    serde_json::from_value(list.0).unwrap_or_default()
}

pub(crate) fn check(agent: &NewAgent) -> Result<(), Violations> {
    let mut found = Violations::default();
    if agent.name.trim().is_empty() || agent.name.chars().count() > 200 || agent.name.contains('\0') {
        found.add("name", "must have 1 to 200 characters, none of them NUL");
    }
    if agent.roles.is_empty() {
        found.add("roles", format!("must name at least one of {}", Role::NAMES));
    }
    if let Some(tools) = &agent.tools {
        let wrong = [tools.check("tools"), check_list_fits(&agent.roles)];
        found.0.extend(wrong.into_iter().filter_map(Result::err).flat_map(|found| found.0));
    }
    found.into_result()
}

/// An agent that can write requests and tools of any kind is not bound by a list.
fn check_list_fits(roles: &[Role]) -> Result<(), Violations> {
    if Role::write_only_requests(roles) {
        return Ok(());
    }
    let message = "needs the role caller, and none of curator, emitter and runner, which can call every tool; change the \
                   roles, or remove the list (tools: null, or rcrt agent set --all-tools)";
    Err(Violations::one("tools", message))
}

/// [`check`] for an agent whose id the caller chose.
pub(crate) fn check_registration(agent: &AgentRegistration) -> Result<(), Violations> {
    let name = agent.name.clone().unwrap_or_else(|| "its id".into());
    let tools = agent.tools.clone().applied_to(None);
    check(&NewAgent { name, roles: agent.roles.clone(), profile: Profile::Main, tools })
}

/// Creates the agent with this id and returns its key, or changes the existing agent.
pub(crate) async fn put(
    mut tx: TenantTransaction,
    by: Option<Uuid>,
    id: Uuid,
    agent: AgentRegistration,
) -> Result<(AgentInfo, Option<String>)> {
    let AgentRegistration { roles, name, profile, tools } = agent;
    let present: Option<(Option<DateTime<Utc>>, AgentRow)> = present(&mut tx, id).await?;
    let Some((deleted_at, old)) = present else {
        let name = name.unwrap_or_else(|| id.to_string());
        let agent = NewAgent { name, roles, profile: profile.unwrap_or_default(), tools: tools.applied_to(None) };
        let made = create_as(tx, by, id, agent).await?;
        return Ok((made.agent, Some(made.agent_key)));
    };
    if deleted_at.is_some() {
        // Otherwise the deleted agent's tokens would be valid again.
        return Err(Violations::one("id", "is the id of an agent that was deleted; choose another").into());
    }
    let old = AgentInfo::from(old);
    let tools = tools.applied_to(old.tools.clone());
    if tools.is_some() {
        check_list_fits(&roles)?;
    }
    let row: AgentRow = sqlx::query_as(
        "UPDATE agents SET roles = $2, name = coalesce($3, name), tools = $4, profile = coalesce($5, profile),
            changed_at = clock_timestamp()
         WHERE id = $1
         RETURNING id, owner_id, name, roles, profile, tools, key_hash, created_at",
    )
    .bind(id)
    .bind(texts(roles))
    .bind(name)
    .bind(tools.map(Json))
    .bind(profile.map(Profile::as_str))
    .fetch_one(tx.connection())
    .await
    .map_err(|error| refused(error, tx.owner_id))?;
    let new = AgentInfo::from(row);
    let changes = changes(&old, &new);
    audit::write(&mut tx, AuditLine::by_any(by, "agent.changed").on(id, &new.name).because(&changes)).await?;
    tx.commit().await?;
    Ok((new, None))
}

/// The agent for a change, deleted or not.
async fn present(tx: &mut TenantTransaction, id: Uuid) -> Result<Option<(Option<DateTime<Utc>>, AgentRow)>> {
    from_row! {
        struct PresentRow {
            deleted_at: Option<DateTime<Utc>>,
            ..agent: AgentRow,
        }
    }
    let row: Option<PresentRow> = sqlx::query_as(
        "SELECT deleted_at, id, owner_id, name, roles, profile, tools, key_hash, created_at
         FROM agents WHERE id = $1 FOR UPDATE",
    )
    .bind(id)
    .fetch_optional(tx.connection())
    .await?;
    Ok(row.map(|row| (row.deleted_at, row.agent)))
}

/// What an agent is, for the audit log.
fn described(agent: &AgentInfo) -> [(&'static str, String); 4] {
    let roles: Vec<&str> = agent.roles.iter().map(|role| role.as_str()).collect();
    let tools = agent.tools.as_ref().map_or_else(|| "all".to_owned(), AllowedTools::to_string);
    [
        ("name", agent.name.clone()),
        ("roles", roles.join(", ")),
        ("profile", agent.profile.to_string()),
        ("tools", tools),
    ]
}

/// `roles: emitter → caller`, and so on.
fn changes(old: &AgentInfo, new: &AgentInfo) -> String {
    let both = described(old).into_iter().zip(described(new));
    let changed = both.filter(|(old, new)| old != new).map(|((what, old), (_, new))| format!("{what}: {old} → {new}"));
    let changed: Vec<String> = changed.collect();
    if changed.is_empty() { "nothing".into() } else { changed.join("; ") }
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
        Violations::one("name", "is used by another agent of this tenant; choose another name").into()
    } else if failure.violates("agents_pkey") {
        Violations::one("id", "is the id of another tenant's agent; choose another").into()
    } else if failure.violates("agents_owner_id_fkey") {
        StoreError::NotFound { what: "tenant", id: owner_id }.into()
    } else {
        failure
    }
}

pub(crate) async fn create(tx: TenantTransaction, by: Option<Uuid>, agent: NewAgent) -> Result<NewAgentKey> {
    create_as(tx, by, Uuid::now_v7(), agent).await
}

async fn create_as(mut tx: TenantTransaction, by: Option<Uuid>, id: Uuid, agent: NewAgent) -> Result<NewAgentKey> {
    let agent_key = random_key()?;
    let owner_id = tx.owner_id;
    let row: AgentRow = sqlx::query_as(
        "INSERT INTO agents (id, owner_id, name, roles, key_hash, profile, tools) VALUES ($1, $2, $3, $4, $5, $6, $7)
         RETURNING id, owner_id, name, roles, profile, tools, key_hash, created_at",
    )
    .bind(id)
    .bind(owner_id)
    .bind(&agent.name)
    .bind(texts(agent.roles))
    .bind(&hash(&agent_key)[..])
    .bind(agent.profile.as_str())
    .bind(agent.tools.map(Json))
    .fetch_one(tx.connection())
    .await
    .map_err(|error| refused(error, owner_id))?;
    let agent = AgentInfo::from(row);
    let facts = described(&agent).into_iter().skip(1).map(|(what, value)| format!("{what}: {value}"));
    let facts: Vec<String> = facts.collect();
    let line = AuditLine::by_any(by, "agent.created").on(id, &agent.name);
    audit::write(&mut tx, line.because(&facts.join("; "))).await?;
    tx.commit().await?;
    Ok(NewAgentKey { agent, agent_key })
}

fn random_key() -> Result<String> {
    let mut secret = [0; 32];
    rand::fill(&mut secret).map_err(|_| StoreError::Internal("the system returned no random bytes".into()))?;
    Ok(format!("rcrt_{}", URL_SAFE_NO_PAD.encode(secret)))
}

pub(crate) async fn rotate_key(mut tx: TenantTransaction, by: Option<Uuid>, id: Uuid) -> Result<NewAgentKey> {
    let agent_key = random_key()?;
    let row: Option<AgentRow> = sqlx::query_as(
        "UPDATE agents SET key_hash = $2 WHERE id = $1 AND deleted_at IS NULL
         RETURNING id, owner_id, name, roles, profile, tools, key_hash, created_at",
    )
    .bind(id)
    .bind(&hash(&agent_key)[..])
    .fetch_optional(tx.connection())
    .await?;
    let agent = AgentInfo::from(row.ok_or(StoreError::NotFound { what: "agent", id })?);
    audit::write(&mut tx, AuditLine::by_any(by, "agent.key_rotated").on(id, &agent.name)).await?;
    tx.commit().await?;
    Ok(NewAgentKey { agent, agent_key })
}

pub(crate) async fn list(tx: &mut TenantTransaction) -> Result<Vec<AgentInfo>> {
    let rows: Vec<AgentRow> = sqlx::query_as(
        "SELECT id, owner_id, name, roles, profile, tools, key_hash, created_at FROM agents
         WHERE deleted_at IS NULL ORDER BY name",
    )
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(AgentInfo::from).collect())
}

pub(crate) async fn delete(mut tx: TenantTransaction, by: Option<Uuid>, id: Uuid) -> Result<()> {
    let name: Option<String> = sqlx::query_scalar(
        "UPDATE agents SET deleted_at = now(), changed_at = clock_timestamp() WHERE id = $1 AND deleted_at IS NULL
         RETURNING name",
    )
    .bind(id)
    .fetch_optional(tx.connection())
    .await?;
    let name = name.ok_or(StoreError::NotFound { what: "agent", id })?;
    audit::write(&mut tx, AuditLine::by_any(by, "agent.deleted").on(id, &name)).await?;
    tx.commit().await
}

async fn row(tx: &mut TenantTransaction, id: Uuid) -> Result<Option<AgentRow>> {
    Ok(sqlx::query_as(
        "SELECT id, owner_id, name, roles, profile, tools, key_hash, created_at FROM agents
         WHERE id = $1 AND deleted_at IS NULL",
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
