//! Webhooks of single calls, for A2A. Their header fields can have secrets, so they are encrypted
//! like the signing secrets of agents, under the id of the webhook.

use std::sync::Arc;

use chrono::{TimeDelta, Utc};
use rcrt_breadcrumb::{CallWebhook, MAX_CALL_WEBHOOKS, Selector, StoreError, ToolResponse, Violations};
use sqlx::types::Json;
use uuid::Uuid;

use super::follower::FOLLOWER;
use super::signing;
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::events::following;
use crate::rights::audit::{self, AuditLine};
use crate::secrets::EnvelopeCipher;

/// How long the webhooks of an ended call are kept, until its last events are queued.
const KEPT: TimeDelta = TimeDelta::minutes(10);

from_row! {
    struct CallWebhookRow {
        name: String,
        url: String,
        context_id: String,
        request_id: Option<String>,
    }
}

pub(super) async fn create(
    mut tx: TenantTransaction,
    cipher: &EnvelopeCipher,
    agent: Uuid,
    webhook: &CallWebhook,
) -> Result<()> {
    // Serializes concurrent creates, so that the count is exact.
    tx.lock(agent).await?;
    remove(&mut tx, agent, webhook.request, &webhook.name).await?;
    let owner_id = tx.owner_id;
    let count: i64 = sqlx::query_scalar(
        "SELECT count(*) FROM webhooks WHERE owner_id = $1 AND agent_id = $2 AND request IS NOT NULL",
    )
    .bind(owner_id)
    .bind(agent)
    .fetch_one(tx.connection())
    .await?;
    if count >= MAX_CALL_WEBHOOKS as i64 {
        let message = format!(
            "the agent has {count} push configurations, the maximum; delete one, or wait until minutes after its task has \
             ended"
        );
        return Err(Violations::one("", message).into());
    }
    let after = following::begin_at_present(&mut tx, FOLLOWER).await?;
    let id = Uuid::now_v7();
    let selector = Selector { all_tags: vec![ToolResponse::tag(&webhook.request_id)], ..Selector::default() };
    sqlx::query(
        "INSERT INTO webhooks (id, owner_id, agent_id, url, selector, request, name, context_id, after)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(id)
    .bind(owner_id)
    .bind(agent)
    .bind(&webhook.url)
    .bind(Json(&selector))
    .bind(webhook.request)
    .bind(&webhook.name)
    .bind(&webhook.context_id)
    .bind(after)
    .execute(tx.connection())
    .await?;
    if !webhook.headers.is_empty() {
        let text = serde_json::to_string(&webhook.headers)
            .map_err(|error| StoreError::Internal(format!("header fields cannot be written: {error}")))?;
        signing::seal(&mut tx, cipher, id, &text).await?;
    }
    audit::write(&mut tx, AuditLine::by(agent, "webhook.created").on(id, &webhook.url)).await?;
    tx.commit().await
}

/// The webhooks of a call, without their headers.
pub(super) async fn list(tx: &mut TenantTransaction, agent: Uuid, request: Uuid) -> Result<Vec<CallWebhook>> {
    let owner_id = tx.owner_id;
    let rows: Vec<CallWebhookRow> = sqlx::query_as(
        "SELECT w.name, w.url, w.context_id, c.request_id
         FROM webhooks w LEFT JOIN calls c ON c.owner_id = w.owner_id AND c.request = w.request
         WHERE w.owner_id = $1 AND w.agent_id = $2 AND w.request = $3 ORDER BY w.created_at, w.id",
    )
    .bind(owner_id)
    .bind(agent)
    .bind(request)
    .fetch_all(tx.connection())
    .await?;
    let webhook = |row: CallWebhookRow| CallWebhook {
        request,
        request_id: row.request_id.unwrap_or_else(|| request.to_string()),
        name: row.name,
        url: row.url,
        context_id: row.context_id,
        headers: Vec::new(),
    };
    Ok(rows.into_iter().map(webhook).collect())
}

pub(super) async fn delete(mut tx: TenantTransaction, agent: Uuid, request: Uuid, name: &str) -> Result<bool> {
    let Some((id, url)) = remove(&mut tx, agent, request, name).await? else { return Ok(false) };
    audit::write(&mut tx, AuditLine::by(agent, "webhook.deleted").on(id, &url)).await?;
    tx.commit().await?;
    Ok(true)
}

async fn remove(tx: &mut TenantTransaction, agent: Uuid, request: Uuid, name: &str) -> Result<Option<(Uuid, String)>> {
    let owner_id = tx.owner_id;
    let removed: Option<(Uuid, String)> = sqlx::query_as(
        "WITH gone AS (
            DELETE FROM webhooks WHERE owner_id = $1 AND agent_id = $2 AND request = $3 AND name = $4 RETURNING id, url),
         headers AS (
            DELETE FROM webhook_secrets WHERE owner_id = $1 AND agent_id IN (SELECT id FROM gone))
         SELECT id, url FROM gone",
    )
    .bind(owner_id)
    .bind(agent)
    .bind(request)
    .bind(name)
    .fetch_optional(tx.connection())
    .await?;
    Ok(removed)
}

/// Deletes the webhooks of calls that ended some time ago, and have nothing left to send. Returns
/// how many.
pub(super) async fn purge(database: &Arc<Database>) -> Result<usize> {
    let ended_before = Utc::now() - KEPT;
    let mut tx = database.begin("BEGIN").await?;
    let tenants: Vec<Uuid> = sqlx::query_scalar("SELECT tenants_with_webhooks_of_ended_calls($1)")
        .bind(ended_before)
        .fetch_all(&mut *tx)
        .await?;
    drop(tx);
    let mut count = 0;
    for owner_id in tenants {
        let mut tx = TenantTransaction::begin(database, owner_id).await?;
        let gone: Vec<(Uuid,)> = sqlx::query_as(
            "WITH gone AS (
                DELETE FROM webhooks w WHERE w.owner_id = $1 AND w.request IS NOT NULL AND w.created_at < $2
                    AND NOT EXISTS (SELECT FROM calls c WHERE c.owner_id = $1 AND c.request = w.request
                        AND (c.finished_at IS NULL OR c.finished_at >= $2))
                    AND NOT EXISTS (SELECT FROM deliveries d WHERE d.owner_id = $1 AND d.webhook_id = w.id)
                RETURNING w.id),
             headers AS (
                DELETE FROM webhook_secrets WHERE owner_id = $1 AND agent_id IN (SELECT id FROM gone))
             SELECT id FROM gone",
        )
        .bind(owner_id)
        .bind(ended_before)
        .fetch_all(tx.connection())
        .await?;
        tx.commit().await?;
        count += gone.len();
    }
    Ok(count)
}
