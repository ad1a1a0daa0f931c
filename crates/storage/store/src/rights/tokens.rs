//! Revoked tokens and used tickets.

use chrono::{DateTime, TimeDelta, Utc};
use rcrt_breadcrumb::{AgentStatus, TokenRevocation, Violations, WhichTokens};
use uuid::Uuid;

use crate::database::Database;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::rights::agents;
use crate::rights::audit::{self, AuditLine};

/// The most tokens of one agent that are revoked individually. Every request of the agent is
/// compared with them.
const MOST_PER_AGENT: i64 = 1000;
/// How long a revocation counts as recent. Servers that poll within this time see it.
const FRESH: TimeDelta = TimeDelta::seconds(15);

pub(crate) async fn agent_status(tx: &mut TenantTransaction, agent_id: Uuid) -> Result<AgentStatus> {
    let agent = agents::find(tx, agent_id).await?;
    let revoked: Vec<(Option<Uuid>, Option<DateTime<Utc>>)> = sqlx::query_as(
        "SELECT jti, issued_before FROM revoked_tokens WHERE agent_id = $1 AND (until IS NULL OR until > now())",
    )
    .bind(agent_id)
    .fetch_all(tx.connection())
    .await?;
    let tokens_from = revoked.iter().filter_map(|(_, before)| *before).max();
    Ok(AgentStatus { agent, revoked: revoked.into_iter().filter_map(|(jti, _)| jti).collect(), tokens_from })
}

pub(crate) async fn revoke(mut tx: TenantTransaction, by: Uuid, revocation: TokenRevocation) -> Result<()> {
    let (owner_id, agent_id) = (tx.owner_id, revocation.agent_id);
    // Locked, so that two concurrent revocations cannot both pass the limit.
    tx.lock(agent_id).await?;
    let (action, subject) = match revocation.which {
        WhichTokens::One { jti, until } => {
            let count: i64 = sqlx::query_scalar(
                "SELECT count(*) FROM revoked_tokens WHERE agent_id = $1 AND jti IS NOT NULL AND jti <> $2 AND until > now()",
            )
            .bind(agent_id)
            .bind(jti)
            .fetch_one(tx.connection())
            .await?;
            if count >= MOST_PER_AGENT {
                let why = format!(
                    "exceeds the limit: {count} unexpired tokens of this agent are revoked individually; revoke all tokens of \
                     the agent instead"
                );
                return Err(Violations::one("jti", why).into());
            }
            sqlx::query(
                "INSERT INTO revoked_tokens (owner_id, agent_id, jti, until, revoked_by) VALUES ($1, $2, $3, $4, $5)
                 ON CONFLICT (owner_id, agent_id, jti) WHERE jti IS NOT NULL
                 DO UPDATE SET until = greatest(revoked_tokens.until, EXCLUDED.until), revoked_at = now()",
            )
            .bind(owner_id)
            .bind(agent_id)
            .bind(jti)
            .bind(until)
            .bind(by)
            .execute(tx.connection())
            .await?;
            ("token.revoked", jti)
        }
        WhichTokens::IssuedBefore(before) => {
            sqlx::query(
                "INSERT INTO revoked_tokens (owner_id, agent_id, issued_before, revoked_by) VALUES ($1, $2, $3, $4)
                 ON CONFLICT (owner_id, agent_id) WHERE jti IS NULL
                 DO UPDATE SET issued_before = greatest(revoked_tokens.issued_before, EXCLUDED.issued_before),
                     revoked_at = now(), revoked_by = EXCLUDED.revoked_by",
            )
            .bind(owner_id)
            .bind(agent_id)
            .bind(before)
            .bind(by)
            .execute(tx.connection())
            .await?;
            // Individual revocations stay until they expire: a server whose clock is ahead dates
            // its tokens after `before`.
            ("tokens.revoked", agent_id)
        }
    };
    audit::write(&mut tx, AuditLine::by(by, action).on(subject, &agent_id.to_string())).await?;
    tx.commit().await
}

pub(crate) async fn recently_revoked(database: &Database) -> Result<Vec<(Uuid, Uuid)>> {
    let mut tx = database.begin("BEGIN").await?;
    Ok(sqlx::query_as("SELECT tenant, agent FROM agents_revoked_since(now() - $1)")
        .bind(FRESH)
        .fetch_all(&mut *tx)
        .await?)
}

pub(crate) async fn use_ticket(mut tx: TenantTransaction, id: Uuid, until: DateTime<Utc>) -> Result<bool> {
    let owner_id = tx.owner_id;
    let used = sqlx::query("INSERT INTO used_tickets (owner_id, id, until) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING")
        .bind(owner_id)
        .bind(id)
        .bind(until)
        .execute(tx.connection())
        .await?;
    tx.commit().await?;
    Ok(used.rows_affected() == 1)
}

/// Deletes revocations and used tickets that have expired.
pub(crate) async fn forget_expired(mut tx: TenantTransaction) -> Result<usize> {
    let mut count = 0;
    for forget in [
        "DELETE FROM revoked_tokens WHERE owner_id = current_tenant() AND until < now()",
        // A server whose clock is slightly behind must not accept a used ticket that was already
        // deleted here.
        "DELETE FROM used_tickets WHERE owner_id = current_tenant() AND until < now() - interval '5 minutes'",
    ] {
        count += sqlx::query(forget).execute(tx.connection()).await?.rows_affected();
    }
    tx.commit().await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}
