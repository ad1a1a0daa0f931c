//! Finds the authorization server of an MCP server: the metadata of the protected resource (RFC
//! 9728), then that of the authorization server (RFC 8414, or OpenID Connect Discovery).

use rcrt_breadcrumb::foreign_text::line;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use url::Url;

use super::challenge::Challenge;
use super::{Gate, OAuthError, unusable};

/// How many of the authorization servers that a resource names are tried.
const MAX_SERVERS: usize = 3;

/// The metadata of a protected resource.
#[derive(Deserialize)]
struct Resource {
    /// A URL. Requests to the authorization server must have it as it is written here.
    resource: String,
    #[serde(default)]
    authorization_servers: Vec<Url>,
    #[serde(default)]
    scopes_supported: Vec<String>,
}

/// The metadata of an authorization server.
#[derive(Deserialize)]
pub(super) struct Metadata {
    pub issuer: String,
    pub authorization_endpoint: Url,
    pub token_endpoint: Url,
    pub registration_endpoint: Option<Url>,
    #[serde(default)]
    pub scopes_supported: Vec<String>,
    #[serde(default)]
    code_challenge_methods_supported: Vec<String>,
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub client_id_metadata_document_supported: bool,
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: bool,
}

/// An authorization server, for one protected resource.
pub(super) struct Provider {
    pub metadata: Metadata,
    /// The resource indicator (RFC 8707).
    pub resource: String,
    /// All scopes of the resource, if it lists them.
    pub scopes: Vec<String>,
}

/// Reads the metadata, and refuses what is unsafe.
pub(super) async fn discover(gate: &Gate<'_>, challenge: &Challenge) -> Result<Provider, OAuthError> {
    let Some(resource) = resource(gate, challenge).await? else {
        // Before 2025-06-18 an MCP server was its own authorization server.
        let mut issuer = gate.url.clone();
        issuer.set_path("");
        issuer.set_query(None);
        let metadata = authorization_server(gate, &issuer).await?;
        let metadata =
            metadata.ok_or_else(|| unusable("the server publishes no metadata of an authorization server"))?;
        return Ok(Provider { metadata, resource: gate.url.as_str().to_owned(), scopes: Vec::new() });
    };
    if !Url::parse(&resource.resource).is_ok_and(|resource| covers(&resource, gate.url)) {
        let stated = line(&resource.resource, 500);
        return Err(unusable(format!("the server's metadata is that of another resource, {stated}")));
    }
    for issuer in resource.authorization_servers.iter().take(MAX_SERVERS) {
        gate.check(issuer, "the authorization server")?;
        if let Some(metadata) = authorization_server(gate, issuer).await? {
            let scopes = super::challenge::scopes(&resource.scopes_supported.join(" "));
            return Ok(Provider { metadata, resource: resource.resource, scopes });
        }
    }
    Err(unusable("no authorization server that the server names publishes metadata"))
}

async fn resource(gate: &Gate<'_>, challenge: &Challenge) -> Result<Option<Resource>, OAuthError> {
    let what = "the metadata of the server";
    if let Some(named) = &challenge.metadata {
        let found = document(gate, named, what).await?;
        return found.map(Some).ok_or_else(|| unusable("the server has no metadata where it says"));
    }
    for url in well_known(gate.url, "oauth-protected-resource") {
        if let Some(found) = document(gate, &url, what).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

/// Whether the resource is the server, or contains it.
fn covers(resource: &Url, server: &Url) -> bool {
    let prefix = resource.path().trim_end_matches('/');
    let is_below = server.path().strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    resource.origin() == server.origin() && is_below && resource.fragment().is_none()
}

async fn authorization_server(gate: &Gate<'_>, issuer: &Url) -> Result<Option<Metadata>, OAuthError> {
    let mut candidates = well_known(issuer, "oauth-authorization-server");
    candidates.truncate(1);
    candidates.extend(well_known(issuer, "openid-configuration").into_iter().next());
    if issuer.path() != "/" {
        let mut appended = issuer.clone();
        appended.set_path(&format!("{}/.well-known/openid-configuration", issuer.path().trim_end_matches('/')));
        candidates.push(appended);
    }
    for url in candidates {
        if let Some(metadata) = document::<Metadata>(gate, &url, "the metadata of the authorization server").await? {
            check(gate, issuer, &metadata)?;
            return Ok(Some(metadata));
        }
    }
    Ok(None)
}

fn check(gate: &Gate<'_>, issuer: &Url, metadata: &Metadata) -> Result<(), OAuthError> {
    let plain = |text: &str| text.trim_end_matches('/').to_owned();
    if plain(&metadata.issuer) != plain(issuer.as_str()) {
        let (expected, stated) = (line(issuer.as_str(), 500), line(&metadata.issuer, 500));
        return Err(unusable(format!(
            "the metadata of the authorization server {expected} is that of another one, {stated}"
        )));
    }
    if !metadata.code_challenge_methods_supported.iter().any(|method| method == "S256") {
        return Err(unusable("the authorization server does not support PKCE with S256"));
    }
    gate.check(&metadata.authorization_endpoint, "the authorization endpoint")?;
    gate.check(&metadata.token_endpoint, "the token endpoint")?;
    metadata.registration_endpoint.iter().try_for_each(|url| gate.check(url, "the registration endpoint"))
}

/// The well-known URLs of a path and of the host, the more specific one first.
fn well_known(url: &Url, name: &str) -> Vec<Url> {
    let path = url.path().trim_end_matches('/');
    let paths = [format!("/.well-known/{name}{path}"), format!("/.well-known/{name}")];
    let mut found: Vec<Url> = Vec::new();
    for path in paths {
        let mut url = url.clone();
        url.set_path(&path);
        url.set_query(None);
        url.set_fragment(None);
        if !found.contains(&url) {
            found.push(url);
        }
    }
    found
}

/// `None`: there is no document.
async fn document<T: DeserializeOwned>(gate: &Gate<'_>, url: &Url, what: &str) -> Result<Option<T>, OAuthError> {
    gate.check(url, what)?;
    let reply = gate.get(url).await?;
    if reply.status != 200 {
        return Ok(None);
    }
    reply.read(what).map(Some)
}
