//! One reader per tenant with live subscribers. It hands each new event to all of them.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use parking_lot::Mutex;
use rcrt_breadcrumb::StoreError;
use tokio::sync::{Notify, mpsc};
use uuid::Uuid;

use super::page;
use super::sized_event::{SizedEvent, WrittenEvent};
use crate::database::commit::{Commit, CommitListener};
use crate::events::EventStreams;
use crate::events::following::Watches;

/// The longest time that an event can go unnoticed if every wake-up was lost.
const POLL: Duration = Duration::from_millis(500);
/// The first and the longest pause between reads while committed events wait for an older
/// transaction.
const PEEK_FIRST: Duration = Duration::from_millis(2);
const PEEK_LONGEST: Duration = Duration::from_millis(50);
/// The pause between reads while the database does not respond.
const RETRY: Duration = Duration::from_millis(250);

/// A feed that has not read for this long (the database was unreachable, or the machine was asleep)
/// cannot know which events were deleted meanwhile. Its subscribers then read for themselves.
const GAP_IS_FINAL_AFTER: TimeDelta = TimeDelta::hours(1);

/// The most that is queued for one subscriber. A subscriber with more reads from the database
/// instead. All subscribers share the events, so what they wait for is in memory once.
const QUEUE_EVENTS: usize = 256;
const QUEUE_BYTES: usize = 32 * 1024 * 1024;

/// The feeds of all tenants that have live subscribers.
#[derive(Default)]
pub(crate) struct Feeds {
    tenants: Mutex<HashMap<Uuid, Arc<Feed>>>,
    /// A watcher of all tenants.
    pub(crate) watches: Watches,
}

struct Feed {
    wake: Notify,
    /// Whether committed events wait for an older transaction to end.
    is_waiting: AtomicBool,
    state: Mutex<State>,
}

struct State {
    /// Everything up to this number has been handed out.
    cursor: i64,
    subscribers: Vec<Subscriber>,
    /// Events that this process wrote and the feed has not reached yet, by number. They need not be
    /// read again.
    fresh: BTreeMap<i64, Arc<SizedEvent>>,
    fresh_bytes: usize,
}

struct Subscriber {
    queue: mpsc::Sender<Arc<SizedEvent>>,
    waiting_bytes: Arc<AtomicUsize>,
}

/// The subscriber's side: what the feed hands out after `from`.
pub(super) struct FeedReceiver {
    queue: mpsc::Receiver<Arc<SizedEvent>>,
    waiting_bytes: Arc<AtomicUsize>,
    pub(super) from: i64,
}

impl FeedReceiver {
    /// `None` if the subscriber fell too far behind and was dropped.
    pub(super) async fn next(&mut self) -> Option<Arc<SizedEvent>> {
        let event = self.queue.recv().await?;
        self.waiting_bytes.fetch_sub(event.bytes, Ordering::Relaxed);
        Some(event)
    }
}

impl Subscriber {
    /// Whether all events fit into the queue. A subscriber whose queue is full or closed is
    /// dropped.
    fn take(&self, events: &[Arc<SizedEvent>]) -> bool {
        events.iter().all(|event| {
            let waiting = self.waiting_bytes.fetch_add(event.bytes, Ordering::Relaxed);
            // A single event above the limit still goes to a subscriber with an empty buffer.
            (waiting == 0 || waiting + event.bytes <= QUEUE_BYTES) && self.queue.try_send(event.clone()).is_ok()
        })
    }
}

impl Feeds {
    /// This tenant may have new events.
    pub(crate) fn wake(&self, owner_id: Uuid) {
        self.watches.notify(owner_id);
        if let Some(feed) = self.tenants.lock().get(&owner_id) {
            feed.wake.notify_one();
        }
    }

    /// A transaction that changed no record has ended. Events may have waited for it.
    pub(crate) fn wake_waiting(&self, owner_id: Uuid) {
        if let Some(feed) = self.tenants.lock().get(&owner_id)
            && feed.is_waiting.load(Ordering::Relaxed)
        {
            feed.wake.notify_one();
        }
    }

    pub(crate) fn is_followed(&self, owner_id: Uuid) -> bool {
        self.tenants.lock().contains_key(&owner_id)
    }

    /// Hands out new events of this tenant, in the order of their numbers. `before`: the tenant's
    /// newest event before them, if no other event can come between. A subscriber that has that
    /// event gets these at once, without a read.
    pub(crate) fn publish(&self, owner_id: Uuid, events: Vec<WrittenEvent>, before: Option<i64>) {
        self.watches.notify(owner_id);
        if let Some(feed) = self.tenants.lock().get(&owner_id) {
            let mut state = feed.state.lock();
            let events = match before {
                Some(before) if before <= state.cursor => state.hand_out(events),
                _ => Some(events),
            };
            let rest = events.map(|events| state.remember(events));
            if rest.is_some() || feed.is_waiting.load(Ordering::Relaxed) {
                feed.wake.notify_one();
            }
        }
    }

    pub(super) fn wake_all(&self) {
        self.watches.ring();
        for feed in self.tenants.lock().values() {
            feed.wake.notify_one();
        }
    }

