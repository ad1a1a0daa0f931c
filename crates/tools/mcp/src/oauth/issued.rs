//! The requests to a token endpoint.

use rcrt_breadcrumb::MIN_OPAQUE_BYTES;
use serde::Deserialize;
use serde_json::Value;
use url::Url;
use url::form_urlencoded::Serializer;

use super::client::Client;
use super::gate::Reply;
use super::{Gate, OAuthError, unusable};

/// The longest token, in bytes.
const MAX_TOKEN: usize = 16 * 1024;

/// The codes that can be shown. Another text of the server could have anything in it.
const CODES: [&str; 18] = [
    "access_denied",
    "account_selection_required",
    "consent_required",
    "interaction_required",
    "invalid_client",
    "invalid_client_metadata",
    "invalid_grant",
    "invalid_redirect_uri",
    "invalid_request",
    "invalid_scope",
    "invalid_target",
    "login_required",
    "server_error",
    "temporarily_unavailable",
    "unauthorized_client",
    "unsupported_grant_type",
    "unsupported_response_type",
    "unmet_authentication_requirements",
];

#[derive(Deserialize)]
struct Response {
    access_token: String,
    token_type: String,
    /// Some servers send it as a string.
    expires_in: Option<Value>,
    refresh_token: Option<String>,
    scope: Option<String>,
}

/// What an authorization server issues.
pub(super) struct Issued {
    pub access_token: String,
    pub refresh_token: Option<String>,
    /// In seconds.
    pub expires_in: Option<u64>,
    pub scope: Option<String>,
}

impl Issued {
    pub async fn request(
        gate: &Gate<'_>,
        endpoint: &Url,
        client: &Client,
        mut form: Vec<(&'static str, String)>,
    ) -> Result<Self, OAuthError> {
        let mut headers = vec![("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned())];
        headers.extend(client.identify(&mut form));
        let body = Serializer::new(String::new()).extend_pairs(form).finish();
        let reply = gate.post(endpoint, headers, body).await?;
        if reply.status != 200 {
            return Err(refusal(&reply, "the token endpoint"));
        }
        let what = "the response of the token endpoint";
        let response: Response = reply.read(what)?;
        if !response.token_type.eq_ignore_ascii_case("bearer") {
            return Err(unusable(format!("{what} has a token of another type than Bearer")));
        }
        let tokens = [Some(&response.access_token), response.refresh_token.as_ref()];
        if !tokens.into_iter().flatten().all(|token| is_token(token)) {
            return Err(unusable(format!(
                "{what} has a token that cannot be used; it must have {MIN_OPAQUE_BYTES} to {MAX_TOKEN} visible ASCII \
                 characters"
            )));
        }
        let expires_in = response.expires_in.and_then(|value| match value {
            Value::String(text) => text.parse().ok(),
            value => value.as_u64(),
        });
        let Response { access_token, refresh_token, scope, .. } = response;
        Ok(Self { access_token, refresh_token, expires_in, scope })
    }
}

fn is_token(token: &str) -> bool {
    (MIN_OPAQUE_BYTES..=MAX_TOKEN).contains(&token.len()) && token.bytes().all(|byte| byte.is_ascii_graphic())
}

/// The code, if the standards have it.
pub(super) fn known_code(code: &str) -> Option<&'static str> {
    CODES.into_iter().find(|known| *known == code)
}

/// The error of a response without success.
pub(super) fn refusal(reply: &Reply, what: &str) -> OAuthError {
    let body: Option<Value> = serde_json::from_slice(&reply.body).ok();
    match body.as_ref().and_then(|body| known_code(body.get("error")?.as_str()?)) {
        Some(code) => OAuthError::Denied(code),
        None => unusable(format!("{what} failed: the authorization server responded with HTTP {}", reply.status)),
    }
}
