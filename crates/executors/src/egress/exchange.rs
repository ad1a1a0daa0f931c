//! One fetch: the first request and every redirect, each through the same checks.

use std::error::Error;

use bytes::Bytes;
use reqwest::header::{self, HeaderMap};
use reqwest::{Method, StatusCode};
use sandbox::{BodyStream, FetchRequest, FetchResponse, OpError, Redirect};
use url::{Position, Url};

use super::body::{self, RequestBody, TooLarge};
use super::host::Host;
use super::resolver::NotDialled;
use super::{Egress, NetRules, headers, type_error};

const MAX_REDIRECTS: usize = 10;

/// Where the next request goes, and what goes with it.
struct Next {
    method: Method,
    url: Url,
    headers: HeaderMap,
    /// What a 307 or 308 would send again.
    replay: Option<Bytes>,
    /// The body was too long to keep: it can be sent this once.
    streamed: bool,
}

impl Egress {
    /// Performs one fetch under the tool's rules. The refusals are `PermissionDenied`, what the fetch standard calls a
    /// network error is a `TypeError`, a body past its limit `ResourceExhausted`.
    pub async fn fetch(
        &self,
        rules: &NetRules,
        request: FetchRequest,
        body: Option<BodyStream>,
    ) -> Result<FetchResponse, OpError> {
        let method = read_method(&request.method)?;
        if body.is_some() && matches!(method, Method::GET | Method::HEAD) {
            return Err(type_error(format!("a {method} request has no body")));
        }
        let (url, headers) = (read_url(&request.url)?, headers::read(&request.headers)?);
        let mut next = Next { method, url, headers, replay: None, streamed: false };
        // Before the body is touched: nothing of a refused request is worth reading.
        self.admit(rules, &next.url)?;

        let mut sent = match body {
            None => None,
            Some(stream) => Some(RequestBody::read(stream, self.options.max_replay_bytes).await?),
        };
        let mut redirects = 0;
        loop {
            let client = self.admit(rules, &next.url)?;
            let response = self.send(client, &mut next, sent.take()).await?;
            let Some(location) = redirect_target(&response, &next.url)? else {
                return Ok(self.answer(response, redirects > 0));
            };
            match request.redirect {
                Redirect::Manual => return Ok(self.answer(response, redirects > 0)),
                Redirect::Error => {
                    return Err(type_error(format!(
                        "{} redirects, and redirect is \"error\"",
                        without_query(&next.url)
                    )));
                }
                Redirect::Follow => {}
            }
            redirects += 1;
            if redirects > MAX_REDIRECTS {
                return Err(type_error(format!("more than {MAX_REDIRECTS} redirects")));
            }
            sent = redirected(&mut next, response.status(), location)?.map(RequestBody::Whole);
        }
    }

    /// The client for this URL, if the tool may go there. Asks no name server: that is done by the client's resolver,
    /// which checks the addresses.
    fn admit(&self, rules: &NetRules, url: &Url) -> Result<&reqwest::Client, OpError> {
        let host = Host::of(url).ok_or_else(|| type_error(format!("{url} has no host that can be looked up")))?;
        let port = url.port_or_known_default().unwrap_or_default();
        let denied = |message: String| OpError::new("PermissionDenied", message);
        rules.check(&host, port).map_err(denied)?;
        if self
            .options
            .allowed_private
            .iter()
            .any(|allowed| allowed.covers(&host) && allowed.port.is_none_or(|p| p == port))
        {
            return Ok(&self.private);
        }
        if let Host::Address(address) = host
            && let Some(purpose) = super::special_purpose(address)
        {
            return Err(denied(format!("{address} is a non-public address ({purpose})")));
        }
        Ok(&self.public)
    }

    async fn send(
        &self,
        client: &reqwest::Client,
        next: &mut Next,
        body: Option<RequestBody>,
    ) -> Result<reqwest::Response, OpError> {
        let limit = self.options.max_request_bytes;
        let exceeded = TooLarge::default();
        let mut builder = client.request(next.method.clone(), next.url.clone()).headers(next.headers.clone());
        (next.replay, next.streamed) = (None, false);
        match body {
            None => {}
            Some(RequestBody::Whole(bytes)) if bytes.len() as u64 > limit => {
                return Err(body::too_large("request body", limit));
            }
            Some(RequestBody::Whole(bytes)) => {
                next.replay = Some(bytes.clone());
                builder = builder.body(bytes);
            }
            Some(RequestBody::Streamed(stream)) => {
                next.streamed = true;
                builder = builder.body(body::outgoing(stream, limit, exceeded.clone()));
            }
        }
        builder.send().await.map_err(|error| {
            if exceeded.is_set() {
                return body::too_large("request body", limit);
            }
            match refusal(&error) {
                Some(refused @ NotDialled::NonPublic { .. }) => OpError::new("PermissionDenied", refused.to_string()),
                Some(unresolved) => type_error(unresolved.to_string()),
                None => type_error(format!("{} {}: {}", next.method, without_query(&next.url), sentence(&error))),
            }
        })
    }

