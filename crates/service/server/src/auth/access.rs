//! Who can call a route. The route table gives every route an [`Access`] and there is no other way
//! to add one, so a handler without a check cannot exist. A handler learns the caller only through
//! [`Caller`].

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use chrono::DateTime;
use rcrt_breadcrumb::{Breadcrumbs, Identity, Profile, Role, StoreError};
use uuid::Uuid;

use crate::AuthMode;
use crate::ServerState;
use crate::auth::token::{TicketUse, TokenError, TokenId, VerifiedTicket, VerifiedToken};
use crate::http::connections::ConnectionPermit;
use crate::http::guarded_body;
use crate::http::headers::one_header;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::rate_limit::{Peer, RateClass};

/// The agent on whose behalf a runner acts.
const ON_BEHALF_OF: &str = "x-acting-for";

/// Who can call a route.
#[derive(Debug, Clone, Copy)]
pub enum Access {
    /// Every caller, without a token. Such requests have their own rate limit per address, so that
    /// callers that try tokens cannot block health checks from the same address.
    Anyone,
    /// Every caller, within the rate limit of unauthenticated callers: for routes where guessing is
    /// possible or that are expensive.
    Unauthenticated,
    /// Holders of a token with one of these roles. Curators are always allowed and are not listed.
    Roles(&'static [Role]),
    /// The same, but a ticket (`?ticket=`) can replace the token: browsers cannot set a header for
    /// an event stream. With `rcrt_compat` the token itself is accepted too (`?token=`,
    /// `?access_token=`).
    RolesOrTicket(&'static [Role]),
}

impl Access {
    /// The allowed roles, including curator. Empty if no token is needed.
    pub fn roles(self) -> Vec<Role> {
        match self {
            Self::Anyone | Self::Unauthenticated => Vec::new(),
            Self::Roles(roles) | Self::RolesOrTicket(roles) => {
                std::iter::once(Role::Curator).chain(roles.iter().copied()).collect()
            }
        }
    }

    /// An error if the agent has none of the allowed roles.
    pub fn check(self, identity: &Identity) -> Result<(), StoreError> {
        let allowed = match self {
            Self::Anyone | Self::Unauthenticated => &[],
            Self::Roles(roles) | Self::RolesOrTicket(roles) => roles,
        };
        if identity.roles.iter().any(|role| *role == Role::Curator || allowed.contains(role)) {
            return Ok(());
        }
        Err(StoreError::Forbidden(format!("this requires one of the roles: {}", role_names(&self.roles()))))
    }

    /// The rate limit that applies. Runners have their own, so that other requests of their agent
    /// cannot block them.
    fn rate_class(self) -> RateClass {
        match self {
            Self::Roles([Role::Runner]) => RateClass::Runner,
            Self::RolesOrTicket(_) => RateClass::Stream,
            Self::Anyone | Self::Unauthenticated | Self::Roles(_) => RateClass::Ordinary,
        }
    }
}

/// The authenticated caller, and the records of its tenant.
#[derive(Clone)]
pub struct Caller {
    pub identity: Identity,
    pub store: Arc<dyn Breadcrumbs>,
    /// The caller's token. For a ticket, the token with which it was requested.
    pub token: TokenId,
    /// When that token expires, in seconds since 1970.
    pub expires_at: u64,
    /// Whether it can act on other tenants.
    pub is_operator: bool,
    /// The tenant's own quota of concurrent requests.
    pub max_requests: Option<u64>,
}

impl Caller {
    /// A ticket with the rights of the caller's token.
    pub(crate) fn ticket(&self, state: &ServerState, purpose: TicketUse) -> Result<String, Problem> {
        state.token_key.issue_ticket(purpose, &self.identity, self.token, self.expires_at).map_err(|error| {
            tracing::error!(%error, "a ticket cannot be signed");
            Problem::internal()
        })
    }

    /// A runner names the agent on whose behalf it acts in a header, and then sees what that agent
    /// can see.
    fn on_behalf_of(mut self, headers: &HeaderMap) -> Result<Self, Problem> {
        if let Some(text) = one_header(headers, ON_BEHALF_OF)? {
            let agent = Uuid::try_parse(text)
                .map_err(|_| Problem::invalid(ON_BEHALF_OF, "must be the id of an agent of the tenant, a UUID"))?;
            if !self.identity.has(Role::Runner) {
                return Err(Problem::forbidden("only a runner can act on behalf of another agent"));
            }
            self.store = self.store.on_behalf_of(agent)?;
        }
        Ok(self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            tracing::error!("a route without authentication reads its caller");
            Problem::internal()
        })
    }
}

/// The middleware in front of every route.
pub async fn check(State((state, access)): State<(ServerState, Access)>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    if let Access::Anyone | Access::Unauthenticated = access {
        let taken = match access {
            Access::Anyone => state.rate_limiter.take_probe(peer),
            _ => state.rate_limiter.take_unauthenticated(peer),
        };
        return match taken {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        };
    }
    let rate_class = access.rate_class();
    // Runners finish their calls, and callers read the responses. New work goes to another server.
    let is_read = request.method().is_safe();
    if state.draining.is_cancelled() && rate_class != RateClass::Runner && !is_read {
        return Problem::draining().into_response();
    }
    let admitted = match credential(&state, access, &request) {
        Ok(Credential::Token(token)) => authenticate_token(&state, access, &token).await,
        Ok(Credential::Ticket(ticket)) => redeem(&state, access, TicketUse::Stream, &ticket).await,
        Err(problem) => Err(problem),
    };
    let caller = match admitted {
        Ok(caller) => caller,
        Err(problem) if problem.is_unauthorized() => {
            return state.rate_limiter.take_unauthenticated(peer).err().unwrap_or(problem).into_response();
        }
        Err(problem) => return problem.into_response(),
    };
    let limit_status = match state.rate_limiter.take(&caller.identity, rate_class) {
        Ok(limit_status) => limit_status,
        Err(problem) => return problem.into_response(),
    };
    let counted = match rate_class {
        // Other requests of the tenant must not block its runners.
        RateClass::Runner => None,
        RateClass::Ordinary | RateClass::Stream => {
            match state.concurrency_limit.acquire(caller.identity.owner_id, caller.max_requests) {
                Ok(counted) => Some(counted),
                Err(problem) => return problem.into_response(),
            }
        }
    };
    let at_work = request.extensions_mut().remove::<Arc<ConnectionPermit>>().map(|permit| permit.begin_request());
    match caller.on_behalf_of(request.headers()) {
        Ok(caller) => request.extensions_mut().insert(caller),
        Err(problem) => return problem.into_response(),
    };
    let mut response = next.run(request).await;
    if let Some(limit_status) = limit_status {
        limit_status.write_to(response.headers_mut());
    }
    guarded_body::attach(response, (counted, at_work))
}

async fn authenticate_token(state: &ServerState, access: Access, token: &str) -> Result<Caller, Problem> {
    let verified = state.token_key.verify(token).map_err(|error| Problem::unauthorized(error.to_string()))?;
    authorize(state, access, verified).await
}

/// Redeems a ticket, which is valid once.
pub async fn redeem(state: &ServerState, access: Access, purpose: TicketUse, ticket: &str) -> Result<Caller, Problem> {
    let another = purpose.source();
    let refused = |error| match error {
        TokenError::Expired => Problem::unauthorized(format!("the ticket has expired; {another}")),
        TokenError::Forged => Problem::unauthorized(format!("the ticket was not issued by this server; {another}")),
    };
    let VerifiedTicket { id, expires_at, token } = state.token_key.verify_ticket(purpose, ticket).map_err(refused)?;
    let caller = authorize(state, access, token).await?;
    let until = i64::try_from(expires_at).ok().and_then(|seconds| DateTime::from_timestamp(seconds, 0));
    if !state.tenancy.use_ticket(caller.identity.owner_id, id, until.unwrap_or_default()).await? {
        return Err(Problem::unauthorized(format!("the ticket was already used; {another}")));
    }
    Ok(caller)
}

async fn authorize(state: &ServerState, access: Access, verified: VerifiedToken) -> Result<Caller, Problem> {
    let VerifiedToken { identity, id: token, expires_at, is_operator } = verified;
    let (current, max_requests) = current_identity(state, &identity, token).await?;
    // Also if the route refuses it: a leaked token may be tried on any.
    state.token_uses.used(&identity, token, expires_at);
    let identity = current;
    access.check(&identity)?;
    let store = state.tenancy.acting_as(identity.clone());
    let is_operator = is_operator || state.auth == AuthMode::Open;
    Ok(Caller { identity, store, token, expires_at, is_operator, max_requests })
}

/// Whether this is an operator's token, which gives access to the data of all tenants. An error if
/// it is not a valid token of any agent.
pub async fn is_operator_token(state: &ServerState, token: &str) -> Result<bool, Problem> {
    match authenticate_token(state, Access::Roles(&[]), token).await {
        Ok(caller) => Ok(caller.is_operator),
        Err(problem) if problem.is_unauthorized() => Err(problem),
        // No curator, or the database cannot be reached.
        Err(_) => Ok(false),
    }
}

/// The token's identity as it applies now: with the roles that the agent still has, and with the
/// agent's profile if that is restricted. Also the tenant's own quota of concurrent requests. In
/// open mode the agent need not exist.
pub async fn current_identity(
    state: &ServerState,
    identity: &Identity,
    token: TokenId,
) -> Result<(Identity, Option<u64>), Problem> {
    let status = state.agent_cache.agent_status(identity.owner_id, identity.agent_id).await?;
    if status.has_revoked(token.jti, token.issued_at) {
        return Err(Problem::unauthorized("the token was revoked"));
    }
    if state.auth == AuthMode::Open {
        if !state.agent_cache.has_tenant(identity.owner_id).await? {
            return Err(Problem::unauthorized("the tenant of this token no longer exists"));
        }
    } else if status.agent.is_none() {
        return Err(Problem::unauthorized("the agent of this token no longer exists"));
    }
    let mut current = identity.clone();
    if let Some(present) = &status.agent {
        if state.auth == AuthMode::Keys {
            current.roles.retain(|role| present.roles.contains(role));
        }
        // A restricted profile that the agent got later. Two of them cannot both apply.
        match (present.profile, current.profile) {
            (Profile::Main, _) => {}
            (now, Profile::Main) => current.profile = now,
            (now, issued) if now == issued => {}
            (now, issued) => {
                return Err(Problem::unauthorized(format!(
                    "the token has the profile {issued}, and its agent now has {now}; get a new token"
                )));
            }
        }
    }
    Ok((current, status.max_requests))
}

enum Credential {
    Token(String),
    Ticket(String),
}

/// The token of an `Authorization` header.
pub fn bearer(headers: &HeaderMap) -> Result<Option<&str>, Problem> {
    let Some(value) = headers.get(header::AUTHORIZATION) else { return Ok(None) };
    let text = value.to_str().unwrap_or_default();
    let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
    if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
        return Err(Problem::unauthorized("the Authorization header must be: Bearer <token>"));
    }
    Ok(Some(token.trim()))
}

