//! Tokens that end before they expire.

use breadcrumb::StoreError;
use reqwest::Method;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::{
    Client,
    request::{Request, RetryPolicy},
};

/// Which tokens end. With none of `token`, `jti` and `all`: the one that the request is sent with.
#[derive(Debug, Default, Serialize)]
pub struct Revoke {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jti: Option<Uuid>,
    /// Whose; the caller's own when absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Uuid>,
    /// All that were issued before now.
    pub all: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub struct Revoked {
    pub agent_id: Uuid,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jti: Option<Uuid>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub issued_before: Option<String>,
}

impl Client {
    /// Ends tokens before they expire. Others' are for curators.
    pub async fn revoke_tokens(&self, revoke: &Revoke) -> Result<Revoked, StoreError> {
        // The same again would be sent with a token that is good no more.
        let request = Request::new(Method::POST, &["auth", "revoke"], RetryPolicy::IfNotProcessed).json(revoke)?;
        Ok(self.send(request).await?)
    }
}
