//! Creates, lists, pauses and deletes webhooks.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{MAX_WEBHOOKS, NewWebhook, Selector, StoreError, Violations, WebhookInfo, WebhookState};
use sqlx::types::Json;
use uuid::Uuid;

use super::MOST_WAITING;
use super::follower::FOLLOWER;
use crate::database::failure::{Failure, Result};
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::events::following;
use crate::rights::audit::{self, AuditLine};

from_row! {
    struct WebhookRow {
        id: Uuid,
        agent_id: Uuid,
        url: String,
        description: Option<String>,
        selector: Option<Json<Selector>>,
        paused_because: Option<String>,
        failures: i32,
        held_until: Option<DateTime<Utc>>,
        last_error: Option<String>,
        delivered_at: Option<DateTime<Utc>>,
        waiting: i64,
        created_at: DateTime<Utc>,
    }
}

impl From<WebhookRow> for WebhookInfo {
    fn from(row: WebhookRow) -> Self {
        Self {
            id: row.id,
            agent_id: row.agent_id,
            url: row.url,
            selector: row.selector.map(|json| json.0),
            description: row.description,
            state: if row.paused_because.is_some() { WebhookState::Paused } else { WebhookState::Active },
            paused_because: row.paused_because,
            failures: row.failures.unsigned_abs(),
            held_until: row.held_until,
            last_error: row.last_error,
            delivered_at: row.delivered_at,
            waiting: row.waiting as u32,
            created_at: row.created_at,
        }
    }
}

fn unknown(id: Uuid) -> Failure {
    StoreError::NotFound { what: "webhook", id }.into()
}

/// The webhooks of one agent: all, or the one with this id.
pub(super) async fn list(tx: &mut TenantTransaction, agent: Uuid, id: Option<Uuid>) -> Result<Vec<WebhookInfo>> {
    let owner_id = tx.owner_id;
    let rows: Vec<WebhookRow> = sqlx::query_as(
        "SELECT w.id, w.agent_id, w.url, w.description, w.selector, w.paused_because, w.failures, w.held_until,
            w.last_error, w.delivered_at, w.created_at,
            (SELECT count(*) FROM (SELECT FROM deliveries d
                WHERE d.owner_id = w.owner_id AND d.webhook_id = w.id AND d.state = 'waiting' LIMIT $4) counted) AS waiting
         FROM webhooks w WHERE w.owner_id = $1 AND w.agent_id = $2 AND w.request IS NULL AND ($3 IS NULL OR w.id = $3)
         ORDER BY w.created_at, w.id",
    )
    .bind(owner_id)
    .bind(agent)
    .bind(id)
    .bind(MOST_WAITING)
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(WebhookInfo::from).collect())
}

async fn get(tx: &mut TenantTransaction, agent: Uuid, id: Uuid) -> Result<WebhookInfo> {
    list(tx, agent, Some(id)).await?.pop().ok_or_else(|| unknown(id))
}

pub(super) async fn create(
    mut tx: TenantTransaction,
    agent: Uuid,
    by: Uuid,
    webhook: &NewWebhook,
) -> Result<WebhookInfo> {
    // Serializes concurrent creates, so that the count is exact.
    tx.lock(agent).await?;
    let owner_id = tx.owner_id;
    let count: i64 =
        sqlx::query_scalar("SELECT count(*) FROM webhooks WHERE owner_id = $1 AND agent_id = $2 AND request IS NULL")
            .bind(owner_id)
            .bind(agent)
            .fetch_one(tx.connection())
            .await?;
    if count >= MAX_WEBHOOKS as i64 {
        let message = format!("the agent has {count} webhooks, the maximum; delete one first");
        return Err(Violations::one("", message).into());
    }
    let after = following::begin_at_present(&mut tx, FOLLOWER).await?;
    let id = Uuid::now_v7();
    sqlx::query(
        "INSERT INTO webhooks (id, owner_id, agent_id, url, description, selector, after)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
    )
    .bind(id)
    .bind(owner_id)
    .bind(agent)
    .bind(&webhook.url)
    .bind(&webhook.description)
    .bind(webhook.selector.as_ref().map(Json))
    .bind(after)
    .execute(tx.connection())
    .await?;
    audit::write(&mut tx, AuditLine::by(by, "webhook.created").on(id, &webhook.url)).await?;
    let made = get(&mut tx, agent, id).await?;
    tx.commit().await?;
    Ok(made)
}

pub(super) async fn delete(mut tx: TenantTransaction, agent: Uuid, by: Uuid, id: Uuid) -> Result<()> {
    let owner_id = tx.owner_id;
    let url: Option<String> = sqlx::query_scalar(
        "DELETE FROM webhooks WHERE owner_id = $1 AND agent_id = $2 AND id = $3 AND request IS NULL RETURNING url",
    )
    .bind(owner_id)
    .bind(agent)
    .bind(id)
    .fetch_optional(tx.connection())
    .await?;
    let url = url.ok_or_else(|| unknown(id))?;
    audit::write(&mut tx, AuditLine::by(by, "webhook.deleted").on(id, &url)).await?;
    tx.commit().await
}

/// Resuming resets the failures.
pub(super) async fn pause(mut tx: TenantTransaction, agent: Uuid, id: Uuid, paused: bool) -> Result<WebhookInfo> {
    let owner_id = tx.owner_id;
    sqlx::query(
        "UPDATE webhooks SET state = CASE WHEN $4 THEN 'paused' ELSE 'active' END,
            paused_because = CASE WHEN $4 THEN coalesce(paused_because, 'paused by request') END,
            failures = CASE WHEN $4 THEN failures ELSE 0 END, held_until = CASE WHEN $4 THEN held_until END
         WHERE owner_id = $1 AND agent_id = $2 AND id = $3 AND request IS NULL",
    )
    .bind(owner_id)
    .bind(agent)
    .bind(id)
    .bind(paused)
    .execute(tx.connection())
    .await?;
    let webhook = get(&mut tx, agent, id).await?;
    tx.commit().await?;
    Ok(webhook)
}
