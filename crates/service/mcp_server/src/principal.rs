//! Who is served.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use rcrt_breadcrumb::{Breadcrumbs, Catalog, EventNumber, StoreError};
use serde_json::Value;

/// An agent, as the transport knows it.
#[async_trait]
pub trait Principal: Send + Sync + 'static {
    /// The tenant's records as the agent sees them. Calls are written and cancelled here.
    fn store(&self) -> &Arc<dyn Breadcrumbs>;

    /// Where changes of the catalog are followed. An agent that reads only its own calls does not
    /// see them in [`Self::store`].
    fn followed(&self) -> Arc<dyn Breadcrumbs>;

    /// How often the catalog is read to notice its changes, if the agent does not see them in
    /// [`Self::followed`].
    fn reads_catalog_every(&self) -> Option<Duration> {
        None
    }

    /// The tools that the agent can call, sorted by name.
    async fn catalog(&self) -> Result<Catalog, StoreError>;

    /// The same, but if a tool has this as its own name, others can be missing.
    async fn catalog_with(&self, tool: &str) -> Result<Catalog, StoreError>;

    /// An error if the agent has no role that can write and cancel requests. A store that is
    /// reached over HTTP checks that itself.
    fn check_requester(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// The session whose working memory gets large results.
    fn session(&self) -> &str;

    /// A key of at least 32 bytes that only this service knows. It signs what a client keeps for a
    /// tool between two calls.
    fn signing_key(&self) -> &[u8];

    /// The number of the newest event when the request arrived, if it was read.
    fn arrived_at(&self) -> Option<EventNumber> {
        None
    }

    /// The state of a session that a process of this service kept for the others.
    async fn kept_session(&self, _id: &str) -> Result<Option<Value>, StoreError> {
        Ok(None)
    }

    /// Keeps the state of a session.
    async fn keep_session(&self, _id: &str, _state: &Value) -> Result<(), StoreError> {
        Ok(())
    }

    /// Deletes the state of a session.
    async fn end_session(&self, _id: &str) -> Result<(), StoreError> {
        Ok(())
    }

    /// Returns when the agent gets no more notifications: its token expired or was revoked, or the
    /// service stops.
    async fn ended(&self);

    /// Whether the service stops. A call then continues without its caller.
    fn is_stopping(&self) -> bool;
}

/// The principal of a request, in its extensions.
#[derive(Clone)]
pub(crate) struct Served(pub Arc<dyn Principal>);
