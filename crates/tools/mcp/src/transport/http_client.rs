//! Requests of streamable HTTP through the egress gate, so that its rules, its log and the secrets
//! of the record apply.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::stream::BoxStream;
use futures::{StreamExt, TryStreamExt, stream};
use http::{HeaderName, HeaderValue};
use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, OpError, Redirect};
use rcrt_egress::{Connections, Egress, EgressContext, NetRules, Origin, Vault};
use rmcp::model::{ClientJsonRpcMessage, ClientRequest, ErrorData, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, InsufficientScopeError, SseError, StreamableHttpClient, StreamableHttpError,
    StreamableHttpPostResponse,
};
use sse_stream_of_rmcp::Sse;

use super::{RawLists, sse};
use crate::text::redacted_line;

const JSON: &str = "application/json";
const EVENTS: &str = "text/event-stream";
/// How much of an error's body is read, in bytes.
const MAX_ERROR_BODY: usize = 16 * 1024;
/// How many redirects a request follows. The gate refuses one to another host.
const MAX_REDIRECTS: usize = 3;

/// The client of one connection.
#[derive(Clone)]
pub struct EgressClient(Arc<Inner>);

struct Inner {
    egress: Arc<Egress>,
    /// The name in the operator's list of private hosts.
    name: String,
    rules: NetRules,
    vault: Arc<Vault>,
    connections: Connections,
    origin: Origin,
    /// The record's own, with handles for secrets.
    headers: Vec<(String, String)>,
    lists: RawLists,
}

type Failed = StreamableHttpError<OpError>;

impl EgressClient {
    pub fn new(
        egress: Arc<Egress>,
        name: String,
        rules: NetRules,
        vault: Arc<Vault>,
        origin: Origin,
        headers: Vec<(String, String)>,
        lists: RawLists,
    ) -> Self {
        let connections = Connections::default();
        Self(Arc::new(Inner { egress, name, rules, vault, connections, origin, headers, lists }))
    }

    async fn send(
        &self,
        method: &str,
        uri: &str,
        headers: Vec<(String, String)>,
        custom: HashMap<HeaderName, HeaderValue>,
        body: Option<Vec<u8>>,
    ) -> Result<FetchResponse, Failed> {
        let inner = &*self.0;
        let custom = custom.into_iter().map(|(name, value)| {
            let value = value.as_bytes().iter().map(|byte| char::from(*byte)).collect();
            (name.as_str().to_owned(), value)
        });
        let headers = headers.into_iter().chain(custom).chain(inner.headers.iter().cloned()).collect();
        let request = FetchRequest { method: method.into(), url: uri.into(), headers, redirect: Redirect::Follow };
        let context = EgressContext {
            tool: &inner.name,
            rules: &inner.rules,
            vault: &inner.vault,
            connections: &inner.connections,
            origin: Some(inner.origin),
            observer: None,
        };
        let body = body.map(|bytes| -> BodyStream { stream::iter([Ok(Bytes::from(bytes))]).boxed() });
        let sent = inner.egress.fetch_following(context, request, body, MAX_REDIRECTS).await;
        sent.map_err(StreamableHttpError::Client)
    }

    /// Sends a message whose response comes elsewhere.
    pub async fn post_only(&self, uri: &str, message: &ClientJsonRpcMessage) -> Result<(), Failed> {
        let headers = vec![pair("content-type", JSON)];
        let response = self.send("POST", uri, headers, HashMap::new(), Some(serde_json::to_vec(message)?)).await?;
        if let Some(error) = self.refusal(&response) {
            return Err(error);
        }
        match response.status {
            200..300 => Ok(()),
            status => Err(refused(status, "")),
        }
    }

    /// The server asks for other credentials. A 403 without a challenge has another cause.
    fn refusal(&self, response: &FetchResponse) -> Option<Failed> {
        let challenge = header(response, "www-authenticate").map(|text| redacted_line(text, &self.0.vault));
        match (response.status, challenge) {
            (401, challenge) => {
                Some(StreamableHttpError::AuthRequired(AuthRequiredError::new(challenge.unwrap_or_default())))
            }
            (403, Some(challenge)) => {
                Some(StreamableHttpError::InsufficientScope(InsufficientScopeError::new(challenge, None)))
            }
            _ => None,
        }
    }

