//! Requests to MCP servers and authorization servers, through the egress gate.

use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream};
use rcrt_breadcrumb::foreign_text::line;
use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, Host, OpError, Redirect};
use rcrt_egress::{Connections, Egress, EgressContext, NetRules, Origin, Vault};
use serde::de::DeserializeOwned;
use tokio::time::timeout;
use url::Url;

use super::{OAuthError, unusable};

/// For one request and its response.
const TIME: Duration = Duration::from_secs(20);
/// The most bytes of a response.
const MAX_BODY: usize = 128 * 1024;

/// How the requests of one MCP server are sent.
#[derive(Clone, Copy)]
pub struct Gate<'a> {
    pub egress: &'a Egress,
    /// The MCP server's name, as in the operator's list of private hosts.
    pub server: &'a str,
    /// The MCP server's URL.
    pub url: &'a Url,
    /// For the egress log.
    pub origin: Option<Origin>,
}

/// A response with a whole body.
pub(super) struct Reply {
    pub status: u16,
    pub body: Vec<u8>,
}

impl Gate<'_> {
    /// Refuses a URL that is less safe than that of the MCP server.
    pub(super) fn check(&self, url: &Url, what: &str) -> Result<(), OAuthError> {
        let is_safe = url.scheme() == "https" || (url.scheme() == "http" && self.url.scheme() == "http");
        let is_plain = url.username().is_empty() && url.password().is_none() && url.fragment().is_none();
        if is_safe && is_plain && url.has_host() {
            return Ok(());
        }
        let shown = line(url.as_str(), 500);
        Err(unusable(format!("{what} is {shown}; it must be an https URL without a user name and a fragment")))
    }

    pub(super) async fn get(&self, url: &Url) -> Result<Reply, OAuthError> {
        let headers = vec![("accept".to_owned(), "application/json".to_owned())];
        self.exchange("GET", url, headers, None).await
    }

    pub(super) async fn post(
        &self,
        url: &Url,
        mut headers: Vec<(String, String)>,
        body: String,
    ) -> Result<Reply, OAuthError> {
        headers.push(("accept".to_owned(), "application/json".to_owned()));
        self.exchange("POST", url, headers, Some(body)).await
    }

    async fn exchange(
        &self,
        method: &str,
        url: &Url,
        headers: Vec<(String, String)>,
        body: Option<String>,
    ) -> Result<Reply, OAuthError> {
        let exchange = async {
            let response = self.send(method, url, headers, body).await?;
            let status = response.status;
            Ok::<_, OAuthError>(Reply { status, body: whole(response.body, url).await? })
        };
        timeout(TIME, exchange).await.unwrap_or_else(|_| Err(late(url)))
    }

    /// Sends a request, and returns the response without its body read. No redirect is followed.
    pub(super) async fn send(
        &self,
        method: &str,
        url: &Url,
        headers: Vec<(String, String)>,
        body: Option<String>,
    ) -> Result<FetchResponse, OAuthError> {
        self.check(url, "a URL of the login")?;
        let host = Host::of(url).zip(url.port_or_known_default());
        let (host, port) = host.ok_or_else(|| unusable("a URL of the login has no host"))?;
        let rules = NetRules::only(host, port);
        // The body of a response is needed as it is, and none of it is shown.
        let (vault, connections) = (Vault::default(), Connections::default());
        let context = EgressContext {
            tool: self.server,
            rules: &rules,
            vault: &vault,
            connections: &connections,
            origin: self.origin,
            observer: None,
        };
        let request =
            FetchRequest { method: method.into(), url: url.as_str().into(), headers, redirect: Redirect::Manual };
        let body = body.map(|text| -> BodyStream { stream::iter([Ok(Bytes::from(text))]).boxed() });
        let sent = timeout(TIME, self.egress.fetch(context, request, body)).await.map_err(|_| late(url))?;
        sent.map_err(|error| failed(&error))
    }
}

fn failed(error: &OpError) -> OAuthError {
    OAuthError::Unreachable(line(&error.message, 500))
}

fn late(url: &Url) -> OAuthError {
    let host = line(url.host_str().unwrap_or_default(), 500);
    OAuthError::Unreachable(format!("{host} did not respond within {} s", TIME.as_secs()))
}

async fn whole(mut body: BodyStream, url: &Url) -> Result<Vec<u8>, OAuthError> {
    let mut read = Vec::new();
    while let Some(piece) = body.next().await {
        read.extend_from_slice(&piece.map_err(|error| failed(&error))?);
        if read.len() > MAX_BODY {
            let host = line(url.host_str().unwrap_or_default(), 500);
            return Err(unusable(format!("the response of {host} has more than {MAX_BODY} bytes")));
        }
    }
    Ok(read)
}

impl Reply {
    /// The error says what it should be, and nothing of the text, which can have a secret.
    pub fn read<T: DeserializeOwned>(&self, what: &str) -> Result<T, OAuthError> {
        serde_json::from_slice(&self.body).map_err(|_| unusable(format!("{what} is not as the standard says")))
    }
}
