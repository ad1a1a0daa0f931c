//! Claims due deliveries, and records their outcome.

use std::sync::Arc;
use std::time::Duration;

use chrono::{TimeDelta, Utc};
use rcrt_breadcrumb::{
    Delivery, DeliveryClaimRequest, DeliveryOfCall, DeliveryOutcome, Event, EventContext, Retention, StoreError,
};
use sqlx::types::Json;
use uuid::Uuid;

use super::signing;
use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::{Durability, TenantTransaction};
use crate::secrets::EnvelopeCipher;

/// How many characters of an error are stored.
const ERROR_CHARS: usize = 1000;
/// The most rows of one statement.
const BATCH: i64 = 500;

from_row! {
    struct Hook {
        agent_id: Uuid,
        url: String,
        failures: i32,
        request: Option<Uuid>,
        context_id: Option<String>,
    }
}

from_row! {
    struct Taken {
        id: Uuid,
        payload: Json<Box<serde_json::value::RawValue>>,
        attempts: i32,
        fence: i64,
        age_ms: f64,
        can_see: bool,
        is_secret: bool,
    }
}

pub(super) async fn claim(
    database: &Arc<Database>,
    cipher: &EnvelopeCipher,
    request: &DeliveryClaimRequest,
) -> Result<Vec<Delivery>> {
    let mut tx = database.begin("BEGIN").await?;
    let due: Vec<(Uuid, Uuid)> = sqlx::query_as("SELECT tenant, webhook FROM webhooks_due($1, $2, $3)")
        .bind(request.most as i64)
        .bind(request.per_webhook as i32)
        .bind(request.slow_from as i32)
        .fetch_all(&mut *tx)
        .await?;
    drop(tx);
    let mut claimed = Vec::new();
    // The first round claims one delivery of each webhook, so that a backlog gets only the
    // remaining capacity.
    for round in [1, request.per_webhook.saturating_sub(1)] {
        for (owner_id, webhook) in &due {
            let most = round.min(request.most - claimed.len());
            if most == 0 {
                break;
            }
            match claim_of_webhook(database, cipher, *owner_id, *webhook, most, request).await {
                Ok(more) => claimed.extend(more),
                // Deliveries that are already claimed are under a lease and must be returned. A
                // failure of one webhook must not stop the others.
                Err(failure) if !claimed.is_empty() || !failure.is_unreachable() => {
                    let error = StoreError::from(failure);
                    tracing::warn!(%webhook, %error, "the deliveries of a webhook cannot be claimed");
                }
                Err(failure) => return Err(failure),
            }
        }
    }
    Ok(claimed)
}

