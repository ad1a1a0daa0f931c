//! The tokens of one MCP server, as they are stored in a secret.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use rcrt_breadcrumb::MAX_SECRET_BYTES;
use serde::{Deserialize, Serialize};
use url::Url;

use super::client::Client;
use super::discovery::Provider;
use super::issued::Issued;
use super::{Gate, OAuthError, unusable};

/// Tokens are renewed this many seconds before they expire.
const EARLY: i64 = 30;
/// How long one runner has to renew them, in seconds.
const CLAIM: i64 = 60;

/// What a login results in. The client and the tokens belong to the authorization server that
/// issued them, and are sent to no other.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tokens {
    issuer: String,
    token_endpoint: Url,
    /// The resource indicator.
    resource: String,
    client: Client,
    access_token: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    refresh_token: Option<String>,
    /// In seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    expires_at: Option<i64>,
    scopes: Vec<String>,
    /// A runner renews them until then, in seconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    claimed_until: Option<i64>,
}

pub(crate) fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

impl Tokens {
    pub(super) fn new(provider: &Provider, client: &Client, scopes: &[String], issued: Issued) -> Self {
        let tokens = Self {
            issuer: provider.metadata.issuer.clone(),
            token_endpoint: provider.metadata.token_endpoint.clone(),
            resource: provider.resource.clone(),
            client: client.clone(),
            access_token: String::new(),
            refresh_token: None,
            expires_at: None,
            scopes: scopes.to_vec(),
            claimed_until: None,
        };
        tokens.with(issued)
    }

    fn with(&self, issued: Issued) -> Self {
        let lifetime = issued.expires_in.map(|seconds| i64::try_from(seconds).unwrap_or(i64::MAX));
        Self {
            access_token: issued.access_token,
            // A server that issues no new one leaves the old one valid.
            refresh_token: issued.refresh_token.or_else(|| self.refresh_token.clone()),
            expires_at: lifetime.map(|lifetime| now().saturating_add(lifetime)),
            scopes: issued.scope.map_or_else(|| self.scopes.clone(), |text| super::challenge::scopes(&text)),
            claimed_until: None,
            ..self.clone()
        }
    }

    /// Reads the value of a secret.
    pub fn read(value: &str) -> Option<Self> {
        serde_json::from_str(value).ok()
    }

    /// The value of the secret.
    pub fn value(&self) -> Result<String, OAuthError> {
        let value = serde_json::to_string(self).map_err(|_| unusable("the tokens cannot be written"))?;
        if value.len() > MAX_SECRET_BYTES {
            return Err(unusable(format!("the tokens have more than {MAX_SECRET_BYTES} bytes together")));
        }
        Ok(value)
    }

    pub fn access_token(&self) -> &str {
        &self.access_token
    }

    pub fn issuer(&self) -> &str {
        &self.issuer
    }

    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// What must be in no message besides the access token.
    pub(crate) fn other_secrets(&self) -> impl Iterator<Item = &String> {
        self.refresh_token.iter().chain(&self.client.secret)
    }

    /// Whether they were issued for this server.
    pub fn are_for(&self, server: &Url) -> bool {
        Url::parse(&self.resource).is_ok_and(|resource| resource.origin() == server.origin())
    }

    /// In seconds since 1970.
    pub(crate) fn expires_at(&self) -> Option<i64> {
        self.expires_at
    }

    pub(crate) fn need_renewal(&self) -> bool {
        self.expires_at.is_some_and(|at| at.saturating_sub(EARLY) <= now())
    }

    pub(crate) fn can_be_renewed(&self) -> bool {
        self.refresh_token.is_some()
    }

    /// The same without the refresh token.
    pub(crate) fn without_renewal(&self) -> Self {
        Self { refresh_token: None, ..self.clone() }
    }

    pub(crate) fn is_claimed(&self) -> bool {
        self.claimed_until.is_some_and(|until| until > now())
    }

    /// The same while a runner renews them.
    pub(crate) fn claimed(&self) -> Self {
        Self { claimed_until: Some(now() + CLAIM), ..self.clone() }
    }

    /// New tokens for the refresh token. `gate`: of the MCP server.
    pub(crate) async fn renewed(&self, gate: &Gate<'_>) -> Result<Self, OAuthError> {
        let Some(refresh_token) = &self.refresh_token else {
            return Err(unusable("the authorization server issued no refresh token"));
        };
        let form = vec![
            ("grant_type", "refresh_token".to_owned()),
            ("refresh_token", refresh_token.clone()),
            ("resource", self.resource.clone()),
        ];
        Issued::request(gate, &self.token_endpoint, &self.client, form).await.map(|issued| self.with(issued))
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tokens").field("issuer", &self.issuer).field("scopes", &self.scopes).finish_non_exhaustive()
    }
}