fn credential(state: &ServerState, access: Access, request: &Request) -> Result<Credential, Problem> {
    let bearer = bearer(request.headers())?;
    let in_query = matches!(access, Access::RolesOrTicket(_));
    if !in_query {
        let bearer = bearer.ok_or_else(|| Problem::token_missing("send the header Authorization: Bearer <token>"));
        return Ok(Credential::Token(bearer?.to_owned()));
    }
    let mut query = Query::parse(request.uri().query());
    let (token, access_token) = (query.take("token")?, query.take("access_token")?);
    let token = token.or(access_token);
    if token.is_some() && !state.rcrt_compat {
        return Err(Problem::unauthorized(
            "a token is not accepted in a URL, because logs contain URLs: get a one-time ticket from POST /events/ticket \
             and send ?ticket=<ticket>, or send the header Authorization: Bearer <token>",
        ));
    }
    if let Some(token) = bearer.map(str::to_owned).or(token) {
        return Ok(Credential::Token(token));
    }
    let missing =
        "send the header Authorization: Bearer <token>, or ?ticket=<ticket> with a ticket from POST /events/ticket";
    Ok(Credential::Ticket(query.take("ticket")?.ok_or_else(|| Problem::token_missing(missing))?))
}

pub fn role_names(roles: &[Role]) -> String {
    roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}
