//! Revoked tokens, and changes of agents. The server that makes one applies it at once, other
//! servers within a second. Open streams of a revoked token, or of changed roles, close.

use std::collections::HashMap;
use std::time::Duration;

use axum::extract::State;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Identity, Role, StoreError, TokenInfo, TokenQuery, TokenRevocation, Violations, WhichTokens};
use serde::{Deserialize, Serialize};
use tokio::time::{MissedTickBehavior, interval};
use tokio_util::sync::CancellationToken;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::AuthMode;
use crate::ServerState;
use crate::auth::access::Caller;
use crate::auth::token::{MAX_TTL_SEC, TokenError};
use crate::http::json_body::JsonBody;
use crate::http::problem::Problem;
use crate::routes::replies::{NoStore, NoStoreReply};

/// How often this server checks for revocations and changes by other servers.
const POLL_INTERVAL: Duration = Duration::from_millis(500);

/// Which tokens: `token` or `jti` for one, `all` for all tokens of an agent so far. With none of
/// them, the token of this request.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RevokeTokens {
    /// The token itself.
    token: Option<String>,
    /// The id of the token, as `POST /auth/token` and `GET /auth/tokens` return it: its claim
    /// `jti`. A token that is not listed is only revoked if `agent_id` names its agent.
    jti: Option<Uuid>,
    /// The agent of `jti` or `all`. When absent, the agent of the listed token, or for `all` the
    /// caller. Only curators can revoke tokens of other agents.
    agent_id: Option<Uuid>,
    /// `true`: all tokens of the agent that were issued before now.
    #[serde(default)]
    all: bool,
}

/// What was revoked.
#[derive(Serialize, ToSchema)]
pub struct RevokedTokens {
    ok: bool,
    agent_id: Uuid,
    /// The one token.
    #[serde(skip_serializing_if = "Option::is_none")]
    jti: Option<Uuid>,
    /// `true`: no token with the id `jti` is listed. It is refused should it appear.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    unlisted: bool,
    /// All tokens that were issued before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_before: Option<DateTime<Utc>>,
}

/// Revoke tokens
///
/// At once on this server, within seconds on others. Event streams that were opened with such a
/// token close. An agent can revoke its own tokens, a curator those of any agent of the tenant. The
/// agent's key stays valid; `POST /agents/{id}/rotate-key` replaces it.
#[utoipa::path(post, path = "/auth/revoke", tag = "auth", operation_id = "revoke_tokens",
    request_body = RevokeTokens, responses((status = 200, body = RevokedTokens)))]
pub async fn revoke(
    State(state): State<ServerState>,
    caller: Caller,
    JsonBody(request): JsonBody<RevokeTokens>,
) -> NoStoreReply<RevokedTokens> {
    let (revocation, unlisted) = revocation(&state, &caller, request).await?;
    let Identity { owner_id, agent_id: by, .. } = caller.identity;
    // In open mode the agent need not exist.
    if state.auth == AuthMode::Keys && state.tenancy.agent(owner_id, revocation.agent_id).await?.is_none() {
        return Err(StoreError::NotFound { what: "agent", id: revocation.agent_id }.into());
    }
    if revocation.agent_id != by && !caller.identity.has(Role::Curator) {
        return Err(Problem::forbidden("only a curator can revoke the tokens of another agent"));
    }
    state.tenancy.revoke_tokens(owner_id, by, revocation.clone()).await?;
    state.agent_cache.forget(owner_id, revocation.agent_id);
    let (jti, issued_before) = match revocation.which {
        WhichTokens::One { jti, .. } => (Some(jti), None),
        WhichTokens::IssuedBefore(before) => (None, Some(before)),
    };
    Ok(NoStore(RevokedTokens { ok: true, agent_id: revocation.agent_id, jti, unlisted, issued_before }))
}