    /// The response to a message that has a status of success.
    async fn answer(
        &self,
        response: FetchResponse,
        awaits_response: bool,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let session = header(&response, "mcp-session-id").map(str::to_owned);
        let kind = media_type(&response);
        if kind == EVENTS {
            let events = sse::events(response.body, self.0.lists.clone());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        if !awaits_response {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if kind != JSON {
            return Err(StreamableHttpError::UnexpectedContentType(Some(redacted_line(&kind, &self.0.vault))));
        }
        let body = whole(response.body).await?;
        match self.0.lists.read(&body) {
            Ok(message) => Ok(StreamableHttpPostResponse::Json(message, session)),
            Err(error) => Err(unexpected(format!("the response is not a message of the protocol: {error}"))),
        }
    }
}

impl StreamableHttpClient for EgressClient {
    type Error = OpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _auth_header: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, Failed> {
        let body = serde_json::to_vec(&message)?;
        let mut headers = vec![pair("accept", &format!("{JSON}, {EVENTS}")), pair("content-type", JSON)];
        headers.extend(session.as_deref().map(|id| pair("mcp-session-id", id)));
        let response = self.send("POST", &uri, headers, custom, Some(body)).await?;
        let status = response.status;
        if matches!(status, 202 | 204) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if let Some(error) = self.refusal(&response) {
            return Err(error);
        }
        if status == 404 && session.is_some() {
            return Err(StreamableHttpError::SessionExpired);
        }
        if (200..300).contains(&status) {
            let awaits_response = matches!(message, ClientJsonRpcMessage::Request(_));
            return self.answer(response, awaits_response).await;
        }
        // The error of the protocol, if the body has one.
        let body = start(response.body).await;
        let stated = match self.0.lists.read(&body) {
            Ok(ServerJsonRpcMessage::Error(error)) => Some(error),
            _ => None,
        };
        let text = redacted_line(&String::from_utf8_lossy(&body), &self.0.vault);
        if status == 400 && session.is_some() && text.to_ascii_lowercase().contains("session") {
            // The servers of the official SDKs answer an unknown session so, instead of with 404.
            return Err(StreamableHttpError::SessionExpired);
        }
        if let ClientJsonRpcMessage::Request(request) = &message {
            // A server of the older revisions refuses to be discovered in many ways.
            let is_discovery = matches!(request.request, ClientRequest::DiscoverRequest(_));
            if is_discovery && session.is_none() && (400..500).contains(&status) && !matches!(status, 401 | 403) {
                let error = stated.map_or_else(|| ErrorData::invalid_request(text, None), |stated| stated.error);
                let error = ServerJsonRpcMessage::error(error, Some(request.id.clone()));
                return Ok(StreamableHttpPostResponse::Json(error, None));
            }
        }
        match stated {
            Some(mut error) => {
                // Without an id nothing would end the request.
                if let (None, ClientJsonRpcMessage::Request(request)) = (&error.id, &message) {
                    error.id = Some(request.id.clone());
                }
                Ok(StreamableHttpPostResponse::Json(ServerJsonRpcMessage::Error(error), None))
            }
            None => Err(refused(status, &text)),
        }
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _auth_header: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), Failed> {
        let response = self.send("DELETE", &uri, vec![pair("mcp-session-id", &session)], custom, None).await?;
        match response.status {
            200..300 => Ok(()),
            405 => Err(StreamableHttpError::ServerDoesNotSupportDeleteSession),
            status => Err(refused(status, "")),
        }
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event_id: Option<String>,
        _auth_header: Option<String>,
        custom: HashMap<HeaderName, HeaderValue>,
    ) -> Result<BoxStream<'static, Result<Sse, SseError>>, Failed> {
        let mut headers = vec![pair("accept", EVENTS)];
        headers.extend(session.as_deref().map(|id| pair("mcp-session-id", id)));
        headers.extend(last_event_id.as_deref().map(|id| pair("last-event-id", id)));
        let response = self.send("GET", &uri, headers, custom, None).await?;
        if let Some(error) = self.refusal(&response) {
            return Err(error);
        }
        match response.status {
            405 => Err(StreamableHttpError::ServerDoesNotSupportSse),
            404 if session.is_some() => Err(StreamableHttpError::SessionExpired),
            200..300 if media_type(&response) == EVENTS => Ok(sse::events(response.body, self.0.lists.clone())),
            200..300 => {
                let kind = redacted_line(&media_type(&response), &self.0.vault);
                Err(StreamableHttpError::UnexpectedContentType(Some(kind)))
            }
            status => Err(refused(status, "")),
        }
    }
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

fn header<'r>(response: &'r FetchResponse, name: &str) -> Option<&'r str> {
    response.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
}

fn media_type(response: &FetchResponse) -> String {
    let value = header(response, "content-type").unwrap_or_default();
    value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

fn unexpected(text: String) -> Failed {
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(text))
}

/// A status without a message of the protocol. A failure of the server itself says nothing about
/// its era.
fn refused(status: u16, text: &str) -> Failed {
    let separator = if text.is_empty() { "" } else { ": " };
    let why = format!("the server responded with HTTP {status}{separator}{text}");
    if status >= 500 { StreamableHttpError::Client(OpError::new("Unavailable", why)) } else { unexpected(why) }
}

/// The whole body. The gate bounds it.
async fn whole(body: BodyStream) -> Result<Vec<u8>, Failed> {
    let pieces: Vec<Bytes> = body.try_collect().await.map_err(StreamableHttpError::Client)?;
    Ok(pieces.concat())
}

/// The beginning of the body, as far as it can be read.
async fn start(mut body: BodyStream) -> Vec<u8> {
    let mut read = Vec::new();
    while let Some(Ok(piece)) = body.next().await {
        read.extend_from_slice(&piece);
        if read.len() >= MAX_ERROR_BODY {
            read.truncate(MAX_ERROR_BODY);
            break;
        }
    }
    read
}
