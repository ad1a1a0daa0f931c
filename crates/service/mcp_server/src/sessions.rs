//! The sessions of one agent: in the memory of this process, and kept so that another process can
//! continue them.

use std::collections::BTreeSet;
use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::StoreError;
use rmcp::RoleServer;
use rmcp::model::{Extensions, ProtocolVersion};
use rmcp::service::RequestContext;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::streamable_http_server::session::{SessionState, SessionStore, SessionStoreError};
use serde::{Deserialize, Serialize};
use tokio::sync::{Mutex, MutexGuard};

use crate::Principal;

pub(crate) const SESSION_ID: &str = "mcp-session-id";

/// The sessions of one agent in this process.
pub(crate) struct Sessions {
    pub(crate) manager: Arc<LocalSessionManager>,
    /// Held while a session of another process begins here.
    resuming: Mutex<()>,
}

impl Sessions {
    pub(crate) fn new(manager: LocalSessionManager) -> Self {
        Self { manager: Arc::new(manager), resuming: Mutex::new(()) }
    }

    pub(crate) async fn count(&self) -> usize {
        self.manager.sessions.read().await.len()
    }

    /// Waits until the session is here completely, if another request is just resuming one. Returns
    /// a guard if it is not here: the transport looks for the kept state, and two requests must not
    /// do that at once.
    pub(crate) async fn resume(&self, id: &str) -> Option<MutexGuard<'_, ()>> {
        let guard = self.resuming.lock().await;
        (!self.manager.sessions.read().await.contains_key(id)).then_some(guard)
    }
}

/// Whether the request is of a revision without sessions: 2026-07-28, or a later one.
pub(crate) fn is_sessionless(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version().is_some_and(|version| version >= ProtocolVersion::V_2026_07_28)
}

/// What is kept of a session.
#[derive(Serialize, Deserialize)]
struct Kept {
    client: SessionState,
    #[serde(default)]
    subscribed: BTreeSet<String>,
}

/// The kept sessions, for the transport.
pub(crate) struct KeptSessions(pub(crate) Arc<dyn Principal>);

#[async_trait]
impl SessionStore for KeptSessions {
    async fn load(&self, id: &str) -> Result<Option<SessionState>, SessionStoreError> {
        Ok(read(&*self.0, id).await?.map(|kept| kept.client))
    }

    async fn store(&self, id: &str, state: &SessionState) -> Result<(), SessionStoreError> {
        Ok(write(&*self.0, id, &Kept { client: state.clone(), subscribed: BTreeSet::new() }).await?)
    }

    async fn delete(&self, id: &str) -> Result<(), SessionStoreError> {
        Ok(self.0.end_session(id).await?)
    }
}

/// The resources that the client of this session subscribed to, on any server.
pub(crate) async fn subscribed(principal: &dyn Principal, id: &str) -> Result<BTreeSet<String>, StoreError> {
    Ok(read(principal, id).await?.map(|kept| kept.subscribed).unwrap_or_default())
}

/// Changes what is kept of the subscriptions of the session that this request belongs to.
pub(crate) async fn keep_subscribed(
    principal: &dyn Principal,
    extensions: &Extensions,
    change: impl FnOnce(&mut BTreeSet<String>) + Send,
) -> Result<(), StoreError> {
    let parts = extensions.get::<http::request::Parts>();
    let Some(id) = parts.and_then(|parts| parts.headers.get(SESSION_ID)?.to_str().ok()) else { return Ok(()) };
    let Some(mut kept) = read(principal, id).await? else { return Ok(()) };
    change(&mut kept.subscribed);
    write(principal, id, &kept).await
}

async fn read(principal: &dyn Principal, id: &str) -> Result<Option<Kept>, StoreError> {
    let Some(state) = principal.kept_session(id).await? else { return Ok(None) };
    // A state of another version is a session that does not exist: the client begins again.
    Ok(serde_json::from_value(state).inspect_err(|error| tracing::debug!(%error, "a kept session cannot be read")).ok())
}

async fn write(principal: &dyn Principal, id: &str, kept: &Kept) -> Result<(), StoreError> {
    let state = serde_json::to_value(kept).map_err(|error| StoreError::Internal(error.to_string()))?;
    principal.keep_session(id, &state).await
}
