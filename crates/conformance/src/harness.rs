//! What a test needs of the implementation under test.

use std::sync::Arc;

use async_trait::async_trait;
use breadcrumb::{Breadcrumbs, Identity};
use uuid::Uuid;

/// An implementation under test, with a database of its own behind it.
#[async_trait]
pub trait Harness: Send + Sync + Sized + 'static {
    /// Makes a new tenant and gives its id.
    async fn tenant(&self) -> Uuid;

    /// Makes a new agent with every role in that tenant, and gives the store as it sees it.
    async fn agent(&self, tenant: Uuid) -> Agent;

    /// Ends what the harness started.
    async fn close(self);
}

/// The store, as one agent of one tenant sees it.
pub struct Agent {
    pub identity: Identity,
    pub store: Arc<dyn Breadcrumbs>,
}

impl std::ops::Deref for Agent {
    type Target = dyn Breadcrumbs;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

/// One agent in a tenant of its own: what most tests need.
pub async fn alone(harness: &impl Harness) -> Agent {
    let tenant = harness.tenant().await;
    harness.agent(tenant).await
}
