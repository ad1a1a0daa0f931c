//! ACL grants: records opened to agents and tenants. Row-level security policies in the database
//! apply them.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{AclChange, AclEntry, Action, RequestKind, StoreError, Violations, schema_names};
use uuid::Uuid;

use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::rights::actor::Actor;
use crate::rights::audit::{self, AuditLine};

from_row! {
    struct EntryRow {
        id: Uuid,
        breadcrumb_id: Uuid,
        grantee_agent_id: Option<Uuid>,
        grantee_owner_id: Uuid,
        actions: Vec<String>,
        created_at: DateTime<Utc>,
    }
}

impl From<EntryRow> for AclEntry {
    fn from(row: EntryRow) -> Self {
        Self {
            id: row.id,
            breadcrumb_id: row.breadcrumb_id,
            grantee_owner_id: row.grantee_agent_id.is_none().then_some(row.grantee_owner_id),
            grantee_agent_id: row.grantee_agent_id,
            // An action that a newer version wrote grants nothing here.
            actions: row.actions.iter().filter_map(|action| action.parse().ok()).collect(),
            created_at: row.created_at,
        }
    }
}

from_row! {
    /// The record that a grant opens.
    struct SharedRecord {
        title: String,
        schema_name: Option<String>,
        created_by: Option<Uuid>,
    }
}

/// Newest first. Grants of deleted records are left out.
pub(crate) async fn list(tx: &mut TenantTransaction, actor: Actor, record: Option<Uuid>) -> Result<Vec<AclEntry>> {
    let rows: Vec<EntryRow> = sqlx::query_as(
        "SELECT g.id, g.breadcrumb_id, g.grantee_agent_id, g.grantee_owner_id, g.actions, g.created_at
         FROM acl_grants g JOIN breadcrumbs b ON b.owner_id = g.owner_id AND b.id = g.breadcrumb_id
         WHERE ($1 IS NULL OR g.breadcrumb_id = $1) AND ($2 OR b.created_by = $3)
             AND (b.ttl IS NULL OR b.ttl > clock_timestamp())
         ORDER BY g.created_at DESC, g.id",
    )
    .bind(record)
    .bind(actor.is_curator)
    .bind(actor.on_behalf_of)
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(AclEntry::from).collect())
}

/// The caller has validated the change.
pub(crate) async fn grant(mut tx: TenantTransaction, actor: Actor, change: &AclChange) -> Result<Uuid> {
    let record = open_to_change(&mut tx, actor, change.breadcrumb_id).await?;
    refuse_response(actor, &record)?;
    let (grantee_owner, grantee_agent) = grantee(&mut tx, change).await?;
    let owner_id = tx.owner_id;
    let id: Uuid = sqlx::query_scalar(
        "INSERT INTO acl_grants AS g (id, owner_id, breadcrumb_id, grantee_owner_id, grantee_agent_id, actions, created_by)
         VALUES ($1, $2, $3, $4, $5, $6, $7)
         ON CONFLICT (owner_id, breadcrumb_id, grantee_owner_id, grantee_agent_id) DO UPDATE
         SET actions = ARRAY(SELECT DISTINCT one FROM unnest(g.actions || EXCLUDED.actions) one ORDER BY one)
         RETURNING id",
    )
    .bind(Uuid::now_v7())
    .bind(owner_id)
    .bind(change.breadcrumb_id)
    .bind(grantee_owner)
    .bind(grantee_agent)
    .bind(names(change))
    .bind(actor.on_behalf_of)
    .fetch_one(tx.connection())
    .await?;
    let details = reason(change);
    let line = AuditLine::by(actor.agent, "acl.granted").on(change.breadcrumb_id, &record.title).because(&details);
    audit::write(&mut tx, line).await?;
    tx.commit().await?;
    Ok(id)
}

