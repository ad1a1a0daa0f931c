//! The Model Context Protocol. The crate `mcp_server` speaks it; this module says for whom.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use axum::{
    body::Body,
    extract::{Request, State},
    http::{HeaderMap, StatusCode, header},
    response::Response,
};
use chrono::Utc;
use futures::StreamExt;
use rcrt_breadcrumb::{Breadcrumbs, Catalog, EventNumber, Identity, StoreError, is_this_machine};
use rcrt_mcp_server::{EndpointError, HttpEndpoint, Principal};
use serde::de::IgnoredAny;
use serde_json::Value;
use tokio::time::{MissedTickBehavior, interval};
use url::Url;
use utoipa::ToSchema;

use crate::ServerState;
use crate::auth::access::Caller;
use crate::auth::host_policy::host_of;
use crate::http::guarded_body;
use crate::http::json_body;
use crate::http::problem::Problem;
use crate::routes::REQUESTERS;
use crate::routes::events::{expiry, is_still_authorized, passed};

/// How often an open stream's token is checked for being revoked by another server.
const CHECK_EVERY: Duration = Duration::from_secs(15);

/// A JSON-RPC 2.0 message: a request, a notification, or the response to a request.
#[derive(ToSchema)]
#[allow(dead_code)] // Used only as a schema.
pub struct JsonRpcMessage {
    /// Always `2.0`.
    jsonrpc: String,
    /// Of a request, and of its response: a string or an integer.
    id: Option<Value>,
    method: Option<String>,
    #[schema(value_type = Object)]
    params: Option<Value>,
    #[schema(value_type = Object)]
    result: Option<Value>,
    #[schema(value_type = Object)]
    error: Option<Value>,
}

/// Send a message of the Model Context Protocol
///
/// The body is one JSON-RPC request, notification or response (MCP, streamable HTTP). Both eras are
/// served: requests of the revision 2026-07-28 have no session, and earlier ones begin with
/// `initialize`, whose response names the session in the header `Mcp-Session-Id`. `Accept` must
/// list `application/json` and `text/event-stream`. A page's `Origin` must be allowed, or be of
/// this machine. On a loopback address, `Host` must be a loopback name, that of `--public-url`, or
/// one of `--allow-host`.
///
/// The tools are those of `GET /tools`; a call is a request in the queue, as with `POST
/// /tools/{name}/invoke`. A response stream that the client closes cancels its call. Guides are
/// prompts, and records are resources (`breadcrumb://{id}`).
#[utoipa::path(post, path = "/mcp", tag = "mcp", operation_id = "mcp",
    params(
        ("Accept" = String, Header, description = "application/json, text/event-stream"),
        ("MCP-Protocol-Version" = Option<String>, Header, description = "The revision, as in the message"),
        ("Mcp-Method" = Option<String>, Header, description = "From 2026-07-28 on: the method of the message"),
        ("Mcp-Name" = Option<String>, Header, description = "From 2026-07-28 on: the name or URI in the message"),
        ("Mcp-Session-Id" = Option<String>, Header, description = "Before 2026-07-28: the session"),
    ),
    request_body = JsonRpcMessage,
    responses(
        (status = 200, description = "Server-sent events whose data are JSON-RPC messages; the last is the response", body = JsonRpcMessage, content_type = "text/event-stream"),
        (status = 202, description = "A notification or a response was taken"),
    ))]
pub async fn post(State(state): State<ServerState>, caller: Caller, request: Request) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let body = json_body::whole(Request::from_parts(parts.clone(), body)).await?;
    json_body::parse::<IgnoredAny>(&body)?;
    serve(&state, caller, Request::from_parts(parts, body)).await
}

/// Open the stream of a session's notifications
///
/// Only for revisions before 2026-07-28. Later ones send `subscriptions/listen`.
#[utoipa::path(get, path = "/mcp", tag = "mcp", operation_id = "mcp_stream",
    params(
        ("Accept" = String, Header, description = "text/event-stream"),
        ("Mcp-Session-Id" = String, Header, description = "The session"),
        ("Last-Event-ID" = Option<String>, Header, description = "The last message that was received"),
    ),
    responses((status = 200, description = "Server-sent events whose data are JSON-RPC messages", body = JsonRpcMessage, content_type = "text/event-stream")))]
