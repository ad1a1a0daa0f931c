//! One subscriber's reads: from the table until it has caught up, then from the tenant's feed, and
//! from the table again if it was too slow for the feed.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use futures::stream;
use rcrt_breadcrumb::{EventNumber, StoreError, SubscribeOptions, SubscriptionItem, SubscriptionStream, Violations};
use uuid::Uuid;

use super::feed::{FeedReceiver, Feeds};
use super::filter::EventFilter;
use super::page::{self, Page};
use super::sized_event::SizedEvent;
use super::snapshot::Snapshot;
use super::visibility::{EventAccess, SubscriberRights};
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::events::EventStreams;
use crate::events::selectors::SelectorMatch;

/// The pause between reads while the database does not respond.
const RETRY: Duration = Duration::from_millis(250);

/// Begins a subscription. Without a start number it begins with what commits after this call.
/// Events that do not match are reported as skipped, so that the subscriber's cursor advances.
pub(crate) async fn subscribe(
    streams: &Arc<EventStreams>,
    rights: SubscriberRights,
    agent: Uuid,
    options: SubscribeOptions,
) -> Result<SubscriptionStream> {
    let event_filter = EventFilter::of(streams, rights.tenant, agent, &options).await?;
    let (streams, after) = (streams.clone(), options.after);
    let mut tx = TenantTransaction::begin(&streams.database, rights.tenant).await?;
    let snapshot = page::current_snapshot(&mut tx).await?;
    if let Some(number) = after
        && page::is_lost(&mut tx, number).await?
    {
        let message = "names an event that a restore has undone; read the current records, and start without a number";
        return Err(Violations::one("last_event_id", message).into());
    }
    drop(tx);
    let (cursor, seen) = match after {
        // A subscriber with such a number would wait forever. A number that was handed out is
        // always lower than a later snapshot.
        Some(number) if snapshot.is_past(number.0) => {
            let message =
                "is above every event number of this database (was it restored from a copy?); start without a number";
            return Err(Violations::one("last_event_id", message).into());
        }
        Some(number) => (number.0, None),
        None => (snapshot.cursor(), Some(snapshot)),
    };
    let subscription =
        Subscription { streams, rights, event_filter, cursor, seen, missed: None, ready: VecDeque::new(), live: None };
    Ok(stream::unfold(Some(subscription), |subscription| async {
        let mut subscription = subscription?;
        match subscription.next().await {
            Ok(item) => Some((Ok(item), Some(subscription))),
            Err(error) => Some((Err(error), None)),
        }
    })
    .boxed())
}

/// A check that needs the database.
#[derive(Clone, Copy)]
enum Question {
    /// Does a grant still let the subscriber see the record?
    IsGranted,
    /// Can the subscriber get this response by its request id?
    CanGetResponse,
    /// Did the subscriber write the request that this answers?
    IsRequester,
}

struct Subscription {
    streams: Arc<EventStreams>,
    rights: SubscriberRights,
    event_filter: Option<EventFilter>,
    /// Everything up to this number was handed out or is in `ready`.
    cursor: i64,
    /// What had been committed when a subscription without a number began. Dropped when no such
    /// event can come any more.
    seen: Option<Snapshot>,
    /// To be sent before anything in `ready`: some events before this number were deleted unread.
    missed: Option<EventNumber>,
    /// Read from the table, not yet handed out.
    ready: VecDeque<Arc<SizedEvent>>,
    live: Option<FeedReceiver>,
}

impl Subscription {
    async fn next(&mut self) -> Result<SubscriptionItem, StoreError> {
        let stop = self.streams.database.stop.clone();
        loop {
            if let Some(first) = self.missed.take() {
                return Ok(SubscriptionItem::Missed { first });
            }
            if let Some(sized) = self.ready.pop_front() {
                if self.was_seen(sized.event.number.0) {
                    return Ok(SubscriptionItem::Skipped(sized.event.number));
                }
                let selector_match = match &self.event_filter {
                    Some(event_filter) => event_filter.matches(self.rights.tenant, &sized).await,
                    None => SelectorMatch::Always,
                };
                if !self.can_see(&sized, selector_match).await? {
                    return Ok(SubscriptionItem::Skipped(sized.event.number));
                }
                return Ok(SubscriptionItem::Event(sized.event.clone()));
            }
            tokio::select! {
                biased;
                () = stop.cancelled() => return Err(StoreError::Unavailable("the store is closing".into())),
                result = self.more() => result?,
            }
        }
    }