    /// Joins the tenant's feed; the first subscriber starts it at its own `cursor`.
    pub(super) fn join(streams: &Arc<EventStreams>, owner_id: Uuid, cursor: i64) -> FeedReceiver {
        let (queue, receiver) = mpsc::channel(QUEUE_EVENTS);
        let waiting_bytes = Arc::new(AtomicUsize::new(0));
        let subscriber = Subscriber { queue, waiting_bytes: waiting_bytes.clone() };
        let mut tenants = streams.feeds.tenants.lock();
        let from = if let Some(feed) = tenants.get(&owner_id) {
            let mut state = feed.state.lock();
            state.subscribers.push(subscriber);
            state.cursor
        } else {
            let state = State { cursor, subscribers: vec![subscriber], fresh: BTreeMap::new(), fresh_bytes: 0 };
            let feed =
                Arc::new(Feed { wake: Notify::new(), is_waiting: AtomicBool::new(false), state: Mutex::new(state) });
            tenants.insert(owner_id, feed.clone());
            streams.database.tasks.spawn(run(streams.clone(), owner_id, feed));
            cursor
        };
        FeedReceiver { queue: receiver, waiting_bytes, from }
    }

    /// Removes the feed if it has no subscribers. Joining takes the same lock, so a subscriber
    /// cannot join a removed feed.
    fn retire(&self, owner_id: Uuid, feed: &Feed) -> bool {
        let mut tenants = self.tenants.lock();
        let mut state = feed.state.lock();
        state.subscribers.retain(|subscriber| !subscriber.queue.is_closed());
        let is_deserted = state.subscribers.is_empty();
        if is_deserted {
            tenants.remove(&owner_id);
        }
        is_deserted
    }
}

impl CommitListener for Feeds {
    fn committed(&self, commit: &Commit) {
        if commit.has_events {
            self.wake(commit.owner_id);
        } else {
            self.wake_waiting(commit.owner_id);
        }
    }
}

impl State {
    /// Hands these to every subscriber if they directly follow the last event. Otherwise returns
    /// them.
    fn hand_out(&mut self, events: Vec<WrittenEvent>) -> Option<Vec<WrittenEvent>> {
        let number = |written: &WrittenEvent| written.event.number.0;
        let Some(last) = events.last().map(number) else { return Some(events) };
        if events.first().map(number).is_none_or(|first| first <= self.cursor) {
            return Some(events);
        }
        let events: Vec<_> = events.into_iter().map(|event| Arc::new(SizedEvent::fresh(event))).collect();
        self.subscribers.retain(|subscriber| subscriber.take(&events));
        self.advance(last);
        None
    }

    fn remember(&mut self, events: Vec<WrittenEvent>) {
        for written in events {
            let number = written.event.number.0;
            let event = SizedEvent::fresh(written);
            if number > self.cursor && self.fresh_bytes + event.bytes <= QUEUE_BYTES {
                self.fresh_bytes += event.bytes;
                self.fresh.insert(number, Arc::new(event));
            }
        }
    }

    /// Everything up to this number has been handed out.
    fn advance(&mut self, cursor: i64) {
        self.cursor = cursor;
        while let Some(first) = self.fresh.first_entry()
            && *first.key() <= cursor
        {
            self.fresh_bytes -= first.remove().bytes;
        }
    }
}

async fn run(streams: Arc<EventStreams>, owner_id: Uuid, feed: Arc<Feed>) {
    let mut peek = PEEK_FIRST;
    let mut is_failing = false;
    let mut read_at: DateTime<Utc> = Utc::now();
    while !streams.feeds.retire(owner_id, &feed) {
        let (cursor, fresh) = {
            let state = feed.state.lock();
            (state.cursor, state.fresh.values().take(page::PAGE_EVENTS as usize).cloned().collect::<Vec<_>>())
        };
        let page = tokio::select! {
            () = streams.database.stop.cancelled() => break,
            page = page::read(&streams.database, owner_id, cursor, &fresh) => page,
        };
        let pause = match page {
            Ok(page) => {
                is_failing = false;
                if Utc::now() - read_at > GAP_IS_FINAL_AFTER {
                    feed.state.lock().subscribers.clear();
                }
                read_at = Utc::now();
                if let Some(last) = page.events.last() {
                    let mut state = feed.state.lock();
                    // Some may have been handed out during the read.
                    let news = page.events.partition_point(|event| event.event.number.0 <= state.cursor);
                    state.subscribers.retain(|subscriber| subscriber.take(&page.events[news..]));
                    let last = last.event.number.0.max(state.cursor);
                    state.advance(last);
                    peek = PEEK_FIRST;
                    if page.has_more {
                        continue;
                    }
                }
                feed.is_waiting.store(page.has_more, Ordering::Relaxed);
                if page.has_more {
                    peek = (peek * 2).min(PEEK_LONGEST);
                    peek
                } else {
                    peek = PEEK_FIRST;
                    POLL
                }
            }
            Err(failure) => {
                if !is_failing {
                    tracing::warn!(tenant = %owner_id, error = %StoreError::from(failure), "an event feed cannot read events; retrying");
                    is_failing = true;
                }
                RETRY
            }
        };
        tokio::select! {
            () = streams.database.stop.cancelled() => break,
            () = feed.wake.notified() => {}
            () = tokio::time::sleep(pause) => {}
        }
    }
}
