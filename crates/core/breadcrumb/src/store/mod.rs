//! [`Breadcrumbs`]: one tenant's store as one agent sees it. Each part of it is a trait of its own,
//! so that code names the parts that it uses.

mod call_queue;
mod decorator;
mod error;
mod events;
mod logs;
mod records;
mod rights;
mod secrets;

use std::sync::Arc;

use uuid::Uuid;

pub use call_queue::{CallQueue, Runners};
pub use decorator::{BreadcrumbsDecorator, TenancyDecorator};
pub use error::{DESCENDANTS, StoreError};
pub use events::{Events, Selectors};
pub use logs::{AuditLog, CallHistory, EgressLog};
pub use records::{ChangeCheck, Records};
pub use rights::Rights;
pub use secrets::Secrets;

/// One tenant's store as one agent sees it: records, calls, events and secrets, and records of
/// other tenants that are shared with the agent.
///
/// - What the agent cannot see is [`StoreError::NotFound`].
/// - Every method is atomic and cancel safe. If its future is dropped, the operation happened
///   completely or not at all.
pub trait Breadcrumbs:
    Records + Rights + Events + Selectors + CallQueue + CallHistory + Runners + Secrets + EgressLog + AuditLog
{
    /// Returns the same store for work that a runner does on behalf of `agent`. It has the runner's
    /// rights to write, limited to the records that the agent can see. Requests and private records
    /// that are created through it belong to the agent.
    ///
    /// [`StoreError::Forbidden`] for every caller that is not a runner.
    fn on_behalf_of(&self, _agent: Uuid) -> Result<Arc<dyn Breadcrumbs>, StoreError> {
        Err(rights::no_rights())
    }
}