pub async fn stream(State(state): State<ServerState>, caller: Caller, request: Request) -> Result<Response, Problem> {
    serve(&state, caller, request.map(|_| bytes::Bytes::new())).await
}

/// End a session
///
/// Only for revisions before 2026-07-28.
#[utoipa::path(delete, path = "/mcp", tag = "mcp", operation_id = "mcp_end_session",
    params(("Mcp-Session-Id" = String, Header, description = "The session")),
    responses((status = 202, description = "The session does not exist any more")))]
pub async fn end(State(state): State<ServerState>, caller: Caller, request: Request) -> Result<Response, Problem> {
    serve(&state, caller, request.map(|_| bytes::Bytes::new())).await
}

async fn serve(
    state: &ServerState,
    caller: Caller,
    request: axum::http::Request<bytes::Bytes>,
) -> Result<Response, Problem> {
    check_origin(state, request.headers())?;
    check_host(state, request.headers())?;
    let (parts, body) = request.into_parts();
    let (tenant, agent) = (caller.identity.owner_id, caller.identity.agent_id);
    let is_subscription = HttpEndpoint::is_subscription(&parts.method, &parts.headers, &body);
    let permit = is_subscription.then(|| state.streams.acquire(&state.stream_options, tenant, agent)).transpose()?;
    // The shutdown waits for calls, and not for subscriptions.
    let running = (!is_subscription).then(|| state.invocations.token());
    // Before the response begins, so that a change right after it is not missed.
    let arrived_at = if is_subscription { Some(caller.store.latest_event().await?) } else { None };
    let principal = Arc::new(McpCaller::new(state, caller, arrived_at)?);
    let is_session_stream = parts.method == axum::http::Method::GET;
    let served = state.mcp.serve((tenant, agent), principal.clone(), parts, body).await;
    let mut response = served.map_err(refused)?.map(Body::new);
    if is_session_stream {
        let until = async move { principal.ended().await };
        response = response.map(|body| Body::from_stream(body.into_data_stream().take_until(Box::pin(until))));
    }
    Ok(guarded_body::attach(response, (permit, running)))
}

/// The transport refuses with a status and a line of text.
fn refused(error: EndpointError) -> Problem {
    let (status, why) = match error {
        EndpointError::TooManySessions => return Problem::too_many_sessions(error.to_string()),
        EndpointError::Refused { status, why } => (status, why),
    };
    match status {
        StatusCode::NOT_ACCEPTABLE => {
            Problem::not_acceptable("Accept must list text/event-stream, and for a POST also application/json")
        }
        StatusCode::NOT_FOUND => Problem::unknown_session(),
        StatusCode::METHOD_NOT_ALLOWED => {
            Problem::only_post("GET and DELETE are for sessions, which only revisions before 2026-07-28 have")
        }
        StatusCode::UNSUPPORTED_MEDIA_TYPE => match why.strip_prefix("fail to deserialize request body ") {
            Some(reason) => Problem::invalid("", format!("the body is not a JSON-RPC message: {reason}")),
            None => Problem::unsupported_media_type("the body must be application/json"),
        },
        status if status.is_server_error() => {
            tracing::error!(why, "a message of an MCP client cannot be handled");
            Problem::internal()
        }
        _ if why.contains("Session ID") => Problem::invalid(
            "Mcp-Session-Id",
            "is required: send initialize first, or use the revision 2026-07-28, which has no sessions",
        ),
        _ if why.contains("MCP-Protocol-Version") => {
            Problem::invalid("MCP-Protocol-Version", "is not a revision that is served; server/discover lists them")
        }
        _ => Problem::invalid("", why),
    }
}