/// What to revoke, and whether it is an id that is not listed.
async fn revocation(
    state: &ServerState,
    caller: &Caller,
    request: RevokeTokens,
) -> Result<(TokenRevocation, bool), Problem> {
    let RevokeTokens { token, jti, agent_id, all } = request;
    let named = usize::from(token.is_some()) + usize::from(jti.is_some()) + usize::from(all);
    let mut found = Violations::default();
    if named > 1 {
        found.add("", "name one of token, jti and all");
    }
    if agent_id.is_some() && (token.is_some() || named == 0) {
        found.add("agent_id", "can only be combined with jti or all; a token names its own agent");
    }
    found.into_result()?;
    if let Some(jti) = jti {
        return by_id(state, caller, jti, agent_id).await;
    }
    if all {
        let agent_id = agent_id.unwrap_or(caller.identity.agent_id);
        return Ok((TokenRevocation { agent_id, which: WhichTokens::IssuedBefore(Utc::now()) }, false));
    }
    let one = |agent_id, jti, expires_at| TokenRevocation {
        agent_id,
        which: WhichTokens::One { jti, until: moment(expires_at) },
    };
    let Some(token) = token else {
        return Ok((one(caller.identity.agent_id, caller.token.jti, caller.expires_at), false));
    };
    let verified = state.token_key.verify(&token).map_err(|error| match error {
        TokenError::Expired => Problem::invalid("token", "has already expired"),
        TokenError::Forged => Problem::invalid("token", "was not issued by this server"),
    })?;
    if verified.identity.owner_id != caller.identity.owner_id {
        return Err(Problem::invalid("token", "is not a token of this tenant"));
    }
    Ok((one(verified.identity.agent_id, verified.id.jti, verified.expires_at), false))
}

/// A token that is not listed may exist: it was issued on another server seconds ago, or outside of
/// a server and was not used yet. Its agent must then be named, so that a wrong id is noticed.
async fn by_id(
    state: &ServerState,
    caller: &Caller,
    jti: Uuid,
    agent_id: Option<Uuid>,
) -> Result<(TokenRevocation, bool), Problem> {
    let listed = find_listed(state, caller, jti).await?;
    let unlisted = listed.is_none();
    let (agent_id, until) = match (listed, agent_id) {
        (Some(listed), Some(agent)) if agent != listed.agent_id => {
            let why = format!("is not the agent of this token, which is {}", listed.agent_id);
            return Err(Problem::invalid("agent_id", why));
        }
        (Some(listed), _) => (listed.agent_id, listed.expires_at),
        // The token's expiry is not known, but no token is valid for longer.
        (None, Some(agent)) => (agent, Utc::now() + Duration::from_secs(MAX_TTL_SEC)),
        (None, None) => return Err(Problem::token_not_listed(jti)),
    };
    Ok((TokenRevocation { agent_id, which: WhichTokens::One { jti, until } }, unlisted))
}

/// The token as the list has it. Other agents' tokens do not exist for an agent that is not a
/// curator.
async fn find_listed(state: &ServerState, caller: &Caller, jti: Uuid) -> Result<Option<TokenInfo>, StoreError> {
    state.token_uses.write(&*state.tenancy).await?;
    let agent_id = (!caller.identity.has(Role::Curator)).then_some(caller.identity.agent_id);
    let query = TokenQuery { id: Some(jti), agent_id, before: None, limit: 1 };
    Ok(state.tenancy.tokens(caller.identity.owner_id, &query).await?.pop())
}

/// A time from seconds since 1970. A value outside the calendar becomes a time far in the future.
fn moment(seconds: u64) -> DateTime<Utc> {
    let moment = i64::try_from(seconds).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    moment.unwrap_or_else(|| Utc::now() + Duration::from_hours(100 * 366 * 24))
}

/// Applies the revocations and changes of other servers, until `stop`.
pub async fn follow(state: ServerState, stop: CancellationToken) {
    let mut ticks = interval(POLL_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_failing = false;
    // A change is reported for some seconds. Each is applied once, because all open streams are
    // checked then.
    let mut applied: HashMap<(Uuid, Uuid), DateTime<Utc>> = HashMap::new();
    loop {
        tokio::select! {
            () = stop.cancelled() => return,
            _ = ticks.tick() => {}
        }
        let asked = tokio::select! {
            () = stop.cancelled() => return,
            asked = state.tenancy.recently_changed_agents() => asked,
        };
        match asked {
            Ok(agents) => {
                is_failing = false;
                let changed: HashMap<_, _> =
                    agents.into_iter().map(|(owner_id, agent_id, at)| ((owner_id, agent_id), at)).collect();
                for (agent, at) in &changed {
                    if applied.get(agent) != Some(at) {
                        state.agent_cache.forget(agent.0, agent.1);
                    }
                }
                applied = changed;
            }
            Err(error) if !is_failing => {
                tracing::warn!(%error, "changed agents and revoked tokens cannot be read; retrying");
                is_failing = true;
            }
            Err(_) => {}
        }
    }
}