    /// Puts the next events into `ready`, or makes one step toward them.
    async fn more(&mut self) -> Result<(), StoreError> {
        if let Some(live) = &mut self.live
            && live.from <= self.cursor
        {
            match live.next().await {
                Some(event) if event.event.number.0 > self.cursor => {
                    self.cursor = event.event.number.0;
                    self.ready.push_back(event);
                }
                // Already read from the table.
                Some(_) => {}
                None => self.live = None,
            }
            return Ok(());
        }
        match self.read().await {
            Ok((mut page, forgotten)) => {
                if forgotten > self.cursor {
                    self.missed = Some(EventNumber(forgotten + 1));
                    self.cursor = forgotten;
                    // The events up to here are incomplete, and would look complete.
                    page.events.retain(|event| event.event.number.0 > forgotten);
                }
                if let Some(last) = page.events.last() {
                    self.cursor = last.event.number.0;
                    self.ready.extend(page.events);
                } else if self.missed.is_some() {
                    // The next read starts there.
                } else if let Some(live) = &self.live {
                    // There are no events between the cursor and the start of the feed.
                    self.cursor = live.from;
                } else {
                    self.live = Some(Feeds::join(&self.streams, self.rights.tenant, self.cursor));
                }
            }
            // The database restarts or is busy: the subscriber need not know.
            Err(error) if error.is_retryable() => tokio::time::sleep(RETRY).await,
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// In a separate task, so that a subscriber that is not polled (its reader is slow) does not
    /// hold a database connection.
    async fn read(&self) -> Result<(Page, i64), StoreError> {
        let (database, owner_id, cursor) = (self.streams.database.clone(), self.rights.tenant, self.cursor);
        let reading = self.streams.database.tasks.spawn(async move {
            let page = page::read(&database, owner_id, cursor, &[]).await?;
            Ok::<_, crate::database::failure::Failure>((page, page::forgotten(&database, owner_id).await?))
        });
        match reading.await {
            Ok(read) => Ok(read?),
            Err(error) => Err(StoreError::Internal(format!("reading events failed: {error}"))),
        }
    }

    /// An event that the subscriber cannot see only advances its cursor.
    async fn can_see(&mut self, sized: &Arc<SizedEvent>, selector_match: SelectorMatch) -> Result<bool, StoreError> {
        if selector_match == SelectorMatch::Never {
            return Ok(false);
        }
        let access = self.rights.access_to(sized.event.schema_name.as_deref(), &sized.visibility);
        match access {
            EventAccess::Denied => return Ok(false),
            EventAccess::IfRequester => return self.ask(sized, Question::IsRequester).await,
            EventAccess::Allowed | EventAccess::IfStillGranted => {}
        }
        let is_granted = access == EventAccess::Allowed || self.ask(sized, Question::IsGranted).await?;
        let is_for_asker = selector_match == SelectorMatch::RequesterOnly && !self.rights.sees_all();
        Ok(is_granted && (!is_for_asker || self.ask(sized, Question::CanGetResponse).await?))
    }

    /// Queries the database about one event until it responds.
    async fn ask(&self, sized: &Arc<SizedEvent>, question: Question) -> Result<bool, StoreError> {
        loop {
            let (database, rights, event) = (self.streams.database.clone(), self.rights, sized.clone());
            let asking = async move {
                match question {
                    Question::IsGranted => page::is_granted(&database, rights, &event.event).await,
                    Question::IsRequester => page::is_requester(&database, rights, &event.event).await,
                    Question::CanGetResponse => page::can_get_response(&database, rights, &event.event).await,
                }
            };
            match self.streams.database.tasks.spawn(asking).await {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(failure)) => {
                    let error = StoreError::from(failure);
                    if !error.is_retryable() || self.streams.database.stop.is_cancelled() {
                        return Err(error);
                    }
                    tokio::time::sleep(RETRY).await;
                }
                Err(error) => {
                    return Err(StoreError::Internal(format!("a visibility check of an event failed: {error}")));
                }
            }
        }
    }

    fn was_seen(&mut self, number: i64) -> bool {
        let Some(seen) = &self.seen else { return false };
        if seen.is_past(number) {
            self.seen = None;
            return false;
        }
        seen.saw(number)
    }
}