/// The caller has validated the change.
pub(crate) async fn revoke(mut tx: TenantTransaction, actor: Actor, change: &AclChange) -> Result<u64> {
    let record = open_to_change(&mut tx, actor, change.breadcrumb_id).await?;
    // Grants to a deleted agent can be revoked too.
    let changed = sqlx::query(
        "WITH named AS (
            SELECT id, ARRAY(SELECT one FROM unnest(actions) one WHERE one <> ALL ($4)) AS rest FROM acl_grants
            WHERE breadcrumb_id = $1 AND actions && $4
                AND (grantee_agent_id = $2 OR ($2 IS NULL AND grantee_agent_id IS NULL AND grantee_owner_id = $3))
            FOR UPDATE),
         ended AS (DELETE FROM acl_grants g USING named n WHERE g.id = n.id AND n.rest = '{}' RETURNING g.id),
         cut AS (UPDATE acl_grants g SET actions = n.rest FROM named n WHERE g.id = n.id AND n.rest <> '{}' RETURNING g.id)
         SELECT id FROM ended UNION ALL SELECT id FROM cut",
    )
    .bind(change.breadcrumb_id)
    .bind(change.grantee_agent_id)
    .bind(change.grantee_owner_id)
    .bind(names(change))
    .fetch_all(tx.connection())
    .await?
    .len() as u64;
    if changed > 0 {
        let details = reason(change);
        let line = AuditLine::by(actor.agent, "acl.revoked").on(change.breadcrumb_id, &record.title).because(&details);
        audit::write(&mut tx, line).await?;
    }
    tx.commit().await?;
    Ok(changed)
}

/// Returns the record if the actor can change access to it.
async fn open_to_change(tx: &mut TenantTransaction, actor: Actor, id: Uuid) -> Result<SharedRecord> {
    // Locked, so that the record cannot be deleted before the grant is written.
    tx.lock(id).await?;
    let record: Option<SharedRecord> = sqlx::query_as(
        "SELECT title, schema_name, created_by FROM breadcrumbs
         WHERE id = $1 AND (ttl IS NULL OR ttl > clock_timestamp())",
    )
    .bind(id)
    .fetch_optional(tx.connection())
    .await?;
    let record = record.ok_or(StoreError::NotFound { what: "breadcrumb", id })?;
    if actor.is_curator || record.created_by == Some(actor.on_behalf_of) {
        return Ok(record);
    }
    let why = "only a curator or the record's creator can change access to it";
    Err(StoreError::Forbidden(why.into()).into())
}

/// A grantee accepts a response as the response to any request id that it names. So the creator
/// must not be able to share one: the response to a private request belongs to its requester, and
/// may carry another agent's request id.
fn refuse_response(actor: Actor, record: &SharedRecord) -> Result<(), StoreError> {
    if actor.is_curator || !RequestKind::is_response(record.schema_name.as_deref()) {
        return Ok(());
    }
    let why = format!("only a curator can grant access to a {}", schema_names::TOOL_RESPONSE);
    Err(StoreError::Forbidden(why))
}

/// The tenant that gets the grant, and the agent if the grant is for one agent only.
async fn grantee(tx: &mut TenantTransaction, change: &AclChange) -> Result<(Uuid, Option<Uuid>)> {
    if let Some(agent) = change.grantee_agent_id {
        let tenant: Option<Uuid> =
            sqlx::query_scalar("SELECT tenant_of_agent($1)").bind(agent).fetch_one(tx.connection()).await?;
        let tenant = tenant.ok_or_else(|| {
            Violations::one(
                "grantee_agent_id",
                format!("{agent} does not exist; create this agent first, or name another"),
            )
        })?;
        return Ok((tenant, Some(agent)));
    }
    let tenant = change.grantee_owner_id.unwrap_or_default();
    let is_there: bool = sqlx::query_scalar("SELECT tenant_exists($1)").bind(tenant).fetch_one(tx.connection()).await?;
    if is_there {
        return Ok((tenant, None));
    }
    Err(Violations::one("grantee_owner_id", format!("{tenant} does not exist; name an existing tenant")).into())
}

fn names(change: &AclChange) -> Vec<&'static str> {
    change.all_actions().into_iter().map(Action::as_str).collect()
}

fn reason(change: &AclChange) -> String {
    let whom = match (change.grantee_agent_id, change.grantee_owner_id) {
        (Some(agent), _) => format!("agent {agent}"),
        (None, Some(tenant)) => format!("tenant {tenant}"),
        (None, None) => String::new(),
    };
    format!("{}: {whom}", names(change).join(", "))
}
