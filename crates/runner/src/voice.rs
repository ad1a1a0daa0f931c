//! In whose name something is done: a runner sees all of its tenant, and what it does for others must not see more than
//! they may.

use std::sync::Arc;

use breadcrumb::{Breadcrumbs, StoreError};
use uuid::Uuid;

/// The store as this agent sees it. What is nobody's was asked for by the store or by a runner itself.
pub(crate) fn in_name_of(
    store: &Arc<dyn Breadcrumbs>,
    agent: Option<Uuid>,
) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
    match agent {
        Some(agent) => store.acting_for(agent),
        None => Ok(store.clone()),
    }
}
