//! Following the changes.
//!
//! Writers put their events into a table and wait for nobody. A tenant with live subscribers has one [`feed`] that
//! reads each new event once and hands it to all of them; a subscriber that is behind reads for itself ([`page`]). The
//! feed is woken in this process after each commit, by a coalesced NOTIFY from other servers' processes ([`announce`]),
//! and by a slow poll under both, so that no wake is ever needed for correctness.

mod announce;
mod feed;
mod filter;
mod page;
mod snapshot;
mod subscription;
mod visibility;

pub(crate) use self::announce::{Announcer, announce, listen};
pub(crate) use self::feed::{Feeds, WrittenEvent};
pub(crate) use self::filter::subscribe;
pub(crate) use self::page::latest;
pub(crate) use self::visibility::SubscriberRights;
