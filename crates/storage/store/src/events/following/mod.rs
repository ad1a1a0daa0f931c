//! Followers: handle every event once and in order, across crashes.
//!
//! A [`Follower`] has a cursor in each tenant. In a step, the follower prepares its work for the
//! next events with no transaction open. Then one transaction writes the work and advances the
//! cursor. So each event is handled once, and after a crash the follower continues at its cursor. A
//! lease, timed by the database's clock, lets one process at a time follow under a name. If two
//! ever do so at once, the cursor lets one commit and rolls the other back.
//!
//! Writers do nothing for followers. A follower is woken like the feeds, and polls every second.

mod run;
mod step;
#[cfg(test)]
mod tests;
mod watch;

use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use rcrt_breadcrumb::EventKind;
use uuid::Uuid;

pub(crate) use self::run::run;
pub(crate) use self::step::begin_at_present;
pub(crate) use self::watch::Watches;
use crate::database::failure::{Failure, Result};
use crate::database::from_row::from_row;
use crate::database::transaction::TenantTransaction;

from_row! {
    /// An event without its content, which is in `breadcrumbs` or `breadcrumb_versions` under the
    /// same version until it is deleted.
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
    pub(crate) fn kind(&self) -> Result<EventKind> {
        self.kind.parse().map_err(|_| Failure::unknown_event_kind(self.number, &self.kind))
    }
}

/// Why a follower has to catch up on changes without events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CatchUpReason {
    /// It has never run in this tenant.
    FirstRun,
    /// Events after its cursor were deleted before it handled them.
    EventsForgotten,
}

/// Handles every event.
#[async_trait]
pub(crate) trait Follower: Send + Sync + 'static {
    /// The name of its cursors. Never change it for the same work.
    fn name(&self) -> &'static str;

    /// Whether it follows in every tenant, including those created later, or only where it has a
    /// cursor ([`begin_at_present`]).
    fn is_in_every_tenant(&self) -> bool;

    /// How long it waits after a wake, so that one step takes many events.
    fn batch_delay(&self) -> Duration {
        Duration::from_millis(10)
    }

    /// The result of [`Follower::prepare`].
    type Prepared: Send;

    /// Prepares the work for these events (at least one, in order), as far as possible without an
    /// open transaction. The second number says how many of the events it covers, at least one. The
    /// others come again in the next step.
    async fn prepare(&self, owner_id: Uuid, events: &[EventHeader]) -> Result<(Self::Prepared, usize)>;

    /// Writes the prepared work, in the transaction that advances the cursor. Read before you
    /// write: from its first write on, the transaction holds back these events from other readers.
    ///
    /// It may be rolled back and called again. After an error the cursor stays, and the step is
    /// retried after a second.
    async fn take(&self, tx: &mut TenantTransaction, events: &[EventHeader], prepared: Self::Prepared) -> Result<()>;

    /// Catches up on missed events by reading the tenant's current state. The cursor was set before
    /// this read, so some of what it finds comes again as an event.
    async fn catch_up(&self, tx: &mut TenantTransaction, missed: CatchUpReason) -> Result<()>;

    /// A step was committed: wake the tasks that wait for its effects.
    fn stepped(&self, _owner_id: Uuid) {}
}
