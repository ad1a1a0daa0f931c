//! Chooses the agent on whose behalf a store operation runs. A runner sees all records of its
//! tenant. What it does for an agent must not see more than that agent can.

use std::sync::Arc;

use rcrt_breadcrumb::{Breadcrumbs, StoreError};
use uuid::Uuid;

/// The store as this agent sees it. `None`: the store or a runner itself made the request, so the
/// runner's own view is used.
pub(crate) fn on_behalf_of(
    store: &Arc<dyn Breadcrumbs>,
    agent: Option<Uuid>,
) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
    match agent {
        Some(agent) => store.on_behalf_of(agent),
        None => Ok(store.clone()),
    }
}
