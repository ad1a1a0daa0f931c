//! The client's credentials: a fixed token, or an agent's key with which tokens are fetched and
//! renewed.

use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rcrt_breadcrumb::StoreError;
use reqwest::header::HeaderValue;
use uuid::Uuid;

use crate::request::RESPONSE_TIMEOUT;
use crate::{Client, TokenRequest};

#[derive(Clone)]
pub enum Credentials {
    /// A fixed token. Access is lost when it expires.
    Token(String),
    /// An agent's key. Tokens are fetched when needed and renewed before they expire.
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

/// The credentials, and the latest token that was fetched with them.
pub(crate) struct Tokens {
    credentials: Credentials,
    ttl_sec: Option<u64>,
    fetched: Mutex<Option<Fetched>>,
    /// Held while a token is fetched: other requests wait for it. The latest failure.
    fetching: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
}

struct Fetched {
    header: HeaderValue,
    renew_at: Instant,
}

impl Tokens {
    pub(crate) fn new(credentials: Credentials) -> Self {
        Self { credentials, ttl_sec: None, fetched: Mutex::default(), fetching: tokio::sync::Mutex::default() }
    }

    /// The header of the latest token, if it has enough validity left.
    fn fetched(&self) -> Option<HeaderValue> {
        self.fetched.lock().as_ref().filter(|fetched| Instant::now() < fetched.renew_at).map(|one| one.header.clone())
    }

    /// Discards a token that the server refused. Returns true if another one can be fetched.
    pub(crate) fn refused(&self, header: &HeaderValue) -> bool {
        if matches!(self.credentials, Credentials::Token(_)) {
            return false;
        }
        let mut fetched = self.fetched.lock();
        if fetched.as_ref().is_some_and(|fetched| fetched.header == *header) {
            *fetched = None;
        }
        true
    }
}

impl Client {
    /// The same client, whose agent's key gets tokens that are valid for so many seconds. By
    /// default the server decides: an hour.
    #[must_use]
    pub fn with_token_ttl(self, seconds: u64) -> Self {
        let tokens = Tokens { ttl_sec: Some(seconds), ..Tokens::new(self.tokens.credentials.clone()) };
        Self { tokens: Arc::new(tokens), ..self }
    }

    /// A token with enough validity left, for other programs.
    pub async fn token(&self) -> Result<String, StoreError> {
        let header = self.authorization().await?;
        let text = header.to_str().ok().and_then(|text| text.strip_prefix("Bearer "));
        text.map(str::to_owned).ok_or_else(|| StoreError::Internal("the token is not valid text".into()))
    }

    /// The `Authorization` header, with a token that has enough validity left.
    pub(crate) async fn authorization(&self) -> Result<HeaderValue, StoreError> {
        let (owner_id, agent_id, key) = match &self.tokens.credentials {
            Credentials::Token(token) => return bearer(token),
            Credentials::AgentKey { owner_id, agent_id, key } => (*owner_id, *agent_id, key.clone()),
        };
        if let Some(header) = self.tokens.fetched() {
            return Ok(header);
        }
        let began = Instant::now();
        let fetching = tokio::time::timeout(self.bounded(RESPONSE_TIMEOUT), self.tokens.fetching.lock());
        let mut failed = fetching.await.map_err(|_| StoreError::Unavailable("no token in time".into()))?;
        if let Some(header) = self.tokens.fetched() {
            return Ok(header);
        }
        if let Some((at, error)) = &*failed
            && *at > began
        {
            return Err(error.clone());
        }
        let ttl_sec = self.tokens.ttl_sec;
        let request = TokenRequest { owner_id, agent_id, agent_key: key, roles: None, profile: None, ttl_sec };
        let fetched = self.fetch_token(&request).await;
        *failed = fetched.as_ref().err().map(|error| (Instant::now(), error.clone()));
        fetched
    }

    async fn fetch_token(&self, request: &TokenRequest) -> Result<HeaderValue, StoreError> {
        let asked = Instant::now();
        let token = self.request_token(request).await?;
        let header = bearer(&token.token)?;
        // Renewed when a fifth of its time is left, because clocks differ and requests take time.
        let renew_at = asked + Duration::from_secs(token.expires_in).mul_f64(0.8);
        *self.tokens.fetched.lock() = Some(Fetched { header: header.clone(), renew_at });
        Ok(header)
    }
}

fn bearer(token: &str) -> Result<HeaderValue, StoreError> {
    let mut header = HeaderValue::try_from(format!("Bearer {}", token.trim()))
        .map_err(|_| StoreError::Unauthorized("the token has characters that are not allowed in a token".into()))?;
    header.set_sensitive(true);
    Ok(header)
}
