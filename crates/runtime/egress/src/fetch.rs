//! One fetch: the first request and every redirect. Each passes the same checks, and the connection
//! is made here.

use std::error::Error;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, Host, OpError, Redirect};
use reqwest::header::{self, HeaderMap};
use reqwest::{Method, StatusCode};
use tokio::time::Instant;
use url::{Position, Url};

use super::address_check::{AddressScope, DialError, check_addresses};
use super::body::{self, RequestBody, TooLarge};
use super::decoding::{self, Encoding};
use super::log::EgressLogEntry;
use super::rules::with_port;
use super::target::{read_url, redirect_target};
use super::{Egress, EgressContext, EgressOptions, NetRules, headers, secrets, span, type_error};
use crate::Vault;
use crate::vault::Destination;

const MAX_REDIRECTS: usize = 10;
/// How often upload progress is checked within `head_timeout`.
const LOOKS: u32 = 8;

/// The next request: where it goes and what it contains.
struct Next {
    method: Method,
    url: Url,
    headers: HeaderMap,
    /// The body that a 307 or 308 would send again.
    replay: Option<Bytes>,
    /// The body was too long to buffer and can be sent only once.
    streamed: bool,
}

/// A permitted target, and the client for it.
struct PermittedTarget {
    client: reqwest::Client,
    host: Host,
    port: u16,
    /// The data cannot be read on the network path: https, or a private host that the operator
    /// allowed.
    is_private: bool,
}

impl PermittedTarget {
    fn destination(&self) -> Destination<'_> {
        Destination { host: &self.host, port: self.port, is_private: self.is_private }
    }
}

impl Egress {
    /// Performs one fetch under its tool's rules. Refusals are `PermissionDenied`. What the fetch
    /// standard calls a network error is a `TypeError`, and so is a timeout. What exceeds a limit
    /// is `ResourceExhausted`. If a check fails, nothing is sent.
    pub async fn fetch(
        &self,
        context: EgressContext<'_>,
        request: FetchRequest,
        body: Option<BodyStream>,
    ) -> Result<FetchResponse, OpError> {
        self.fetch_following(context, request, body, MAX_REDIRECTS).await
    }

    /// The same with a lower limit on redirects.
    pub async fn fetch_following(
        &self,
        context: EgressContext<'_>,
        request: FetchRequest,
        body: Option<BodyStream>,
        most_redirects: usize,
    ) -> Result<FetchResponse, OpError> {
        let (attributes, method) = (span::attributes(&request), span::method(&request));
        // Boxed, because the caller's future contains this one.
        let exchange = Box::pin(self.within_time(context, request, body, most_redirects));
        span::within(attributes, method, exchange).await
    }

    async fn within_time(
        &self,
        context: EgressContext<'_>,
        request: FetchRequest,
        body: Option<BodyStream>,
        most_redirects: usize,
    ) -> Result<FetchResponse, OpError> {
        let ends = Instant::now() + self.options.total_timeout;
        let late = |_| type_error(format!("the fetch took longer than {} s", self.options.total_timeout.as_secs()));
        let answer =
            tokio::time::timeout_at(ends, self.follow(context, request, body, most_redirects.min(MAX_REDIRECTS), ends))
                .await
                .map_err(late);
        // A client's error can quote the server, so it is redacted.
        answer.flatten().map_err(|error| context.vault.inward().refusal(error))
    }

    async fn follow(
        &self,
        context: EgressContext<'_>,
        request: FetchRequest,
        body: Option<BodyStream>,
        most_redirects: usize,
        ends: Instant,
    ) -> Result<FetchResponse, OpError> {
        let method = read_method(&request.method)?;
        if body.is_some() && matches!(method, Method::GET | Method::HEAD) {
            return Err(type_error(format!("a {method} request cannot have a body")));
        }
        let (url, mut headers) = (read_url(&request.url)?, headers::read(&request.headers, &self.options)?);
        secrets::request_plain_body(context.vault, &mut headers);
        let mut next = Next { method, url, headers, replay: None, streamed: false };
        let mut log_entry = self.log_entry(context, &next.method, &next.url)?;
        // Checked before the body is read: a refused request needs no body.
        let mut admitted = log_entry.note(self.admit(context, &next.url))?;
        let filled =
            secrets::fill(context.vault, &admitted.destination(), &next.method, &next.url, &next.headers, None);
        log_entry.note(filled)?;

        let mut held = context.connections.held(self);
        let mut sent = match body {
            None => None,
            // A body with a handle is buffered so that the handle can be replaced.
            Some(stream) if context.vault.hides() => {
                Some(RequestBody::read_whole(stream, self.options.max_request_bytes, &mut held).await?)
            }
            Some(stream) => Some(RequestBody::read(stream, self.options.max_replay_bytes, &mut held).await?),
        };
        let mut redirects = 0;
        loop {
            let response = self.send(context, &admitted, &mut next, sent.take(), log_entry.out()).await;
            let response = log_entry.note(response)?;
            let status = response.status();
            log_entry.answered(status);
            headers::check_answer(response.headers(), &self.options)?;
            let is_redirect = matches!(status.as_u16(), 301 | 302 | 303 | 307 | 308);
            if !is_redirect || request.redirect == Redirect::Manual {
                return self.answer(context, response, next.url, redirects > 0, (ends, log_entry)).await;
            }
            let Some(target) = redirect_target(response.headers(), &next.url)? else {
                return self.answer(context, response, next.url, redirects > 0, (ends, log_entry)).await;
            };
            if request.redirect == Redirect::Error {
                let from = without_query(&next.url);
                return Err(type_error(format!("{from} redirects, but redirect is \"error\"")));
            }
            redirects += 1;
            if redirects > most_redirects {
                return Err(type_error(format!("more than {most_redirects} redirects")));
            }
            // The body of a redirect is not read.
            drop(response);
            log_entry = self.log_entry(context, &method_after(status, &next.method), &target)?;
            admitted = log_entry.note(self.admit(context, &target))?;
            log_entry.note(context.vault.refuse_target_with_value(&target, &admitted.destination()))?;
            let replayed = redirected(context.vault, &mut next, status, target);
            sent = log_entry.note(replayed)?.map(RequestBody::Whole);
        }
    }

