//! The `WWW-Authenticate` header of a server that asks for authorization.

use std::collections::BTreeMap;

use rcrt_breadcrumb::FetchResponse;
use serde_json::json;
use url::Url;

use super::{Gate, OAuthError};

/// The longest header that is read, in bytes.
const MAX_HEADER: usize = 8 * 1024;
const VERSION: &str = "2026-07-28";

/// What a server says to a request without a token, or with one that it does not accept.
#[derive(Debug, Default)]
pub struct Challenge {
    /// Where the metadata of the protected resource is.
    pub metadata: Option<Url>,
    pub scopes: Vec<String>,
    /// It accepts the token, but not for this.
    pub is_insufficient_scope: bool,
}

/// Sends a request that changes nothing, with this access token. `None`: the server does not ask
/// for authorization.
pub async fn probe(gate: &Gate<'_>, token: Option<&str>) -> Result<Option<Challenge>, OAuthError> {
    let prefix = "io.modelcontextprotocol";
    let meta = json!({format!("{prefix}/protocolVersion"): VERSION, format!("{prefix}/clientCapabilities"): {}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}});
    let mut headers: Vec<(String, String)> = [
        ("accept", "application/json, text/event-stream"),
        ("content-type", "application/json"),
        ("mcp-protocol-version", VERSION),
        ("mcp-method", "server/discover"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    headers.extend(token.map(|token| ("authorization".to_owned(), format!("Bearer {token}"))));
    let response = gate.send("POST", gate.url, headers, Some(body.to_string())).await?;
    Ok(match response.status {
        401 | 403 => Some(Challenge::of(&response, gate.url)),
        _ => None,
    })
}

impl Challenge {
    fn of(response: &FetchResponse, url: &Url) -> Self {
        let headers =
            response.headers.iter().filter(|(name, value)| name == "www-authenticate" && value.len() <= MAX_HEADER);
        let parameters = headers.map(|(_, value)| bearer(value)).find(|found| !found.is_empty()).unwrap_or_default();
        let metadata = parameters.get("resource_metadata").and_then(|metadata| url.join(metadata).ok());
        let scopes = parameters.get("scope").map(|text| scopes(text)).unwrap_or_default();
        let is_insufficient_scope =
            response.status == 403 && parameters.get("error").is_some_and(|error| error == "insufficient_scope");
        Self { metadata, scopes, is_insufficient_scope }
    }
}

/// The scopes of a list that is separated by spaces; only those that a URL and a form can have.
pub fn scopes(text: &str) -> Vec<String> {
    let is_scope = |scope: &&str| scope.len() <= 200 && scope.bytes().all(|byte| byte.is_ascii_graphic());
    text.split_ascii_whitespace().filter(is_scope).take(100).map(str::to_owned).collect()
}

/// The parameters of the challenge `Bearer`, by name in lower case.
fn bearer(header: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Some(start) = header.to_ascii_lowercase().find("bearer") else { return found };
    let mut rest = &header[start + "bearer".len()..];
    while let Some((name, after)) = rest.trim_start_matches([' ', '\t', ',']).split_once('=') {
        let name = name.trim();
        // The name of another scheme stands before the parameter.
        if name.is_empty() || name.contains([' ', ',']) {
            break;
        }
        let (value, remaining) = value(after.trim_start());
        found.entry(name.to_ascii_lowercase()).or_insert(value);
        rest = remaining;
    }
    found
}

/// The value at the beginning, and what follows it.
fn value(text: &str) -> (String, &str) {
    let Some(quoted) = text.strip_prefix('"') else {
        let end = text.find([',', ' ', '\t']).unwrap_or(text.len());
        return (text[..end].to_owned(), &text[end..]);
    };
    let mut value = String::new();
    let mut characters = quoted.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return (value, &quoted[at + 1..]),
            '\\' => value.extend(characters.next().map(|(_, escaped)| escaped)),
            other => value.push(other),
        }
    }
    (value, "")
}
