//! Each agent's stored selectors: in the database, and cached in memory ([`open`]) for agents with
//! open streams.

mod matching;
mod open;

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{MAX_SELECTORS, Selector, SelectorSubscription, StoreError, Violations};
use sqlx::types::Json;
use uuid::Uuid;

pub(crate) use self::matching::SelectorMatch;
pub(crate) use self::open::{AgentSelectors, OpenSelectors, renew};
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

from_row! {
    struct SelectorRow {
        id: Uuid,
        owner_id: Uuid,
        agent_id: Uuid,
        selector: Json<Selector>,
        created_at: DateTime<Utc>,
    }
}

impl From<SelectorRow> for SelectorSubscription {
    fn from(row: SelectorRow) -> Self {
        Self {
            id: row.id,
            owner_id: row.owner_id,
            agent_id: row.agent_id,
            selector: row.selector.0,
            created_at: row.created_at,
        }
    }
}

/// All selectors of an agent, and their version.
pub(crate) struct VersionedSelectors {
    pub(crate) version: i64,
    pub(crate) selectors: Vec<SelectorSubscription>,
}

/// Oldest first.
pub(crate) async fn list(tx: &mut TenantTransaction, agent: Uuid) -> Result<Vec<SelectorSubscription>> {
    let rows: Vec<SelectorRow> = sqlx::query_as(
        "SELECT id, owner_id, agent_id, selector, created_at FROM selectors
         WHERE owner_id = current_tenant() AND agent_id = $1 ORDER BY created_at, id",
    )
    .bind(agent)
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(SelectorSubscription::from).collect())
}

/// Reads the version first: after a concurrent change the list can be newer than its version, never
/// older.
async fn read(tx: &mut TenantTransaction, agent: Uuid) -> Result<VersionedSelectors> {
    let version: Option<i64> =
        sqlx::query_scalar("SELECT version FROM agent_selectors WHERE owner_id = current_tenant() AND agent_id = $1")
            .bind(agent)
            .fetch_optional(tx.connection())
            .await?;
    Ok(VersionedSelectors { version: version.unwrap_or_default(), selectors: list(tx, agent).await? })
}

/// Serializes an agent's changes until the transaction ends.
async fn begin_change(tx: &mut TenantTransaction, agent: Uuid) -> Result<()> {
    sqlx::query(
        "INSERT INTO agent_selectors AS s (owner_id, agent_id, version, changed_at)
         VALUES (current_tenant(), $1, 1, clock_timestamp())
         ON CONFLICT (owner_id, agent_id) DO UPDATE SET version = s.version + 1, changed_at = clock_timestamp()",
    )
    .bind(agent)
    .execute(tx.connection())
    .await?;
    Ok(())
}

pub(crate) async fn create(
    mut tx: TenantTransaction,
    agent: Uuid,
    selector: &Selector,
) -> Result<(SelectorSubscription, VersionedSelectors)> {
    begin_change(&mut tx, agent).await?;
    if list(&mut tx, agent).await?.len() >= MAX_SELECTORS {
        let message = format!("the agent has {MAX_SELECTORS} selectors, the maximum; delete one, or change one");
        return Err(Violations::one("", message).into());
    }
    let row: SelectorRow = sqlx::query_as(
        "INSERT INTO selectors (id, owner_id, agent_id, selector, created_at)
         VALUES ($1, current_tenant(), $2, $3, clock_timestamp())
         RETURNING id, owner_id, agent_id, selector, created_at",
    )
    .bind(Uuid::now_v7())
    .bind(agent)
    .bind(Json(selector))
    .fetch_one(tx.connection())
    .await?;
    let kept = read(&mut tx, agent).await?;
    tx.commit().await?;
    Ok((row.into(), kept))
}

pub(crate) async fn update(
    mut tx: TenantTransaction,
    agent: Uuid,
    id: Uuid,
    selector: &Selector,
) -> Result<(SelectorSubscription, VersionedSelectors)> {
    begin_change(&mut tx, agent).await?;
    let row: Option<SelectorRow> = sqlx::query_as(
        "UPDATE selectors SET selector = $3 WHERE id = $1 AND owner_id = current_tenant() AND agent_id = $2
         RETURNING id, owner_id, agent_id, selector, created_at",
    )
    .bind(id)
    .bind(agent)
    .bind(Json(selector))
    .fetch_optional(tx.connection())
    .await?;
    let row = row.ok_or(StoreError::NotFound { what: "selector", id })?;
    let kept = read(&mut tx, agent).await?;
    tx.commit().await?;
    Ok((row.into(), kept))
}

pub(crate) async fn delete(mut tx: TenantTransaction, agent: Uuid, id: Uuid) -> Result<VersionedSelectors> {
    begin_change(&mut tx, agent).await?;
    let deleted = sqlx::query("DELETE FROM selectors WHERE id = $1 AND owner_id = current_tenant() AND agent_id = $2")
        .bind(id)
        .bind(agent)
        .execute(tx.connection())
        .await?;
    if deleted.rows_affected() == 0 {
        return Err(StoreError::NotFound { what: "selector", id }.into());
    }
    let kept = read(&mut tx, agent).await?;
    tx.commit().await?;
    Ok(kept)
}
