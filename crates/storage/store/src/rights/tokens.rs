//! The list of tokens, revoked tokens and used tickets.

use chrono::{DateTime, TimeDelta, Utc};
use rcrt_breadcrumb::{
    AgentStatus, MAX_TOKENS, Profile, Role, StoreError, TokenInfo, TokenQuery, TokenRecord, TokenRevocation,
    Violations, WhichTokens,
};
use uuid::Uuid;

use crate::database::Database;
use crate::database::failure::Result;
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;
use crate::rights::agents;
use crate::rights::audit::{self, AuditLine};

/// The most tokens of one agent that are revoked individually. Every request of the agent is
/// compared with them.
const MOST_PER_AGENT: i64 = 1000;
/// How long a revocation or a change counts as recent. Servers that poll within this time see it.
const FRESH: TimeDelta = TimeDelta::seconds(15);

pub(crate) async fn agent_status(tx: &mut TenantTransaction, agent_id: Uuid) -> Result<AgentStatus> {
    let agent = agents::find(tx, agent_id).await?;
    let revoked: Vec<(Option<Uuid>, Option<DateTime<Utc>>)> = sqlx::query_as(
        "SELECT jti, issued_before FROM revoked_tokens WHERE agent_id = $1 AND (until IS NULL OR until > now())",
    )
    .bind(agent_id)
    .fetch_all(tx.connection())
    .await?;
    let max_requests: Option<i64> =
        sqlx::query_scalar("SELECT (SELECT max_requests FROM find_tenant(current_tenant()))")
            .fetch_one(tx.connection())
            .await?;
    let tokens_from = revoked.iter().filter_map(|(_, before)| *before).max();
    let revoked = revoked.into_iter().filter_map(|(jti, _)| jti).collect();
    Ok(AgentStatus { agent, revoked, tokens_from, max_requests: max_requests.map(i64::unsigned_abs) })
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
            ("token.all_revoked", agent_id)
        }
    };
    audit::write(&mut tx, AuditLine::by(by, action).on(subject, &agent_id.to_string())).await?;
    tx.commit().await
}

from_row! {
    struct TokenRow {
        id: Uuid,
        number: i64,
        agent_id: Uuid,
        agent_name: Option<String>,
        roles: Vec<String>,
        profile: String,
        issued_at: DateTime<Utc>,
        expires_at: DateTime<Utc>,
        last_used_at: Option<DateTime<Utc>>,
        revoked: bool,
    }
}

impl From<TokenRow> for TokenInfo {
    fn from(row: TokenRow) -> Self {
        Self {
            id: row.id,
            number: row.number,
            agent_id: row.agent_id,
            agent_name: row.agent_name,
            roles: row.roles.iter().filter_map(|role| role.parse().ok()).collect(),
            profile: row.profile.parse().unwrap_or(Profile::Subagent),
            issued_at: row.issued_at,
            expires_at: row.expires_at,
            last_used_at: row.last_used_at,
            revoked: row.revoked,
        }
    }
}

/// Records tokens of the transaction's tenant. Each may occur once.
pub(crate) async fn record(mut tx: TenantTransaction, tokens: &[&TokenRecord]) -> Result<()> {
    let owner_id = tx.owner_id;
    let roles = |token: &&TokenRecord| {
        let names: Vec<&str> = token.roles.iter().copied().map(Role::as_str).collect();
        names.join(",")
    };
    sqlx::query(
        "INSERT INTO tokens AS t (owner_id, id, agent_id, roles, profile, issued_at, expires_at, last_used_at)
         SELECT $1, g.id, g.agent, string_to_array(g.roles, ','), g.profile, g.issued, g.expires, g.used
         FROM unnest($2::uuid[], $3::uuid[], $4::text[], $5::text[], $6::timestamptz[], $7::timestamptz[],
            $8::timestamptz[]) AS g (id, agent, roles, profile, issued, expires, used)
         ORDER BY g.issued, g.id
         ON CONFLICT (owner_id, id) DO UPDATE SET last_used_at = greatest(t.last_used_at, EXCLUDED.last_used_at)",
    )
    .bind(owner_id)
    .bind(tokens.iter().map(|token| token.id).collect::<Vec<_>>())
    .bind(tokens.iter().map(|token| token.agent_id).collect::<Vec<_>>())
    .bind(tokens.iter().map(roles).collect::<Vec<_>>())
    .bind(tokens.iter().map(|token| token.profile.as_str()).collect::<Vec<_>>())
    .bind(tokens.iter().map(|token| token.issued_at).collect::<Vec<_>>())
    .bind(tokens.iter().map(|token| token.expires_at).collect::<Vec<_>>())
    .bind(tokens.iter().map(|token| token.used_at).collect::<Vec<_>>())
    .execute(tx.connection())
    .await?;
    tx.commit().await
}

pub(crate) fn check_query(query: &TokenQuery) -> Result<(), StoreError> {
    if (1..=MAX_TOKENS).contains(&query.limit) {
        return Ok(());
    }
    Err(Violations::one("limit", format!("must be from 1 to {MAX_TOKENS}")).into())
}

pub(crate) async fn list(tx: &mut TenantTransaction, query: &TokenQuery) -> Result<Vec<TokenInfo>> {
    let rows: Vec<TokenRow> = sqlx::query_as(
        "SELECT t.id, t.number, t.agent_id, a.name AS agent_name, t.roles, t.profile, t.issued_at, t.expires_at,
            t.last_used_at, coalesce(a.deleted_at IS NOT NULL, false) OR EXISTS (
                SELECT FROM revoked_tokens r WHERE r.owner_id = t.owner_id AND r.agent_id = t.agent_id
                    AND (r.jti = t.id OR r.issued_before > t.issued_at)) AS revoked
         FROM tokens t LEFT JOIN agents a ON a.id = t.agent_id AND a.owner_id = t.owner_id
         WHERE t.owner_id = current_tenant() AND t.expires_at > now()
           AND ($1::uuid IS NULL OR t.id = $1) AND ($2::uuid IS NULL OR t.agent_id = $2)
           AND ($3::bigint IS NULL OR t.number < $3)
         ORDER BY t.number DESC LIMIT $4",
    )
    .bind(query.id)
    .bind(query.agent_id)
    .bind(query.before)
    .bind(i64::from(query.limit))
    .fetch_all(tx.connection())
    .await?;
    Ok(rows.into_iter().map(TokenInfo::from).collect())
}

pub(crate) async fn recently_changed_agents(database: &Database) -> Result<Vec<(Uuid, Uuid, DateTime<Utc>)>> {
    let mut tx = database.begin("BEGIN").await?;
    Ok(sqlx::query_as("SELECT tenant, agent, changed_at FROM agents_changed_since(now() - $1)")
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

/// Deletes tokens, revocations, used tickets and sessions that have expired.
pub(crate) async fn forget_expired(mut tx: TenantTransaction) -> Result<usize> {
    let mut count = 0;
    for forget in [
        "DELETE FROM tokens WHERE owner_id = current_tenant() AND expires_at < now()",
        "DELETE FROM revoked_tokens WHERE owner_id = current_tenant() AND until < now()",
        // A server whose clock is slightly behind must not accept a used ticket that was already
        // deleted here.
        "DELETE FROM used_tickets WHERE owner_id = current_tenant() AND until < now() - interval '5 minutes'",
        "DELETE FROM mcp_sessions WHERE owner_id = current_tenant() AND until < now()",
    ] {
        count += sqlx::query(forget).execute(tx.connection()).await?.rows_affected();
    }
    tx.commit().await?;
    Ok(usize::try_from(count).unwrap_or(usize::MAX))
}
