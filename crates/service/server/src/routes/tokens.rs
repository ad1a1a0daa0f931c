//! Issues access tokens to callers that prove an agent's key, and in open mode to every caller.
//! Lists the tokens of agents.

use std::time::Duration;

use axum::extract::State;
use rcrt_breadcrumb::{
    AgentInfo, AgentRegistration, AllowedToolsChange, Identity, Profile, Role, StoreError, TokenInfo, TokenQuery,
    Violations,
};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::AuthMode;
use crate::ServerState;
use crate::auth::access::{Caller, role_names};
use crate::auth::token::MAX_TTL_SEC;
use crate::http::json_body::JsonBody;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::routes::replies::{NoStore, NoStoreReply};

/// How long a token is valid if the caller does not say.
const DEFAULT_TTL_SEC: u64 = 3600;
/// Tokens of a page if the caller sets no limit.
const PAGE: u32 = 100;
/// The tenant of callers in open mode that do not name one.
pub const OPEN_TENANT: &str = "default";
/// The tenant that RCRT's clients name if none is configured. Here it means the default tenant.
pub const RCRT_OWNER: Uuid = Uuid::from_u128(1);

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TokenRequest {
    /// The tenant. Can be absent in open mode only: the default tenant.
    owner_id: Option<Uuid>,
    /// The agent. Can be absent in open mode only: a new id.
    agent_id: Option<Uuid>,
    /// The agent's key, as shown when the agent was created. Not needed in open mode.
    agent_key: Option<String>,
    /// Roles for this token, a subset of the agent's; all of the agent's when absent.
    #[schema(min_items = 1)]
    roles: Option<Vec<Role>>,
    /// The profile, which decides which tools the token's holder can call; the agent's own when
    /// absent. An agent of the profile `main` can ask for any.
    profile: Option<Profile>,
    /// How long the token is valid in seconds, 1 to 2,592,000; 3,600 when absent.
    #[schema(minimum = 1, maximum = 2_592_000)]
    ttl_sec: Option<u64>,
}

#[derive(Serialize, ToSchema)]
pub struct GivenToken {
    token: String,
    /// The token's id, by which it can be revoked: its claim `jti`.
    id: Uuid,
    owner_id: Uuid,
    agent_id: Uuid,
    roles: Vec<Role>,
    profile: Profile,
    /// When the token expires, in seconds since 1970.
    exp: u64,
    /// Seconds until then, for callers whose clock differs from the server's.
    expires_in: u64,
}

/// Get a token
///
/// The agent's key proves the caller's identity. A server with open auth needs no key. There, an
/// unknown `agent_id` is registered as an agent with all roles.
#[utoipa::path(post, path = "/auth/token", tag = "auth", operation_id = "get_token",
    request_body = TokenRequest, responses((status = 200, body = GivenToken)))]
pub async fn token(
    State(state): State<ServerState>,
    JsonBody(request): JsonBody<TokenRequest>,
) -> NoStoreReply<GivenToken> {
    let ttl = request.ttl_sec.unwrap_or(DEFAULT_TTL_SEC);
    let mut found = Violations::default();
    if !(1..=MAX_TTL_SEC).contains(&ttl) {
        found.add("ttl_sec", format!("must be from 1 to {MAX_TTL_SEC}"));
    }
    if request.roles.as_ref().is_some_and(Vec::is_empty) {
        found.add("roles", "must name at least one role, or be left out for all of the agent's");
    }
    found.into_result()?;
    let mut identity = match state.auth {
        AuthMode::Keys => identity_by_key(&state, &request).await?,
        AuthMode::Open => open_identity(&state, &request).await?,
    };
    if let Some(mut wanted) = request.roles {
        wanted.sort_unstable();
        wanted.dedup();
        if let Some(refused) = wanted.iter().find(|role| !identity.has(**role)) {
            return Err(Problem::forbidden(format!(
                "the agent does not have the role {}; its roles are: {}",
                refused.as_str(),
                role_names(&identity.roles)
            )));
        }
        identity.roles = wanted;
    }
    if let Some(wanted) = request.profile {
        if identity.profile != Profile::Main && identity.profile != wanted {
            let own = identity.profile;
            return Err(Problem::forbidden(format!(
                "the agent's profile is {own}; only an agent of the profile main can ask for a token of another"
            )));
        }
        identity.profile = wanted;
    }
    issue(&state, identity, ttl)
}

/// Issues a token that is valid for `ttl` seconds.
pub(crate) fn issue(state: &ServerState, identity: Identity, ttl: u64) -> NoStoreReply<GivenToken> {
    let token = state.token_key.issue(&identity, Duration::from_secs(ttl)).map_err(|error| {
        tracing::error!(%error, "a token could not be signed");
        Problem::internal()
    })?;
    let issued = state.token_key.verify(&token).map_err(|error| Problem::unauthorized(error.to_string()))?;
    let (id, exp) = (issued.id.jti, issued.expires_at);
    state.token_uses.issued(&identity, issued.id, exp);
    let Identity { owner_id, agent_id, roles, profile } = identity;
    Ok(NoStore(GivenToken { token, id, owner_id, agent_id, roles, profile, exp, expires_in: ttl }))
}

