//! On whose behalf something is done: a runner sees all of its tenant, and what it does for others
//! must not see more than they can.

use std::sync::Arc;

use breadcrumb::{Breadcrumbs, StoreError};
use uuid::Uuid;

/// The store as this agent sees it. Without an agent, the store or a runner itself asked.
pub(crate) fn in_name_of(
    store: &Arc<dyn Breadcrumbs>,
    agent: Option<Uuid>,
) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
    match agent {
        Some(agent) => store.acting_for(agent),
        None => Ok(store.clone()),
    }
}
