//! The traits [`Events`] and [`Selectors`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    EventNumber, EventStream, Selector, SelectorSubscription, StoreError, SubscribeOptions, SubscriptionStream,
};

/// The events of a tenant.
#[async_trait]
pub trait Events: Send + Sync + 'static {
    /// Returns the number of the newest event that a subscriber could have seen, or 0 if there is
    /// none.
    async fn latest_event(&self) -> Result<EventNumber, StoreError>;

    /// Returns the number of the newest committed event, or 0 if there is none. Subscribers may not
    /// have it yet: an event is held back while a transaction that began earlier still runs. A
    /// subscriber that has received it has received every event that was committed before this
    /// call.
    async fn newest_committed_event(&self) -> Result<EventNumber, StoreError> {
        self.latest_event().await
    }

    /// Subscribes to events. The stream yields each past event after `options.after` once, in
    /// order, then each new one when it commits. It covers the tenant's records except those that
    /// are private to other agents, and records that are shared with the agent by a `subscribe`
    /// grant. For events that the subscriber does not receive, it yields what is needed to resume
    /// ([`SubscriptionItem`](crate::SubscriptionItem)).
    ///
    /// [`StoreError::Invalid`] for an invalid filter, and for a number beyond the newest event.
    /// Dropping the stream ends the subscription.
    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError>;

    /// Returns every event after this number that the agent can see, whatever its selectors say.
    /// `None` starts with the next event. If events after the number are no longer stored, the
    /// stream ends with [`StoreError::EventsMissed`].
    async fn events(&self, after: Option<EventNumber>) -> Result<EventStream, StoreError> {
        Ok(crate::event::events_of(self.subscribe(SubscribeOptions::all(after)).await?))
    }
}

/// The selectors of an agent's event streams. By default a store has none.
#[async_trait]
pub trait Selectors: Send + Sync + 'static {
    /// Adds a selector. From now on the agent's streams carry only events that match one of its
    /// selectors. [`StoreError::Invalid`] if the agent already has
    /// [`MAX_SELECTORS`](crate::MAX_SELECTORS).
    async fn create_selector(&self, _selector: Selector) -> Result<SelectorSubscription, StoreError> {
        Err(no_selectors())
    }

    /// Lists the agent's selectors, oldest first.
    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError> {
        Ok(Vec::new())
    }

    /// Lists the selectors of an agent of the tenant, oldest first. For curators. A store without
    /// agents returns none.
    async fn selectors_of(&self, _agent: Uuid) -> Result<Vec<SelectorSubscription>, StoreError> {
        Ok(Vec::new())
    }

    /// Replaces a selector. This applies to open streams too.
    async fn update_selector(&self, _id: Uuid, _selector: Selector) -> Result<SelectorSubscription, StoreError> {
        Err(no_selectors())
    }

    /// Deletes a selector. After the last one is deleted, the agent's streams carry all events
    /// again.
    async fn delete_selector(&self, _id: Uuid) -> Result<(), StoreError> {
        Err(no_selectors())
    }
}

fn no_selectors() -> StoreError {
    StoreError::Internal("this store has no selectors".into())
}
