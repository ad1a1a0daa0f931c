//! The trait [`Events`].

use async_trait::async_trait;

use crate::{EventNumber, EventStream, StoreError, SubscribeOptions, SubscriptionStream};

/// The events of a tenant.
#[async_trait]
pub trait Events: Send + Sync + 'static {
    /// Returns the number of the newest event that a subscriber could have seen, or 0 if there is
    /// none.
    async fn latest_event(&self) -> Result<EventNumber, StoreError>;

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