    fn log_entry(&self, context: EgressContext<'_>, method: &Method, url: &Url) -> Result<EgressLogEntry, OpError> {
        let log_entry = EgressLogEntry::begin(self.options.log.as_ref(), context, (method, url));
        log_entry.ok_or_else(|| type_error("the URL has no host and port to connect to"))
    }

    /// The client for this URL, if the tool can reach it. No name is resolved here: the client's
    /// resolver does that and checks the addresses.
    fn admit(&self, context: EgressContext<'_>, url: &Url) -> Result<PermittedTarget, OpError> {
        let host = Host::of(url).ok_or_else(|| type_error("the URL has no host that can be resolved"))?;
        let port = url.port_or_known_default().ok_or_else(|| type_error("the URL has no port"))?;
        if self.options.denied.iter().any(|rule| rule.denies(&host)) {
            return Err(OpError::new("PermissionDenied", format!("the operator denies requests to {host}")));
        }
        let mut named = self.options.allowed_private.iter().filter(|allowed| allowed.allows(context.tool, &host, port));
        // A tool with unrestricted access lists no ports, so the operator's entry opens one that is
        // not a web port.
        let is_opened =
            *context.rules == NetRules::EveryHost && named.clone().any(|allowed| allowed.entry.port.is_some());
        let is_inside = named.next().is_some();
        let reach = if is_inside { AddressScope::Private } else { AddressScope::Public };
        let check_rules = || {
            let checked = if is_opened { Ok(()) } else { context.rules.check(&host, port) };
            checked.map_err(|message| OpError::new("PermissionDenied", message))
        };
        let check_address = || match host {
            Host::Address(address) if !is_inside => self.check_literal(context.tool, address, &host, port),
            _ => Ok(()),
        };
        // Of two refusals, the caller gets the one that the operator's option for both removes.
        if *context.rules == NetRules::EveryHost {
            check_address()?;
            check_rules()?;
        } else {
            check_rules()?;
            check_address()?;
        }
        let client = context.connections.client(self, reach)?;
        Ok(PermittedTarget { client, host, port, is_private: is_inside || url.scheme() == "https" })
    }

    fn check_literal(&self, tool: &str, address: IpAddr, host: &Host, port: u16) -> Result<(), OpError> {
        let EgressOptions { interfaces, denied, .. } = &self.options;
        let name = host.to_string();
        check_addresses(&name, &[address], AddressScope::Public, interfaces.as_ref(), denied)
            .map_err(|refused| dial_error(&refused, tool, host, port))
    }

    async fn send(
        &self,
        context: EgressContext<'_>,
        admitted: &PermittedTarget,
        next: &mut Next,
        body: Option<RequestBody>,
        out: &Arc<AtomicU64>,
    ) -> Result<reqwest::Response, OpError> {
        let limit = self.options.max_request_bytes;
        let exceeded = TooLarge::default();
        let (whole, streamed) = match body {
            None => (None, None),
            Some(RequestBody::Whole(bytes)) => (Some(bytes), None),
            Some(RequestBody::Streamed(stream)) => (None, Some(stream)),
        };
        // The body with its handles, because the next host can differ from the one it is filled for
        // now.
        (next.replay, next.streamed) = (whole.clone(), streamed.is_some());
        let filled =
            secrets::fill(context.vault, &admitted.destination(), &next.method, &next.url, &next.headers, whole)?;
        if filled.body.as_ref().is_some_and(|bytes| bytes.len() as u64 > limit) {
            return Err(body::too_large("request body", limit));
        }
        let mut builder = admitted
            .client
            .request(next.method.clone(), filled.url)
            .headers(filled.headers)
            .header(header::ACCEPT_ENCODING, decoding::ACCEPTED);
        if let Some(bytes) = filled.body {
            out.store(bytes.len() as u64, Ordering::Relaxed);
            builder = builder.body(bytes);
        } else if let Some(stream) = streamed {
            builder = builder.body(body::outgoing(stream, limit, exceeded.clone(), out.clone()));
        }
        let failed = |what: &str| type_error(format!("{} {}: {what}", next.method, without_query(&next.url)));
        let mut sending = pin!(builder.send());
        let (mut sent_bytes, mut quiet_looks) = (out.load(Ordering::Relaxed), 0);
        let sent = loop {
            match tokio::time::timeout(self.options.head_timeout / LOOKS, sending.as_mut()).await {
                Ok(sent) => break sent,
                // A long upload that makes progress continues until the call's own limits.
                Err(_) if out.load(Ordering::Relaxed) != sent_bytes => {
                    (sent_bytes, quiet_looks) = (out.load(Ordering::Relaxed), 0);
                }
                Err(_) => quiet_looks += 1,
            }
            if quiet_looks == LOOKS {
                return Err(failed(&format!("no response within {} s", self.options.head_timeout.as_secs())));
            }
        };
        sent.map_err(|error| match refusal(&error) {
            _ if exceeded.is_set() => body::too_large("request body", limit),
            Some(refused) => dial_error(&refused, context.tool, &admitted.host, admitted.port),
            None => failed(&sentence(&error)),
        })
    }

