//! Event streams.
//!
//! Writers insert events into a table and wait for no reader. A tenant with live subscribers has
//! one [`feed`], which reads each new event once and hands it to all of them. A subscriber that is
//! behind reads from the table ([`page`]). The feed is woken in this process after each commit, by
//! a coalesced NOTIFY from other server processes ([`announce`]), and by a slow poll, so
//! correctness does not depend on a wake-up.

pub(crate) mod copying;
pub(crate) mod following;
pub(crate) mod selectors;

mod announce;
mod feed;
mod filter;
mod page;
mod sized_event;
mod snapshot;
mod subscription;
mod visibility;

use std::sync::Arc;

pub(crate) use self::announce::{Announcer, announce, listen};
pub(crate) use self::feed::Feeds;
pub(crate) use self::page::{latest, newest_committed, read_own};
use self::selectors::OpenSelectors;
pub(crate) use self::sized_event::WrittenEvent;
pub(crate) use self::subscription::subscribe;
pub(crate) use self::visibility::SubscriberRights;
use crate::database::Database;

/// What the event streams and the followers of all tenants share.
pub(crate) struct EventStreams {
    pub(crate) database: Arc<Database>,
    pub(crate) feeds: Arc<Feeds>,
    pub(crate) announcer: Arc<Announcer>,
    pub(crate) selectors: OpenSelectors,
}

impl EventStreams {
    pub(crate) fn new(database: Arc<Database>, feeds: Arc<Feeds>, announcer: Arc<Announcer>) -> Self {
        Self { database, feeds, announcer, selectors: OpenSelectors::default() }
    }
}
