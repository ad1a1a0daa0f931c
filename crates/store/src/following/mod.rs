//! Followers: handle every event once and in order, across crashes.
//!
//! A [`Follower`] has a cursor in each tenant. In a step, the follower prepares its work for the
//! next events with no transaction open. Then one transaction writes the work and advances the
//! cursor. So each event is handled once, and after a crash the follower continues at its cursor. A
//! lease by the database's clock lets one process at a time follow under a name. If two ever do so
//! at once, the cursor lets one commit and rolls the other back.
//!
//! Writers do nothing for followers. A follower is woken like the feeds, and polls every second.

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
    pub(crate) fn kind(&self) -> EventKind {
        EventKind::from_name(&self.kind)
    }
}

/// Why a follower has to catch up on changes without events.
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

    /// Whether it follows in every tenant, also in those created later, or only where it has a
    /// cursor ([`begin_at_present`]).
    fn is_in_every_tenant(&self) -> bool;

    /// How long it waits after a wake, so that one step takes many events.
    fn gather(&self) -> Duration {
        Duration::from_millis(10)
    }

    /// What [`Follower::prepare`] found out.
    type Prepared: Send;

    /// The work for these events (at least one, in order), as far as it can be prepared before the
    /// transaction that advances the cursor, with no transaction of the step open. The second
    /// number says how many of the events it covers, at least one; the others come again in the
    /// next step.
    async fn prepare(&self, owner_id: Uuid, events: &[EventHeader]) -> Result<(Self::Prepared, usize)>;

    /// Does what the prepared events ask for, in the transaction that moves the cursor past them. Reads come before writes:
    /// from its first write on, the transaction holds back what other readers see of the events.
    ///
    /// It may be undone and asked for again. An error leaves the cursor, and is tried again after a second.
    async fn take(&self, tx: &mut TenantTransaction, events: &[EventHeader], prepared: Self::Prepared) -> Result<()>;

    /// Catches up on what it missed: it reads the tenant's current state. The cursor is then at a
    /// moment before this read, so some of what it finds comes again as an event.
    async fn catch_up(&self, tx: &mut TenantTransaction, missed: CatchUpReason) -> Result<()>;

    /// A step was committed: wake the tasks that wait for its effects.
    fn stepped(&self, _owner_id: Uuid) {}
}