    fn answer(&self, response: reqwest::Response, redirected: bool) -> FetchResponse {
        let mut url = response.url().clone();
        url.set_fragment(None);
        FetchResponse {
            status: response.status().as_u16(),
            status_text: response.status().canonical_reason().unwrap_or_default().to_owned(),
            headers: headers::write(response.headers()),
            url: url.into(),
            redirected,
            body: body::incoming(response, self.options.max_response_bytes),
        }
    }
}

fn read_method(text: &str) -> Result<Method, OpError> {
    let upper = text.to_ascii_uppercase();
    // The fetch standard writes these in upper case and leaves others as they are.
    let text = if matches!(upper.as_str(), "DELETE" | "GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "PATCH") {
        &upper
    } else {
        text
    };
    if matches!(upper.as_str(), "CONNECT" | "TRACE" | "TRACK") {
        return Err(type_error(format!("the method {upper} is forbidden")));
    }
    Method::from_bytes(text.as_bytes()).map_err(|_| type_error(format!("{text:?} is no HTTP method")))
}

fn read_url(text: &str) -> Result<Url, OpError> {
    let url = Url::parse(text).map_err(|error| type_error(format!("{text:?} is no absolute URL: {error}")))?;
    canonical(url)
}

/// The URL with its host in the one spelling that is checked, looked up and dialled.
fn canonical(mut url: Url) -> Result<Url, OpError> {
    if !matches!(url.scheme(), "http" | "https") {
        return Err(type_error(format!("the scheme {:?} cannot be fetched; use http or https", url.scheme())));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err(type_error("a URL with a user name or password cannot be fetched; use the Authorization header"));
    }
    let host = Host::of(&url).ok_or_else(|| type_error("the URL's host is no host name"))?;
    url.set_host(Some(&host.to_string())).map_err(|error| type_error(format!("the URL's host: {error}")))?;
    url.set_fragment(None);
    Ok(url)
}

/// The target, if the answer is a redirect that names one.
fn redirect_target(response: &reqwest::Response, from: &Url) -> Result<Option<Url>, OpError> {
    if !matches!(response.status().as_u16(), 301 | 302 | 303 | 307 | 308) {
        return Ok(None);
    }
    let Some(location) = response.headers().get(header::LOCATION) else {
        return Ok(None);
    };
    let location = String::from_utf8_lossy(location.as_bytes());
    let target = from.join(&location).map_err(|error| type_error(format!("redirect to {location:?}: {error}")))?;
    canonical(target).map(Some)
}

/// Turns the request into the one that follows the redirect; gives the body to send again.
fn redirected(next: &mut Next, status: StatusCode, target: Url) -> Result<Option<Bytes>, OpError> {
    let becomes_get = match status.as_u16() {
        303 => !matches!(next.method, Method::GET | Method::HEAD),
        301 | 302 => next.method == Method::POST,
        _ => false,
    };
    if becomes_get {
        next.method = Method::GET;
        next.replay = None;
        headers::drop_body_fields(&mut next.headers);
    } else if next.streamed {
        return Err(type_error("a redirect asks for the request's body again, and it was too long to keep"));
    }
    if target.origin() != next.url.origin() {
        headers::drop_credentials(&mut next.headers);
    }
    next.url = target;
    Ok(next.replay.clone())
}

fn refusal(error: &reqwest::Error) -> Option<NotDialled> {
    causes(error).find_map(|cause| cause.downcast_ref::<NotDialled>().cloned())
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
}

/// A client error in words: the innermost cause says most, and the URL (its query may hold a key) is left out.
pub(super) fn sentence(error: &reqwest::Error) -> String {
    let what = if error.is_connect() {
        "cannot connect"
    } else if error.is_timeout() {
        "timed out"
    } else {
        "the exchange failed"
    };
    match causes(error).skip(1).last() {
        Some(cause) => format!("{what}: {cause}"),
        None => what.to_owned(),
    }
}

fn without_query(url: &Url) -> &str {
    &url[..Position::AfterPath]
}