async fn claim_of_webhook(
    database: &Arc<Database>,
    cipher: &EnvelopeCipher,
    owner_id: Uuid,
    webhook: Uuid,
    most: usize,
    request: &DeliveryClaimRequest,
) -> Result<Vec<Delivery>> {
    // A lease that a crash of the database loses costs one more attempt.
    let mut tx = TenantTransaction::begin_with(database, owner_id, Durability::AsyncCommit).await?;
    // Claimed deliveries are counted in the transaction that locked the webhook, so the statement
    // below sees what the previous transaction wrote.
    let hook: Option<Hook> = sqlx::query_as(
        "UPDATE webhooks SET taken_at = clock_timestamp() WHERE owner_id = $2 AND id = (
            SELECT id FROM webhooks WHERE id = $1 AND owner_id = $2 AND state = 'active'
                AND (held_until IS NULL OR held_until <= clock_timestamp())
            FOR NO KEY UPDATE SKIP LOCKED)
         RETURNING agent_id, url, failures, request, context_id",
    )
    .bind(webhook)
    .bind(owner_id)
    .fetch_optional(tx.connection())
    .await?;
    let Some(hook) = hook else { return Ok(Vec::new()) };
    let failures = hook.failures.unsigned_abs();
    let most_under_way = if failures >= request.slow_from { 1 } else { request.per_webhook };
    let rows: Vec<Taken> = sqlx::query_as(
        // Materialized: a plan that asked again for each row would take more than the limit.
        "WITH next AS MATERIALIZED (
            SELECT id FROM deliveries WHERE webhook_id = $1 AND owner_id = $5 AND (
                (state = 'waiting' AND due_at <= clock_timestamp())
                OR (state = 'sending' AND lease_until <= clock_timestamp()))
            ORDER BY event
            LIMIT least($2::bigint, greatest(0, $3::bigint - (
                SELECT count(*) FROM deliveries s WHERE s.webhook_id = $1 AND s.owner_id = $5
                    AND s.state = 'sending' AND s.lease_until > clock_timestamp())))
            FOR UPDATE SKIP LOCKED)
         UPDATE deliveries d SET state = 'sending', attempts = d.attempts + 1,
            lease_until = clock_timestamp() + $4 * interval '1 millisecond',
            fence = greatest(d.fence + 1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint)
         FROM next WHERE d.owner_id = $5 AND d.id = next.id
         RETURNING d.id, d.payload, d.attempts, d.fence,
            extract(epoch FROM clock_timestamp() - d.queued_at)::float8 * 1000 AS age_ms,
            agent_can_see_version($6, d.breadcrumb_id, d.version) AS can_see,
            EXISTS (SELECT FROM breadcrumbs b
                    WHERE b.owner_id = $5 AND b.id = d.breadcrumb_id AND b.sensitivity = 'secret')
                OR (NOT EXISTS (SELECT FROM breadcrumbs b WHERE b.owner_id = $5 AND b.id = d.breadcrumb_id)
                    AND EXISTS (SELECT FROM breadcrumb_versions v
                        WHERE v.owner_id = $5 AND v.breadcrumb_id = d.breadcrumb_id AND v.version >= d.version
                            AND v.sensitivity = 'secret')) AS is_secret",
    )
    .bind(webhook)
    .bind(most as i64)
    .bind(most_under_way as i64)
    .bind(request.lease.as_secs_f64() * 1000.0)
    .bind(owner_id)
    .bind(hook.agent_id)
    .fetch_all(tx.connection())
    .await?;
    // The agent may have lost access while the delivery was queued.
    let (rows, hidden): (Vec<Taken>, Vec<Taken>) = rows.into_iter().partition(|row| row.can_see);
    if !hidden.is_empty() {
        let ids: Vec<Uuid> = hidden.iter().map(|row| row.id).collect();
        sqlx::query("DELETE FROM deliveries WHERE id = ANY($1)").bind(&ids).execute(tx.connection()).await?;
    }
    let secret = signing::open(&mut tx, cipher, hook.agent_id).await?;
    let call = match hook.request.zip(hook.context_id) {
        None => None,
        Some((request, context_id)) => {
            let headers = signing::open(&mut tx, cipher, webhook).await?.map(|text| serde_json::from_str(&text));
            let headers = headers.transpose().map_err(|error| {
                StoreError::Internal(format!("the header fields of the webhook {webhook} cannot be read: {error}"))
            })?;
            Some(DeliveryOfCall { request, context_id, headers: headers.unwrap_or_default() })
        }
    };
    tx.commit().await?;
    let delivery = |row: Taken| Delivery {
        id: row.id,
        owner_id,
        webhook_id: webhook,
        url: hook.url.clone(),
        payload: if row.is_secret { without_context(row.payload.0.get()) } else { row.payload.0.get().to_owned() },
        attempt: row.attempts.unsigned_abs(),
        age: Duration::from_secs_f64(row.age_ms.max(0.0) / 1000.0),
        failures,
        secret: secret.clone(),
        call: call.clone(),
        fence: row.fence,
    };
    Ok(rows.into_iter().map(delivery).collect())
}

/// For a record that became secret while its event was queued.
fn without_context(payload: &str) -> String {
    let event = serde_json::from_str::<Event>(payload);
    let event = event.map(|event| Event { context: EventContext::default(), redacted: true, ..event });
    event.and_then(|event| serde_json::to_string(&event)).unwrap_or_else(|_| "{}".to_owned())
}

