//! Who may call a route. The route table gives every route an [`Access`] and there is no other way to add one, so a
//! handler without a check cannot exist; a handler learns who asks only through [`Caller`].

use std::sync::Arc;

use axum::{
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};
use breadcrumb::{Breadcrumbs, Identity, Role};
use uuid::Uuid;

use crate::{
    AuthMode, ServerState,
    allowance::{Draws, Peer},
    one_header::one_header,
    problem::Problem,
    query::Query,
    token::ProvenToken,
};

/// In whose name a runner acts.
const ACTING_FOR: &str = "x-acting-for";

/// Who may call a route.
#[derive(Debug, Clone, Copy)]
pub enum Access {
    /// Everybody, without a token. Not bounded: whoever looks whether the server is well must not be kept out by others
    /// behind the same address.
    Anyone,
    /// The same, within the allowance of strangers: what can be guessed at, or costs.
    Strangers,
    /// Holders of a token with one of these roles. Curators may everything and are not named.
    Roles(&'static [Role]),
    /// The same, and the token may stand in the query (`?token=`, or RCRT's `?access_token=`): browsers cannot give an event stream a header.
    RolesOrQueryToken(&'static [Role]),
}

impl Access {
    /// The roles that may, curator included; empty when no token is needed.
    pub fn roles(self) -> Vec<Role> {
        match self {
            Self::Anyone | Self::Strangers => Vec::new(),
            Self::Roles(roles) | Self::RolesOrQueryToken(roles) => {
                std::iter::once(Role::Curator).chain(roles.iter().copied()).collect()
            }
        }
    }
}

impl Access {
    /// Which allowance it draws on: runners must get their work done whatever else their agent does.
    fn draws(self) -> Draws {
        match self {
            Self::Roles([Role::Runner]) => Draws::Runner,
            Self::RolesOrQueryToken(_) => Draws::Stream,
            Self::Anyone | Self::Strangers | Self::Roles(_) => Draws::Ordinary,
        }
    }
}

/// Who asks, proven, and the records of its tenant.
#[derive(Clone)]
pub struct Caller {
    pub identity: Identity,
    pub store: Arc<dyn Breadcrumbs>,
    /// When its token ends, in seconds since 1970.
    pub expires_at: u64,
    /// Whether it may act on other tenants than its own.
    pub is_operator: bool,
}

impl Caller {
    /// A runner that acts in another agent's name says so in a header, and sees then what that agent may see.
    fn acting_for(mut self, headers: &HeaderMap) -> Result<Self, Problem> {
        if let Some(text) = one_header(headers, ACTING_FOR)? {
            let agent = Uuid::try_parse(text)
                .map_err(|_| Problem::invalid(ACTING_FOR, "must be the id of an agent of the tenant, a UUID"))?;
            if !self.identity.has(Role::Runner) {
                return Err(Problem::forbidden("only a runner acts in another agent's name"));
            }
            self.store = self.store.acting_for(agent)?;
        }
        Ok(self)
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Problem> {
        parts.extensions.get::<Self>().cloned().ok_or_else(|| {
            tracing::error!("a route that is open to anyone asks who calls it");
            Problem::internal()
        })
    }
}

/// The middleware in front of every route.
pub async fn check(State((state, access)): State<(ServerState, Access)>, mut request: Request, next: Next) -> Response {
    let peer = request.extensions().get::<Peer>().copied();
    if matches!(access, Access::Anyone) {
        return next.run(request).await;
    }
    if matches!(access, Access::Strangers) {
        return match state.allowances.take_from_stranger(peer) {
            Ok(()) => next.run(request).await,
            Err(problem) => problem.into_response(),
        };
    }
    let draws = access.draws();
    // What runs is brought to its end; what is new goes to another server.
    if state.draining.is_cancelled() && draws != Draws::Runner {
        return Problem::draining().into_response();
    }
    let admitted = match token(access, &request) {
        Ok(token) => admit(&state, access, &token).await,
        Err(problem) => Err(problem),
    };
    let caller = match admitted {
        Ok(caller) => caller,
        Err(problem) if problem.is_unauthorized() => {
            return state.allowances.take_from_stranger(peer).err().unwrap_or(problem).into_response();
        }
        Err(problem) => return problem.into_response(),
    };
    let standing = match state.allowances.take(&caller.identity, draws) {
        Ok(standing) => standing,
        Err(problem) => return problem.into_response(),
    };
    match caller.acting_for(request.headers()) {
        Ok(caller) => request.extensions_mut().insert(caller),
        Err(problem) => return problem.into_response(),
    };
    let mut response = next.run(request).await;
    if let Some(standing) = standing {
        standing.tell(response.headers_mut());
    }
    response
}

async fn admit(state: &ServerState, access: Access, token: &str) -> Result<Caller, Problem> {
    let ProvenToken { mut identity, expires_at, is_operator } =
        state.token_key.verify(token).map_err(|error| Problem::unauthorized(error.to_string()))?;
    identity.roles = present_roles(state, &identity).await?;
    let allowed = access.roles();
    if !identity.roles.iter().any(|role| allowed.contains(role)) {
        return Err(Problem::forbidden(format!("this needs one of the roles: {}", names(&allowed))));
    }
    let store = state.tenancy.acting_as(identity.clone());
    let is_operator = is_operator || state.auth == AuthMode::Open;
    Ok(Caller { identity, store, expires_at, is_operator })
}

/// The token's roles as far as the agent still has them. In open mode agents need not exist.
pub async fn present_roles(state: &ServerState, identity: &Identity) -> Result<Vec<Role>, Problem> {
    if state.auth == AuthMode::Open {
        if !state.known_agents.has_tenant(identity.owner_id).await? {
            return Err(Problem::unauthorized("the tenant of this token does not exist any more"));
        }
        return Ok(identity.roles.clone());
    }
    let present = state.known_agents.roles(identity.owner_id, identity.agent_id).await?;
    let present = present.ok_or_else(|| Problem::unauthorized("the agent of this token does not exist any more"))?;
    Ok(identity.roles.iter().copied().filter(|role| present.contains(role)).collect())
}

fn token(access: Access, request: &Request) -> Result<String, Problem> {
    if let Some(value) = request.headers().get(header::AUTHORIZATION) {
        let text = value.to_str().unwrap_or_default();
        let (scheme, token) = text.split_once(' ').unwrap_or((text, ""));
        if !scheme.eq_ignore_ascii_case("bearer") || token.trim().is_empty() {
            return Err(Problem::unauthorized("the Authorization header must read: Bearer <token>"));
        }
        return Ok(token.trim().to_owned());
    }
    if !matches!(access, Access::RolesOrQueryToken(_)) {
        return Err(Problem::token_missing("send the header Authorization: Bearer <token>"));
    }
    let mut query = Query::parse(request.uri().query());
    let (token, access_token) = (query.take("token")?, query.take("access_token")?);
    token
        .or(access_token)
        .ok_or_else(|| Problem::token_missing("send the header Authorization: Bearer <token>, or ?token=<token>"))
}

pub fn names(roles: &[Role]) -> String {
    roles.iter().map(|role| role.as_str()).collect::<Vec<_>>().join(", ")
}
