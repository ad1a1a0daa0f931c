//! One login of a person: the authorization code flow with PKCE.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use url::Url;
use uuid::Uuid;

use super::challenge::{Challenge, probe};
use super::client::Client;
use super::discovery::{Provider, discover};
use super::issued::{Issued, known_code};
use super::{Gate, OAuthError, Tokens, unusable};

/// How often a person is asked again because the server wants another scope.
const MAX_ROUNDS: usize = 3;
const OFFLINE: &str = "offline_access";

#[derive(Default)]
pub struct LoginOptions {
    /// The id of a client that is registered at the authorization server.
    pub client_id: Option<String>,
    /// Its secret, if it has one.
    pub client_secret: Option<String>,
    /// An https URL with a document that describes the client. It is used if the server supports
    /// that.
    pub client_metadata: Option<Url>,
    /// The scopes to ask for. If empty, those that the server asks for.
    pub scopes: Vec<String>,
}

/// A login at the authorization server of an MCP server.
pub struct Login<'a> {
    gate: Gate<'a>,
    /// Where the browser is sent afterwards.
    redirect: Url,
    provider: Provider,
    client: Client,
    scopes: Vec<String>,
    rounds: usize,
}

/// What a person has to open, and what the response to it must fit.
pub struct Attempt {
    pub url: Url,
    state: String,
    verifier: String,
}

impl<'a> Login<'a> {
    /// Finds the authorization server, and registers the client if necessary.
    pub async fn begin(gate: Gate<'a>, redirect: Url, options: &LoginOptions) -> Result<Self, OAuthError> {
        if let Some(document) = &options.client_metadata
            && (document.scheme() != "https" || document.path() == "/")
        {
            return Err(unusable("the URL of the client's metadata must be an https URL with a path"));
        }
        let challenge = probe(&gate, None).await?.unwrap_or_default();
        let provider = discover(&gate, &challenge).await?;
        let client = Client::choose(&gate, &provider.metadata, options, &redirect).await?;
        let wanted = [&options.scopes, &challenge.scopes, &provider.scopes];
        let mut scopes = wanted.into_iter().find(|scopes| !scopes.is_empty()).cloned().unwrap_or_default();
        // Without it, some servers issue no refresh token.
        if provider.metadata.scopes_supported.iter().any(|scope| scope == OFFLINE) {
            add(&mut scopes, &[OFFLINE.to_owned()]);
        }
        Ok(Self { gate, redirect, provider, client, scopes, rounds: 0 })
    }

    /// The issuer, who asks the person for consent.
    pub fn issuer(&self) -> String {
        rcrt_breadcrumb::foreign_text::line(&self.provider.metadata.issuer, 500)
    }

    pub fn scopes(&self) -> &[String] {
        &self.scopes
    }

    /// An attempt with its own state and verifier.
    pub fn attempt(&self) -> Attempt {
        let (state, verifier) = (random(), random());
        let challenge = BASE64_URL_SAFE_NO_PAD.encode(Sha256::digest(verifier.as_bytes()));
        let mut url = self.provider.metadata.authorization_endpoint.clone();
        let mut query = url.query_pairs_mut();
        query
            .append_pair("response_type", "code")
            .append_pair("client_id", &self.client.id)
            .append_pair("redirect_uri", self.redirect.as_str())
            .append_pair("state", &state)
            .append_pair("code_challenge", &challenge)
            .append_pair("code_challenge_method", "S256")
            .append_pair("resource", &self.provider.resource);
        if !self.scopes.is_empty() {
            query.append_pair("scope", &self.scopes.join(" "));
        }
        drop(query);
        Attempt { url, state, verifier }
    }

    /// Exchanges the code of a response for tokens. `response`: the URL that the browser was sent
    /// to.
    pub async fn finish(&self, attempt: &Attempt, response: &Url) -> Result<Tokens, OAuthError> {
        if !attempt.is_answered_by(response) {
            return Err(unusable("the response is not that of this login"));
        }
        for name in ["iss", "error", "code"] {
            if response.query_pairs().filter(|(known, _)| known == name).count() > 1 {
                return Err(unusable(format!("the response has {name} more than once")));
            }
        }
        let metadata = &self.provider.metadata;
        match parameter(response, "iss") {
            Some(issuer) if issuer == metadata.issuer => {}
            None if !metadata.authorization_response_iss_parameter_supported => {}
            Some(_) => return Err(unusable("the response comes from another authorization server")),
            None => return Err(unusable("the response does not name its authorization server")),
        }
        if let Some(error) = parameter(response, "error") {
            let code = known_code(&error);
            return Err(code.map_or_else(|| unusable("the authorization server refused the login"), OAuthError::Denied));
        }
        let code = parameter(response, "code").ok_or_else(|| unusable("the response has no code"))?;
        let form = vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code),
            ("redirect_uri", self.redirect.as_str().to_owned()),
            ("code_verifier", attempt.verifier.clone()),
            ("resource", self.provider.resource.clone()),
        ];
        let issued = Issued::request(&self.gate, &metadata.token_endpoint, &self.client, form).await?;
        Ok(Tokens::new(&self.provider, &self.client, &self.scopes, issued))
    }

    /// Whether the server accepts the tokens. `false`: it wants further scopes, and another attempt
    /// asks for them. If it does not stop to, that is an error.
    pub async fn is_accepted(&mut self, tokens: &Tokens) -> Result<bool, OAuthError> {
        let Some(challenge) = probe(&self.gate, Some(tokens.access_token())).await? else { return Ok(true) };
        let Challenge { scopes, is_insufficient_scope, .. } = challenge;
        if !is_insufficient_scope {
            return Err(unusable("the server does not accept the token that its authorization server issued"));
        }
        self.rounds += 1;
        if !add(&mut self.scopes, &scopes) || self.rounds >= MAX_ROUNDS {
            return Err(unusable("the server asks again for scopes that it was given, or for ever more of them"));
        }
        Ok(false)
    }
}

impl Attempt {
    /// Whether a URL that a browser opened is the response to this attempt.
    pub fn is_answered_by(&self, response: &Url) -> bool {
        parameter(response, "state").as_deref() == Some(self.state.as_str())
    }
}

/// Adds what is missing. Returns whether anything was.
fn add(scopes: &mut Vec<String>, more: &[String]) -> bool {
    let before = scopes.len();
    for scope in more {
        if !scopes.contains(scope) {
            scopes.push(scope.clone());
        }
    }
    scopes.len() > before
}

/// 96 characters from a secure source.
fn random() -> String {
    (0..3).map(|_| Uuid::new_v4().simple().to_string()).collect()
}

/// A parameter that occurs once.
fn parameter(url: &Url, name: &str) -> Option<String> {
    let mut found = url.query_pairs().filter(|(known, _)| known == name);
    let (value, next) = (found.next()?.1.into_owned(), found.next());
    next.is_none().then_some(value)
}
