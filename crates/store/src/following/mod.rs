//! Doing something for every event, once and in order, whatever crashes.
//!
//! A [`Follower`] has a cursor in each tenant. A step reads the events after it and lets the follower prepare what they
//! ask for, with no transaction open; then the follower writes that and the cursor moves, in one transaction: so each event
//! is taken once, and after a crash the follower goes on where it stood. One process at a time follows under a name, by a lease that the database's clock judges; should two
//! ever do it at the same moment, the cursor admits one of them and undoes the other.
//!
//! Writers do nothing for it. It is woken like the feeds, and looks by itself every second.

mod run;
mod step;
#[cfg(test)]
mod tests;
mod watch;

use std::time::Duration;

use async_trait::async_trait;
use breadcrumb::EventKind;
use chrono::{DateTime, Utc};
use uuid::Uuid;

pub(crate) use self::run::run;
pub(crate) use self::step::begin_at_present;
pub(crate) use self::watch::Watches;
use crate::failure::Result;
use crate::from_row::from_row;
use crate::transaction::TenantTransaction;

from_row! {
    /// An event without its content, which stands in `breadcrumbs` or `breadcrumb_versions` under the same version as long
    /// as nobody forgot it.
    #[derive(Debug, Clone)]
    pub(crate) struct EventHeader {
        pub(crate) number: i64,
        kind: String,
        pub(crate) breadcrumb_id: Uuid,
        pub(crate) version: i64,
        pub(crate) at: DateTime<Utc>,
        /// Bytes of the context.
        pub(crate) size_bytes: i64,
    }
}

impl EventHeader {
    pub(crate) fn kind(&self) -> EventKind {
        EventKind::from_name(&self.kind)
    }
}

/// Why a follower has to make good for what no event tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatchUpReason {
    /// It never was in this tenant.
    FirstRun,
    /// Events after its cursor were forgotten before it took them.
    EventsForgotten,
}

/// Who does something for every event.
#[async_trait]
pub(crate) trait Follower: Send + Sync + 'static {
    /// Under which its cursors are kept. Never another one for the same work.
    fn name(&self) -> &'static str;

    /// Whether it follows in every tenant, also in those that are made later, or only where it has a cursor
    /// ([`begin_at_present`]).
    fn is_in_every_tenant(&self) -> bool;

    /// How long it waits after a wake, so that one step takes many events.
    fn gather(&self) -> Duration {
        Duration::from_millis(10)
    }

    /// What [`Follower::prepare`] found out.
    type Prepared: Send;

    /// What these events (at least one, in order) ask for, as far as that can be told before the transaction that moves the
    /// cursor, with no transaction of the step open. The second number says how many of the events that holds for: the
    /// others come again in the next step. At least one.
    async fn prepare(&self, owner_id: Uuid, events: &[EventHeader]) -> Result<(Self::Prepared, usize)>;

    /// Does what the prepared events ask for, in the transaction that moves the cursor past them. Reads come before writes:
    /// from its first write on, the transaction holds back what other readers see of the events.
    ///
    /// It may be undone and asked for again. An error leaves the cursor, and is tried again after a second.
    async fn take(&self, tx: &mut TenantTransaction, events: &[EventHeader], prepared: Self::Prepared) -> Result<()>;

    /// Makes good for what it missed: it looks at the tenant as it is. The cursor then stands at a moment before this look, so
    /// that some of what it finds comes again as an event.
    async fn catch_up(&self, tx: &mut TenantTransaction, missed: CatchUpReason) -> Result<()>;

    /// A step was committed: whoever waits for its effects can be woken.
    fn stepped(&self, _owner_id: Uuid) {}
}
