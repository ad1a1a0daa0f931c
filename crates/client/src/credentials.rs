//! The client's credentials: a token as it was given, or an agent's key with which tokens are
//! fetched and renewed.

use std::{
    sync::{Mutex, PoisonError},
    time::{Duration, Instant},
};

use breadcrumb::StoreError;
use reqwest::header::HeaderValue;
use uuid::Uuid;

use crate::{Client, TokenRequest};

#[derive(Clone)]
pub enum Credentials {
    /// A token as it is. When it ends, so does the access.
    Token(String),
    /// An agent's key. Tokens are fetched when they are needed and renewed before they end.
    AgentKey { owner_id: Uuid, agent_id: Uuid, key: String },
}

impl std::fmt::Debug for Credentials {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Token(_) => f.write_str("Token"),
            Self::AgentKey { owner_id, agent_id, .. } => f
                .debug_struct("AgentKey")
                .field("owner_id", owner_id)
                .field("agent_id", agent_id)
                .finish_non_exhaustive(),
        }
    }
}

/// The credentials, and the token that they gave last.
pub(crate) struct Tokens {
    credentials: Credentials,
    fetched: Mutex<Option<Fetched>>,
}

#[derive(Clone)]
struct Fetched {
    header: HeaderValue,
    renew_at: Instant,
}

impl Tokens {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self { credentials, fetched: Mutex::new(None) }
    }

    fn fetched(&self) -> Option<Fetched> {
        self.fetched.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Gives up a token that the server refused. True when another one can be had.
    pub(crate) fn refused(&self, header: &HeaderValue) -> bool {
        if matches!(self.credentials, Credentials::Token(_)) {
            return false;
        }
        let mut fetched = self.fetched.lock().unwrap_or_else(PoisonError::into_inner);
        if fetched.as_ref().is_some_and(|fetched| fetched.header == *header) {
            *fetched = None;
        }
        true
    }
}

impl Client {
    /// A token that is good for a while, for other programs.
    pub async fn token(&self) -> Result<String, StoreError> {
        let header = self.authorization().await?;
        let text = header.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        text.map(str::to_owned).ok_or_else(|| StoreError::Internal("the token is no text".into()))
    }

    /// The `Authorization` header with a token that is good for a while.
    pub(crate) async fn authorization(&self) -> Result<HeaderValue, StoreError> {
        let (owner_id, agent_id, key) = match &self.tokens.credentials {
            Credentials::Token(token) => return bearer(token),
            Credentials::AgentKey { owner_id, agent_id, key } => (*owner_id, *agent_id, key.clone()),
        };
        if let Some(fetched) = self.tokens.fetched()
            && Instant::now() < fetched.renew_at
        {
            return Ok(fetched.header);
        }
        // Several calls may fetch at once: each token is good, and no call waits for another's.
        let asked = Instant::now();
        let request = TokenRequest { owner_id, agent_id, agent_key: key, roles: None, profile: None, ttl_sec: None };
        let token = self.request_token(&request).await?;
        let header = bearer(&token.token)?;
        // With a fifth of its time left it is renewed: clocks differ and requests take time.
        let renew_at = asked + Duration::from_secs(token.expires_in).mul_f64(0.8);
        let fetched = Fetched { header: header.clone(), renew_at };
        *self.tokens.fetched.lock().unwrap_or_else(PoisonError::into_inner) = Some(fetched);
        Ok(header)
    }
}

fn bearer(token: &str) -> Result<HeaderValue, StoreError> {
    let mut header = HeaderValue::try_from(format!("Bearer {}", token.trim()))
        .map_err(|_| StoreError::Unauthorized("the token has characters that no token has".into()))?;
    header.set_sensitive(true);
    Ok(header)
}
