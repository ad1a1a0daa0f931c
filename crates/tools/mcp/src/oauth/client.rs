//! How an authorization server knows this program: an id that a person registered, a document that
//! describes the client (its URL is the id), or dynamic registration (RFC 7591).

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::json;
use url::Url;
use url::form_urlencoded::byte_serialize;

use super::discovery::Metadata;
use super::issued::refusal;
use super::{Gate, LoginOptions, OAuthError, unusable};

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Client {
    pub id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub secret: Option<String>,
    /// Whether the secret is sent in the form, and not in a header.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    is_posted: bool,
}

#[derive(Deserialize)]
struct Registered {
    client_id: String,
    client_secret: Option<String>,
    token_endpoint_auth_method: Option<String>,
}

impl Client {
    pub async fn choose(
        gate: &Gate<'_>,
        metadata: &Metadata,
        options: &LoginOptions,
        redirect: &Url,
    ) -> Result<Self, OAuthError> {
        if let Some(id) = &options.client_id {
            let methods = metadata.token_endpoint_auth_methods_supported.as_deref().unwrap_or_default();
            let has = |name: &str| methods.iter().any(|method| method == name);
            let is_posted = has("client_secret_post") && !has("client_secret_basic");
            return Ok(Self { id: id.clone(), secret: options.client_secret.clone(), is_posted });
        }
        if let Some(document) =
            options.client_metadata.as_ref().filter(|_| metadata.client_id_metadata_document_supported)
        {
            return Ok(Self { id: document.as_str().to_owned(), secret: None, is_posted: false });
        }
        match &metadata.registration_endpoint {
            Some(endpoint) => register(gate, endpoint, redirect).await,
            None => Err(unusable(
                "the authorization server registers no clients by itself; register one there with the redirect URI \
                 http://127.0.0.1:PORT/callback, and name it with --client-id and --port",
            )),
        }
    }

    /// Adds what identifies the client to the form and the headers of a request.
    pub fn identify(&self, form: &mut Vec<(&'static str, String)>) -> Option<(String, String)> {
        let Some(secret) = self.secret.as_ref().filter(|_| !self.is_posted) else {
            form.push(("client_id", self.id.clone()));
            form.extend(self.secret.clone().map(|secret| ("client_secret", secret)));
            return None;
        };
        let encoded = |text: &str| byte_serialize(text.as_bytes()).collect::<String>();
        let pair = BASE64_STANDARD.encode(format!("{}:{}", encoded(&self.id), encoded(secret)));
        Some(("authorization".to_owned(), format!("Basic {pair}")))
    }
}

async fn register(gate: &Gate<'_>, endpoint: &Url, redirect: &Url) -> Result<Client, OAuthError> {
    let request = json!({
        "client_name": "RCRT",
        "redirect_uris": [redirect],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "native",
    });
    let headers = vec![("content-type".to_owned(), "application/json".to_owned())];
    let reply = gate.post(endpoint, headers, request.to_string()).await?;
    if !matches!(reply.status, 200 | 201) {
        return Err(refusal(&reply, "the registration of a client"));
    }
    let registered: Registered = reply.read("the registration of a client")?;
    let is_text =
        |text: &str| (1..=2000).contains(&text.len()) && text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let secret = registered.client_secret.filter(|secret| !secret.is_empty());
    if !is_text(&registered.client_id) || secret.as_deref().is_some_and(|secret| !is_text(secret)) {
        return Err(unusable("the registration of a client is not as the standard says"));
    }
    let is_posted = registered.token_endpoint_auth_method.as_deref() == Some("client_secret_post");
    Ok(Client { id: registered.client_id, secret, is_posted })
}