/// The protocol requires that a foreign page is refused, whatever token it has.
fn check_origin(state: &ServerState, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(origin) = headers.get(header::ORIGIN) else { return Ok(()) };
    let url = origin.to_str().ok().and_then(|origin| Url::parse(origin).ok());
    let own = state.public_url.as_ref().and_then(|public| Url::parse(public.as_str()).ok());
    let is_own = |url: &Url| is_this_machine(url) || own.is_some_and(|own| own.origin() == url.origin());
    if state.origins.allows(origin) || url.as_ref().is_some_and(is_own) {
        return Ok(());
    }
    Err(Problem::forbidden("pages of this origin cannot use /mcp; the operator allows an origin with --cors-origin"))
}

/// A page that rebound its name to this machine sends no `Origin` with a GET, but its own `Host`.
fn check_host(state: &ServerState, headers: &HeaderMap) -> Result<(), Problem> {
    match &state.mcp_hosts {
        Some(hosts) if !hosts.include(host_of(headers)) => Err(Problem::foreign_host(
            "on a loopback address, /mcp accepts only requests to localhost, to a loopback address, to the host of \
             --public-url, or to a name of --allow-host (this request may come from another web site)",
        )),
        _ => Ok(()),
    }
}

/// The caller of one request.
struct McpCaller {
    state: ServerState,
    caller: Caller,
    session: String,
    signing_key: Vec<u8>,
    arrived_at: Option<EventNumber>,
}

impl McpCaller {
    fn new(state: &ServerState, caller: Caller, arrived_at: Option<EventNumber>) -> Result<Self, Problem> {
        let signing_key = state.token_key.derived(b"rcrt mcp state").map_err(|error| {
            tracing::error!(%error, "a key cannot be derived");
            Problem::internal()
        })?;
        let session = format!("mcp-{}", caller.identity.agent_id);
        Ok(Self { state: state.clone(), caller, session, signing_key, arrived_at })
    }
}

#[async_trait]
impl Principal for McpCaller {
    fn store(&self) -> &Arc<dyn Breadcrumbs> {
        &self.caller.store
    }

    fn followed(&self) -> Arc<dyn Breadcrumbs> {
        self.state.tenant_store(&self.caller)
    }

    async fn catalog(&self) -> Result<Catalog, StoreError> {
        let catalog = self.state.allowed_catalog(&self.caller).await?;
        Ok(catalog.for_profile(self.caller.identity.profile).without_removed(Utc::now()))
    }

    async fn catalog_with(&self, tool: &str) -> Result<Catalog, StoreError> {
        let catalog = self.state.allowed_catalog_with(&self.caller, tool).await?;
        Ok(catalog.for_profile(self.caller.identity.profile).without_removed(Utc::now()))
    }

    fn check_requester(&self) -> Result<(), StoreError> {
        REQUESTERS.check(&self.caller.identity)
    }

    fn session(&self) -> &str {
        &self.session
    }

    fn signing_key(&self) -> &[u8] {
        &self.signing_key
    }

    fn arrived_at(&self) -> Option<EventNumber> {
        self.arrived_at
    }

    async fn kept_session(&self, id: &str) -> Result<Option<Value>, StoreError> {
        let Identity { owner_id, agent_id, .. } = self.caller.identity;
        self.state.tenancy.kept_session(owner_id, agent_id, id).await
    }

    async fn keep_session(&self, id: &str, state: &Value) -> Result<(), StoreError> {
        let Identity { owner_id, agent_id, .. } = self.caller.identity;
        self.state.tenancy.keep_session(owner_id, agent_id, id, state).await
    }

    async fn end_session(&self, id: &str) -> Result<(), StoreError> {
        let Identity { owner_id, agent_id, .. } = self.caller.identity;
        self.state.tenancy.end_session(owner_id, agent_id, id).await
    }

    async fn ended(&self) {
        let expires = expiry(&self.state, &self.caller);
        let mut changes = self.state.agent_cache.changes();
        let mut check = interval(CHECK_EVERY);
        check.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = self.state.shutdown.cancelled() => return,
                () = passed(expires) => return,
                Ok(()) = changes.changed() => {}
                _ = check.tick() => {}
            }
            if !is_still_authorized(&self.state, &self.caller).await {
                return;
            }
        }
    }

    fn is_stopping(&self) -> bool {
        self.state.shutdown.is_cancelled()
    }
}
