//! Event streams.
//!
//! Writers insert events into a table and wait for no reader. A tenant with live subscribers has
//! one [`feed`], which reads each new event once and hands it to all of them. A subscriber that is
//! behind reads from the table ([`page`]). The feed is woken in this process after each commit, by
//! a coalesced NOTIFY from other server processes ([`announce`]), and by a slow poll, so
//! correctness does not depend on a wake-up.

pub(crate) mod following;
pub(crate) mod selectors;

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