    async fn answer(
        &self,
        context: EgressContext<'_>,
        response: reqwest::Response,
        url: Url,
        redirected: bool,
        (ends, log_entry): (Instant, EgressLogEntry),
    ) -> Result<FetchResponse, OpError> {
        let status = response.status();
        if !(200..600).contains(&status.as_u16()) {
            // This includes 101: WebSocket and other upgrades are not supported.
            return Err(type_error(format!(
                "the server responded with the status {status}, which fetch does not support"
            )));
        }
        let encoding = Encoding::of(response.headers());
        secrets::refuse_unreadable(context.vault, response.headers(), encoding == Encoding::Unknown)?;
        let mut headers = headers::write(response.headers());
        if encoding.is_decoded() {
            headers.retain(|(name, _)| name != "content-encoding" && name != "content-length");
        }
        let body = body::incoming(response, encoding, &self.options, ends, log_entry.inward().clone()).await?;
        let answer = FetchResponse {
            status: status.as_u16(),
            status_text: status.canonical_reason().unwrap_or_default().to_owned(),
            headers,
            url: url.into(),
            redirected,
            body: log_entry.log_at_end_of(body),
        };
        Ok(secrets::clear(context.vault, answer))
    }
}

fn read_method(text: &str) -> Result<Method, OpError> {
    let upper = text.to_ascii_uppercase();
    // The fetch standard writes these in upper case and leaves others unchanged.
    let text = if matches!(upper.as_str(), "DELETE" | "GET" | "HEAD" | "OPTIONS" | "POST" | "PUT" | "PATCH") {
        &upper
    } else {
        text
    };
    if matches!(upper.as_str(), "CONNECT" | "TRACE" | "TRACK") {
        return Err(type_error(format!("the method {upper} is forbidden")));
    }
    Method::from_bytes(text.as_bytes()).map_err(|_| type_error(format!("{text:?} is not a valid HTTP method")))
}

/// Changes the request into the one that follows the redirect. Returns the body to send again.
fn redirected(vault: &Vault, next: &mut Next, status: StatusCode, target: Url) -> Result<Option<Bytes>, OpError> {
    let method = method_after(status, &next.method);
    if method != next.method {
        next.method = method;
        next.replay = None;
        headers::drop_body_fields(&mut next.headers);
    } else if next.streamed {
        return Err(type_error("a redirect requires the request's body again, which was too long to buffer"));
    }
    if target.origin() != next.url.origin() {
        headers::keep_anonymous_headers(&mut next.headers);
        secrets::keep_from_another_origin(vault, &target, &mut next.headers, next.replay.as_ref())?;
    }
    next.url = target;
    Ok(next.replay.clone())
}

/// The method of the request after a redirect with this status.
fn method_after(status: StatusCode, method: &Method) -> Method {
    let becomes_get = match status.as_u16() {
        303 => !matches!(*method, Method::GET | Method::HEAD),
        301 | 302 => *method == Method::POST,
        _ => false,
    };
    if becomes_get { Method::GET } else { method.clone() }
}

/// A refusal that the operator can lift names the option that does it for this tool only.
fn dial_error(why: &DialError, tool: &str, host: &Host, port: u16) -> OpError {
    let option = if why.can_be_allowed() { format!(" {tool}={}", with_port(host, port)) } else { String::new() };
    let message = format!("{why}{option}");
    if why.is_refusal() { OpError::new("PermissionDenied", message) } else { type_error(message) }
}

fn refusal(error: &reqwest::Error) -> Option<DialError> {
    causes(error).find_map(|cause| cause.downcast_ref::<DialError>().cloned())
}

fn causes<'e>(error: &'e (dyn Error + 'static)) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(Some(error), |error: &&'e (dyn Error + 'static)| (*error).source())
}

/// The text of a client error. The innermost cause is the most specific. The URL is left out,
/// because its query can contain a key.
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
