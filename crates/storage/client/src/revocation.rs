//! Revocation of tokens before they expire.

use rcrt_breadcrumb::StoreError;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Client,
    request::{Request, RetryPolicy},
};

/// Which tokens to revoke. With none of `token`, `jti` and `all`, the token of the request.
#[derive(Debug, Default, Serialize)]
pub struct Revoke {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jti: Option<Uuid>,
    /// The agent of `jti` or `all`. When absent, the agent of the listed token, or for `all` the
    /// caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Uuid>,
    /// All tokens that were issued before now.
    pub all: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Revoked {
    pub agent_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<Uuid>,
    /// No token with the id `jti` is listed.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unlisted: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_before: Option<String>,
}

impl Client {
    /// Revokes tokens before they expire. Requires a curator for tokens of other agents.
    pub async fn revoke_tokens(&self, revoke: &Revoke) -> Result<Revoked, StoreError> {
        // A repetition could be sent with a token that is already revoked.
        let request = Request::new(Method::POST, &["auth", "revoke"], RetryPolicy::IfNotProcessed).json(revoke)?;
        Ok(self.send(request).await?)
    }
}