/// A page of tokens.
#[derive(Serialize, ToSchema)]
pub struct TokenPage {
    /// The newest first.
    tokens: Vec<ListedToken>,
    /// The value of `before` for the next page; absent on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<i64>,
}

#[derive(Serialize, ToSchema)]
struct ListedToken {
    #[serde(flatten)]
    token: TokenInfo,
    /// Whether it is the token of this request.
    current: bool,
}

/// List tokens
///
/// The tokens that have not expired: of the whole tenant for a curator, else the agent's own. A
/// token that was not issued over HTTP, such as the one in the server's data folder, appears with
/// its first use. The time of the last use is exact to the minute.
#[utoipa::path(get, path = "/auth/tokens", tag = "auth", operation_id = "list_tokens",
    params(
        ("agent_id" = Option<Uuid>, Query, description = "Only tokens of this agent"),
        ("before" = Option<i64>, Query, description = "The `next` of the previous page"),
        ("limit" = Option<u32>, Query, minimum = 1, maximum = 1000, description = "100 when absent"),
    ),
    responses((status = 200, body = TokenPage)))]
pub async fn list(State(state): State<ServerState>, caller: Caller, mut query: Query) -> NoStoreReply<TokenPage> {
    let mut asked = TokenQuery {
        id: None,
        agent_id: query.take_optional("agent_id", "the id of an agent, a UUID"),
        before: query.take_optional("before", "the `next` of a page"),
        limit: query.take_as("limit", "a number from 1 to 1000", PAGE),
    };
    query.finish()?;
    let own = caller.identity.agent_id;
    if !caller.identity.has(Role::Curator) && *asked.agent_id.get_or_insert(own) != own {
        return Err(Problem::forbidden("only a curator can list the tokens of another agent"));
    }
    state.token_uses.write(&*state.tenancy).await?;
    let tokens = state.tenancy.tokens(caller.identity.owner_id, &asked).await?;
    let is_full = tokens.len() == asked.limit as usize;
    let next = tokens.last().filter(|_| is_full).map(|token| token.number);
    let listed = |token: TokenInfo| ListedToken { current: token.id == caller.token.jti, token };
    Ok(NoStore(TokenPage { tokens: tokens.into_iter().map(listed).collect(), next }))
}

async fn identity_by_key(state: &ServerState, request: &TokenRequest) -> Result<Identity, Problem> {
    let mut found = Violations::default();
    let missing = [
        ("owner_id", request.owner_id.is_none()),
        ("agent_id", request.agent_id.is_none()),
        ("agent_key", request.agent_key.is_none()),
    ];
    for (field, _) in missing.into_iter().filter(|(_, missing)| *missing) {
        found.add(field, "is required: this server issues tokens only for an agent's key");
    }
    found.into_result()?;
    let key = request.agent_key.as_deref().unwrap_or_default();
    let (owner, agent) = (request.owner_id.unwrap_or_default(), request.agent_id.unwrap_or_default());
    let agent = state.tenancy.agent_by_key(owner, agent, key).await?;
    let agent = agent.ok_or_else(|| Problem::unauthorized("no agent of this tenant has this id and this key"))?;
    Ok(identity(agent))
}

/// Open mode: a known agent gets its roles, any other id gets all roles. An unknown id that the
/// caller chose is registered, so that it can be listed and changed. The tenant must exist.
async fn open_identity(state: &ServerState, request: &TokenRequest) -> Result<Identity, Problem> {
    let known = match request.owner_id {
        Some(owner_id) => state.tenancy.tenants().await?.iter().any(|tenant| tenant.id == owner_id),
        None => false,
    };
    let owner_id = match request.owner_id {
        Some(owner_id) if known => owner_id,
        Some(RCRT_OWNER) | None => state.tenancy.ensure_tenant(OPEN_TENANT).await?.id,
        Some(_) => return Err(Problem::invalid("owner_id", "is not a tenant id; leave it out for the default tenant")),
    };
    let agent_id = request.agent_id.unwrap_or_else(Uuid::new_v4);
    if let Some(agent) = state.tenancy.agent(owner_id, agent_id).await? {
        return Ok(identity(agent));
    }
    if request.agent_id.is_some() {
        let agent =
            AgentRegistration { roles: Role::ALL.to_vec(), name: None, profile: None, tools: AllowedToolsChange::None };
        match state.tenancy.put_agent(owner_id, None, agent_id, agent).await {
            Ok((agent, _)) => return Ok(identity(agent)),
            // Another tenant has an agent with this id: RCRT's clients use the same few ids
            // everywhere.
            Err(StoreError::Invalid(_)) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(Identity { owner_id, agent_id, roles: Role::ALL.to_vec(), profile: Profile::Main })
}

fn identity(agent: AgentInfo) -> Identity {
    Identity { owner_id: agent.owner_id, agent_id: agent.id, roles: agent.roles, profile: agent.profile }
}
