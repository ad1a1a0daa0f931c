//! Tokens: JWTs signed with HMAC-SHA-256 that say which agent of which tenant asks, with which roles, until when.

use std::time::Duration;

use breadcrumb::{Identity, Profile, Role};
use jsonwebtoken::{Algorithm, Header, Validation};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{ServerError, TokenKey};

/// The fewest bytes of a signing key (the length of the hash, as RFC 7518 asks).
pub const MIN_KEY_BYTES: usize = 32;

/// What a token says, once its signature and its time are proven.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProvenToken {
    pub identity: Identity,
    /// Seconds since 1970.
    pub expires_at: u64,
    /// Good for acting on every tenant, where its agent is a curator.
    pub is_operator: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TokenError {
    #[error("the token has expired")]
    Expired,
    #[error("the token is not one of this server")]
    Forged,
}

#[derive(Serialize, Deserialize)]
struct Claims {
    owner_id: Uuid,
    agent_id: Uuid,
    roles: Vec<Role>,
    /// Tokens that were made before there were profiles have none.
    #[serde(default)]
    profile: Profile,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    operator: bool,
    exp: u64,
    iat: u64,
    jti: Uuid,
}

impl TokenKey {
    /// A token for this identity, good for `ttl` from now.
    pub fn issue(&self, identity: &Identity, ttl: Duration) -> Result<String, ServerError> {
        self.sign(identity, ttl, false)
    }

    /// The same, for who runs the installation: it lists, makes and deletes tenants. No server gives such a token away.
    pub fn issue_for_operator(&self, identity: &Identity, ttl: Duration) -> Result<String, ServerError> {
        self.sign(identity, ttl, true)
    }

    fn sign(&self, identity: &Identity, ttl: Duration, operator: bool) -> Result<String, ServerError> {
        let now = jsonwebtoken::get_current_timestamp();
        let claims = Claims {
            owner_id: identity.owner_id,
            agent_id: identity.agent_id,
            roles: identity.roles.clone(),
            profile: identity.profile,
            operator,
            exp: now.saturating_add(ttl.as_secs()),
            iat: now,
            jti: Uuid::new_v4(),
        };
        let keys = self.keys();
        let Some(key) = keys.first() else { return Err(ServerError::Sign("there is no key".into())) };
        let header = Header { kid: Some(key.id.clone()), ..Header::new(Algorithm::HS256) };
        jsonwebtoken::encode(&header, &claims, &key.encoding).map_err(|error| ServerError::Sign(error.to_string()))
    }

    pub fn verify(&self, token: &str) -> Result<ProvenToken, TokenError> {
        let mut rules = Validation::new(Algorithm::HS256);
        rules.leeway = 0;
        let named = jsonwebtoken::decode_header(token).map_err(|_| TokenError::Forged)?.kid;
        let keys = self.keys_for(named.as_deref());
        // Tokens that were made before keys had ids name none.
        let mut tried = keys.iter().filter(|key| named.as_ref().is_none_or(|id| *id == key.id)).map(|key| {
            jsonwebtoken::decode::<Claims>(token, &key.decoding, &rules).map_err(|error| match error.kind() {
                jsonwebtoken::errors::ErrorKind::ExpiredSignature => TokenError::Expired,
                _ => TokenError::Forged,
            })
        });
        let decided = tried.find(|one| !matches!(one, Err(TokenError::Forged)));
        let claims = decided.unwrap_or(Err(TokenError::Forged))?.claims;
        Ok(ProvenToken {
            identity: Identity {
                owner_id: claims.owner_id,
                agent_id: claims.agent_id,
                roles: claims.roles,
                profile: claims.profile,
            },
            expires_at: claims.exp,
            is_operator: claims.operator,
        })
    }
}
