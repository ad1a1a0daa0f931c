//! Tokens: JWTs signed with HMAC-SHA-256 that have the agent, its tenant, its roles, and the
//! expiry.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use jsonwebtoken::{Algorithm, Header, Validation};
use rcrt_breadcrumb::{Identity, Profile, Role};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ServerError;
use crate::TokenKey;
use crate::auth::token_keys::SigningKey;

/// The least bytes of a signing key (the length of the hash, as RFC 7518 requires).
pub const MIN_KEY_BYTES: usize = 32;

/// The longest validity of a token: 30 days. It becomes invalid earlier if its agent is deleted.
pub const MAX_TTL_SEC: u64 = 30 * 24 * 3600;

/// What a ticket is for. It is accepted for nothing else.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TicketUse {
    #[default]
    Stream,
    SignIn,
}

impl TicketUse {
    /// How long a ticket is valid.
    pub fn time(self) -> Duration {
        match self {
            Self::Stream => Duration::from_secs(30),
            Self::SignIn => Duration::from_mins(10),
        }
    }

    /// Where to get another one.
    pub fn source(self) -> &'static str {
        match self {
            Self::Stream => "get another from POST /events/ticket",
            Self::SignIn => "get another link with `rcrt open`, or a ticket from POST /auth/ticket",
        }
    }
}

/// Identifies a token, for revocations.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenId {
    pub jti: Uuid,
    /// In seconds since 1970, with fractions.
    pub issued_at: f64,
}

/// The content of a token whose signature and time were verified.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedToken {
    pub identity: Identity,
    pub id: TokenId,
    /// Seconds since 1970.
    pub expires_at: u64,
    /// Can act on every tenant if its agent is a curator.
    pub is_operator: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token has expired")]
    Expired,
    #[error("the token was not issued by this server")]
    Forged,
}

/// A ticket whose signature and time were verified. Only the store knows whether it was already
/// used.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedTicket {
    pub id: Uuid,
    /// In seconds since 1970.
    pub expires_at: u64,
    /// The token with which it was requested.
    pub token: VerifiedToken,
}

/// In a ticket: the token with which it was requested.
#[derive(Serialize, Deserialize)]
struct TicketToken {
    jti: Uuid,
    exp: u64,
    #[serde(default)]
    purpose: TicketUse,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    owner_id: Uuid,
    agent_id: Uuid,
    roles: Vec<Role>,
    /// Absent in tokens that were issued before profiles existed.
    #[serde(default)]
    profile: Profile,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    operator: bool,
    exp: u64,
    /// With fractions of a second, for an exact comparison with a revocation. In a ticket: that of
    /// its token.
    iat: f64,
    jti: Uuid,
    /// A ticket can only open one event stream, or sign in once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ticket_of: Option<TicketToken>,
}

impl TokenKey {
    /// A token for this identity, valid for `ttl` from now.
    pub fn issue(&self, identity: &Identity, ttl: Duration) -> Result<String, ServerError> {
        self.sign(identity, ttl, false)
    }

    /// The same for the operator of the installation, who lists, creates and deletes tenants. No
    /// route issues such a token.
    pub fn issue_for_operator(&self, identity: &Identity, ttl: Duration) -> Result<String, ServerError> {
        self.sign(identity, ttl, true)
    }

    fn sign(&self, identity: &Identity, ttl: Duration, operator: bool) -> Result<String, ServerError> {
        let now = now();
        self.encode(&Claims {
            owner_id: identity.owner_id,
            agent_id: identity.agent_id,
            roles: identity.roles.clone(),
            profile: identity.profile,
            operator,
            exp: (now as u64).saturating_add(ttl.as_secs()),
            iat: now,
            jti: Uuid::new_v4(),
            ticket_of: None,
        })
    }

    /// A ticket of this identity, whose token is `id` and expires at `expires_at`.
    pub(crate) fn issue_ticket(
        &self,
        purpose: TicketUse,
        identity: &Identity,
        id: TokenId,
        expires_at: u64,
    ) -> Result<String, ServerError> {
        self.encode(&Claims {
            owner_id: identity.owner_id,
            agent_id: identity.agent_id,
            roles: identity.roles.clone(),
            profile: identity.profile,
            operator: false,
            exp: (now() as u64).saturating_add(purpose.time().as_secs()).min(expires_at),
            iat: id.issued_at,
            jti: Uuid::new_v4(),
            ticket_of: Some(TicketToken { jti: id.jti, exp: expires_at, purpose }),
        })
    }

    fn encode(&self, claims: &Claims) -> Result<String, ServerError> {
        let keys = self.keys();
        let Some(key) = keys.first() else { return Err(ServerError::Sign("no key is loaded".into())) };
        let header = Header { kid: Some(key.id.clone()), ..Header::new(Algorithm::HS256) };
        jsonwebtoken::encode(&header, claims, &key.encoding).map_err(|error| ServerError::Sign(error.to_string()))
    }

    pub fn verify(&self, token: &str) -> Result<VerifiedToken, TokenError> {
        let now = now() as u64;
        if let Some(verified) = self.verified().find(token, &self.keys(), now) {
            return Ok(verified);
        }
        let (claims, keys) = self.decode(token)?;
        if claims.ticket_of.is_some() {
            return Err(TokenError::Forged);
        }
        let (id, expires_at) = (TokenId { jti: claims.jti, issued_at: claims.iat }, claims.exp);
        let verified = claims.verified(id, expires_at);
        self.verified().remember(token, keys, verified.clone(), now);
        Ok(verified)
    }

    pub(crate) fn verify_ticket(&self, purpose: TicketUse, ticket: &str) -> Result<VerifiedTicket, TokenError> {
        let (claims, _) = self.decode(ticket)?;
        let Some(of) = claims.ticket_of.as_ref().filter(|of| of.purpose == purpose) else {
            return Err(TokenError::Forged);
        };
        let (id, expires_at) = (claims.jti, claims.exp);
        let (of, until) = (TokenId { jti: of.jti, issued_at: claims.iat }, of.exp);
        Ok(VerifiedTicket { id, expires_at, token: claims.verified(of, until) })
    }

    /// Also returns the keys with which it was verified.
    fn decode(&self, token: &str) -> Result<(Claims, Arc<Vec<SigningKey>>), TokenError> {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.leeway = 0;
        // RFC 7519 (4.1.4) refuses a token from its `exp` on. Without this it is valid 1 s longer.
        rules.reject_tokens_expiring_in_less_than = 1;
        let named = jsonwebtoken::decode_header(token).map_err(|_| TokenError::Forged)?.kid;
        let keys = self.keys_for(named.as_deref());
        // Tokens that were issued before keys had ids name none.
        let mut tried = keys.iter().filter(|key| named.as_ref().is_none_or(|id| *id == key.id)).map(|key| {
            jsonwebtoken::decode::<Claims>(token, &key.decoding, &rules).map_err(|error| match error.kind() {
                jsonwebtoken::errors::ErrorKind::ExpiredSignature => TokenError::Expired,
                _ => TokenError::Forged,
            })
        });
        let decided = tried.find(|one| !matches!(one, Err(TokenError::Forged)));
        let claims = decided.unwrap_or(Err(TokenError::Forged))?.claims;
        Ok((claims, keys))
    }
}

impl Claims {
    fn verified(self, id: TokenId, expires_at: u64) -> VerifiedToken {
        let Self { owner_id, agent_id, roles, profile, operator, .. } = self;
        VerifiedToken {
            identity: Identity { owner_id, agent_id, roles, profile },
            id,
            expires_at,
            is_operator: operator,
        }
    }
}

/// In seconds since 1970.
fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}