pub(super) async fn complete(mut tx: TenantTransaction, delivery: &Delivery, outcome: &DeliveryOutcome) -> Result<()> {
    let (error, hold) = match outcome {
        DeliveryOutcome::Delivered => (None, None),
        DeliveryOutcome::Retry { error, hold, .. } | DeliveryOutcome::Dead { error, hold } => (Some(error), *hold),
        DeliveryOutcome::Gone { error } => (Some(error), None),
    };
    let error = error.map(|error| error.replace('\0', " ").chars().take(ERROR_CHARS).collect::<String>());
    let query = match outcome {
        DeliveryOutcome::Delivered => {
            sqlx::query("DELETE FROM deliveries WHERE id = $1 AND state = 'sending' AND fence = $2")
        }
        DeliveryOutcome::Retry { after, .. } => sqlx::query(
            "UPDATE deliveries SET state = 'waiting', lease_until = NULL, last_error = $3,
                due_at = clock_timestamp() + $4 * interval '1 millisecond'
             WHERE id = $1 AND state = 'sending' AND fence = $2",
        )
        .bind(delivery.id)
        .bind(delivery.fence)
        .bind(&error)
        .bind(after.as_secs_f64() * 1000.0),
        DeliveryOutcome::Dead { .. } | DeliveryOutcome::Gone { .. } => sqlx::query(
            "UPDATE deliveries SET state = 'dead', lease_until = NULL, last_error = $3, dead_at = now()
             WHERE id = $1 AND state = 'sending' AND fence = $2",
        )
        .bind(delivery.id)
        .bind(delivery.fence)
        .bind(&error),
    };
    let query = if matches!(outcome, DeliveryOutcome::Delivered) {
        query.bind(delivery.id).bind(delivery.fence)
    } else {
        query
    };
    if query.execute(tx.connection()).await?.rows_affected() == 0 {
        return Ok(());
    }
    sqlx::query(
        "UPDATE webhooks SET
            failures = CASE WHEN $2 IS NULL THEN 0 ELSE least(failures, 1000000) + 1 END,
            held_until = CASE WHEN $2 IS NOT NULL THEN
                greatest(held_until, clock_timestamp() + $3 * interval '1 millisecond') END,
            last_error = $2,
            delivered_at = CASE WHEN $2 IS NULL THEN now() ELSE delivered_at END,
            state = CASE WHEN $4 THEN 'paused' ELSE state END,
            paused_because = CASE WHEN $4 THEN coalesce(paused_because, $2) ELSE paused_because END
         WHERE id = $1",
    )
    .bind(delivery.webhook_id)
    .bind(&error)
    .bind(hold.map(|hold| hold.as_secs_f64() * 1000.0))
    .bind(matches!(outcome, DeliveryOutcome::Gone { .. }))
    .execute(tx.connection())
    .await?;
    tx.commit().await
}

pub(super) async fn purge(database: &Arc<Database>, retention: &Retention) -> Result<usize> {
    let before = |age: Duration| Utc::now() - TimeDelta::from_std(age).unwrap_or(TimeDelta::MAX);
    let (queued_before, dead_before) = (before(retention.waiting), before(retention.dead));
    let mut tx = database.begin("BEGIN").await?;
    let tenants: Vec<Uuid> = sqlx::query_scalar("SELECT tenants_with_old_deliveries($1, $2, $3)")
        .bind(queued_before)
        .bind(dead_before)
        .bind(i64::from(retention.most_dead))
        .fetch_all(&mut *tx)
        .await?;
    drop(tx);
    let mut count = 0;
    for owner_id in tenants {
        loop {
            let mut tx = TenantTransaction::begin(database, owner_id).await?;
            let given_up = sqlx::query(
                "UPDATE deliveries SET state = 'dead', dead_at = now(), lease_until = NULL,
                    last_error = concat('it waited too long', '; the last attempt: ' || last_error)
                 WHERE id IN (SELECT id FROM deliveries WHERE owner_id = $1 AND queued_at < $2
                                  AND (state = 'waiting' OR (state = 'sending' AND lease_until <= clock_timestamp()))
                              LIMIT $3 FOR UPDATE SKIP LOCKED)",
            )
            .bind(owner_id)
            .bind(queued_before)
            .bind(BATCH)
            .execute(tx.connection())
            .await?;
            let forgotten = sqlx::query(
                "DELETE FROM deliveries WHERE owner_id = $1 AND id IN (
                    SELECT id FROM (SELECT id, dead_at FROM deliveries WHERE owner_id = $1 AND state = 'dead'
                                    ORDER BY dead_at DESC, id OFFSET $3) many
                    UNION SELECT id FROM deliveries WHERE owner_id = $1 AND state = 'dead' AND dead_at < $2
                    LIMIT $4)",
            )
            .bind(owner_id)
            .bind(dead_before)
            .bind(i64::from(retention.most_dead))
            .bind(BATCH)
            .execute(tx.connection())
            .await?;
            tx.commit().await?;
            let done = (given_up.rows_affected() + forgotten.rows_affected()) as usize;
            if done == 0 {
                break;
            }
            count += done;
        }
    }
    Ok(count)
}
