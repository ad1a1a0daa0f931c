//! Events: one for each change of a record; and subscriptions to them.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::names::names;
use crate::{EventContext, Selector, StoreError};

/// An event's number in its tenant's order. Numbers grow but are not dense. A subscriber that names
/// the last number it saw receives every later event once, in order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize, ToSchema)]
#[serde(transparent)]
pub struct EventNumber(pub i64);

impl fmt::Display for EventNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub enum EventKind {
    #[serde(rename = "breadcrumb.created")]
    Created,
    #[serde(rename = "breadcrumb.updated")]
    Updated,
    #[serde(rename = "breadcrumb.deleted")]
    Deleted,
}

names!(EventKind, "kind of event", {
    Created => "breadcrumb.created",
    Updated => "breadcrumb.updated",
    Deleted => "breadcrumb.deleted",
});

/// One change of one record. `context` is the record's after the change (before it, for a
/// deletion). It is empty in the events of requests and responses that are past their retention.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Event {
    /// Not part of the JSON: on the wire it is the SSE `id`.
    #[serde(skip)]
    pub number: EventNumber,
    #[serde(rename = "type")]
    pub kind: EventKind,
    pub breadcrumb_id: Uuid,
    pub owner_id: Uuid,
    pub version: i64,
    pub tags: Vec<String>,
    pub schema_name: Option<String>,
    pub updated_at: DateTime<Utc>,
    #[schema(value_type = Object)]
    pub context: EventContext,
    /// The record's `sensitivity` is `secret`, so its context is empty here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub redacted: bool,
    /// The record is private, so not all agents of the tenant receive its events.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub private: bool,
}

/// Where a copy of all events goes, after they were committed.
#[async_trait]
pub trait EventSink: fmt::Debug + Send + Sync + 'static {
    /// Takes these events of one tenant, in the order of their numbers. After an error they come
    /// again, also those that were taken.
    async fn send(&self, events: &[Event]) -> Result<(), StoreError>;
}

/// An endless stream of events, in order. After an error it ends.
/// All subscribers share the events.
pub type EventStream = BoxStream<'static, Result<Arc<Event>, StoreError>>;

/// Which of the events that an agent can see its stream carries.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SubscribeOptions {
    /// Everything after this number; `None` starts with the next event.
    pub after: Option<EventNumber>,
    /// Only events that match all of these selectors.
    pub filters: Vec<Selector>,
    /// Only events that match one of the agent's stored selectors, as they are at the time of the
    /// event. All events while the agent has none.
    pub by_selectors: bool,
}

impl SubscribeOptions {
    /// Everything after this number.
    pub fn all(after: Option<EventNumber>) -> Self {
        Self { after, ..Self::default() }
    }
}

/// One item of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriptionItem {
    Event(Arc<Event>),
    /// The event with this number is not for this subscriber. Resuming after it misses nothing.
    Skipped(EventNumber),
    /// Some events after the subscriber's position are no longer stored. From `first` on, none is
    /// missing.
    Missed {
        first: EventNumber,
    },
}

/// An endless stream of [`SubscriptionItem`]s, in the order of their numbers. After an error it
/// ends.
pub type SubscriptionStream = BoxStream<'static, Result<SubscriptionItem, StoreError>>;

/// Only the events. If some were missed, the stream ends with [`StoreError::EventsMissed`].
pub(crate) fn events_of(followed: SubscriptionStream) -> EventStream {
    stream::unfold(Some(followed), |followed| async {
        let mut followed = followed?;
        loop {
            return Some(match followed.next().await? {
                Ok(SubscriptionItem::Event(event)) => (Ok(event), Some(followed)),
                Ok(SubscriptionItem::Skipped(_)) => continue,
                Ok(SubscriptionItem::Missed { first }) => (Err(StoreError::EventsMissed { first }), None),
                Err(error) => (Err(error), None),
            });
        }
    })
    .boxed()
}
