//! Streamable HTTP, for both eras of the protocol at one address. A request of the revision
//! 2026-07-28 stands on its own. Earlier ones belong to a session of one agent. It is in the memory
//! of this process, and kept so that another process continues it.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use base64::{Engine, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::request::Parts;
use http::{HeaderMap, Method, Request, Response, StatusCode, header};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use parking_lot::Mutex;
use rcrt_breadcrumb::Registration;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;
use uuid::Uuid;

use crate::Principal;
use crate::handler::Handler;
use crate::principal::Served;
use crate::sessions::{KeptSessions, SESSION_ID, Sessions};
use crate::tools;

/// The most sessions of one agent in this process.
const MAX_SESSIONS: usize = 64;
/// How long a session without requests stays in memory.
const IDLE_TIME: Duration = Duration::from_mins(30);
/// The message after which a session gets notifications, and how long it is at most.
const INITIALIZED: &[u8] = b"\"notifications/initialized\"";
const MAX_INITIALIZED: usize = 1024;
const METHOD: &str = "mcp-method";
const NAME: &str = "mcp-name";

#[derive(Debug, thiserror::Error)]
pub enum EndpointError {
    #[error(
        "the agent has {MAX_SESSIONS} open sessions; close one with DELETE, or wait until one has been idle for 30 minutes"
    )]
    TooManySessions,
    /// The transport refuses the request, with a line of text.
    #[error("{why}")]
    Refused { status: StatusCode, why: String },
}

/// The endpoint of one server process.
pub struct HttpEndpoint {
    /// By tenant and agent. A session of another agent does not exist for an agent.
    sessions: Mutex<HashMap<(Uuid, Uuid), Arc<Sessions>>>,
    stop: CancellationToken,
}

impl HttpEndpoint {
    /// Ends all streams at `stop`.
    pub fn new(stop: CancellationToken) -> Self {
        Self { sessions: Mutex::default(), stop }
    }

    /// Whether notifications begin with this request. A false positive does no harm.
    pub fn is_subscription(method: &Method, headers: &HeaderMap, body: &[u8]) -> bool {
        let begins_session =
            || body.len() <= MAX_INITIALIZED && body.windows(INITIALIZED.len()).any(|part| part == INITIALIZED);
        method == Method::GET
            || headers.get(METHOD).is_some_and(|name| name == "subscriptions/listen")
            || begins_session()
    }

    /// Responds to one request of an agent, whose token, host and origin were checked.
    pub async fn serve(
        &self,
        tenant_and_agent: (Uuid, Uuid),
        principal: Arc<dyn Principal>,
        mut parts: Parts,
        body: Bytes,
    ) -> Result<Response<BoxBody<Bytes, Infallible>>, EndpointError> {
        let sessions = self.sessions(tenant_and_agent);
        let named = parts.headers.get(SESSION_ID).and_then(|id| id.to_str().ok());
        let resuming = match named {
            Some(id) if parts.method != Method::DELETE => sessions.resume(id).await,
            _ => None,
        };
        let may_begin_session = named.is_none() && parts.method == Method::POST && !parts.headers.contains_key(METHOD);
        if (may_begin_session || resuming.is_some()) && sessions.count().await >= MAX_SESSIONS {
            return Err(EndpointError::TooManySessions);
        }
        let handler = Handler::for_request(named_tool(&*principal, &parts.headers).await);
        parts.extensions.insert(Served(principal.clone()));
        let most = body.len();
        let mut config = StreamableHttpServerConfig::default()
            // The server checks it for all routes.
            .disable_allowed_hosts()
            .with_cancellation_token(self.stop.clone())
            .with_max_request_body_bytes(most);
        config.session_store = Some(Arc::new(KeptSessions(principal)));
        let service = StreamableHttpService::new(move || Ok(handler.clone()), sessions.manager.clone(), config);
        let Ok(response) = service.oneshot(Request::from_parts(parts, Full::new(body))).await;
        drop(resuming);
        unless_refused(response).await
    }

    fn sessions(&self, tenant_and_agent: (Uuid, Uuid)) -> Arc<Sessions> {
        let mut agents = self.sessions.lock();
        if let Some(sessions) = agents.get(&tenant_and_agent) {
            return sessions.clone();
        }
        // Those without sessions and requests.
        agents.retain(|_, sessions| {
            Arc::strong_count(sessions) > 1 || sessions.manager.sessions.try_read().is_ok_and(|open| !open.is_empty())
        });
        let mut manager = LocalSessionManager::default();
        manager.session_config.keep_alive = Some(IDLE_TIME);
        agents.entry(tenant_and_agent).or_insert(Arc::new(Sessions::new(manager))).clone()
    }
}

/// Refusals of the transport are lines of text. Errors of the protocol are JSON.
async fn unless_refused(
    response: Response<BoxBody<Bytes, Infallible>>,
) -> Result<Response<BoxBody<Bytes, Infallible>>, EndpointError> {
    let status = response.status();
    let is_json = response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind == "application/json");
    if is_json || status.as_u16() < 400 {
        return Ok(response);
    }
    let Ok(text) = response.into_body().collect().await;
    Err(EndpointError::Refused { status, why: String::from_utf8_lossy(&text.to_bytes()).into_owned() })
}

/// The tool that the headers of a call name, for the check of the headers that repeat its
/// arguments.
async fn named_tool(principal: &dyn Principal, headers: &HeaderMap) -> Option<(String, Registration)> {
    let header = |name: &str| headers.get(name)?.to_str().ok();
    if header(METHOD)? != "tools/call" {
        return None;
    }
    let name = header_text(header(NAME)?)?;
    let tool = tools::find(principal, &name).await.ok()?;
    Some((name, tool))
}

/// The text of a header that a client may have encoded.
fn header_text(value: &str) -> Option<String> {
    match value.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(value.to_owned()),
    }
}
