//! Event streams, and the selectors of the agent's streams.

use async_trait::async_trait;
use rcrt_breadcrumb::{
    EventNumber, Events, Selector, SelectorSubscription, Selectors, StoreError, SubscribeOptions, SubscriptionStream,
};
use uuid::Uuid;

use super::TenantStore;
use crate::database::failure::retrying;
use crate::events::{self, SubscriberRights, selectors};

#[async_trait]
impl Events for TenantStore {
    async fn latest_event(&self) -> Result<EventNumber, StoreError> {
        Ok(events::latest(&mut self.begin().await?).await?)
    }

    async fn newest_committed_event(&self) -> Result<EventNumber, StoreError> {
        Ok(events::newest_committed(&mut self.begin().await?).await?)
    }

    async fn subscribe(&self, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
        let rights = SubscriberRights::new(self.owner_id, self.actor().await?, self.sees_all().await?);
        Ok(events::subscribe(&self.store.streams, rights, self.actor.on_behalf_of, options).await?)
    }
}

#[async_trait]
impl Selectors for TenantStore {
    async fn create_selector(&self, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        selector.check()?;
        let created =
            retrying!(async { selectors::create(self.begin().await?, self.actor.on_behalf_of, &selector).await });
        created.map(|(selector, kept)| self.refresh_open_selectors(selector, &kept))
    }

    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError> {
        Ok(selectors::list(&mut self.begin().await?, self.actor.on_behalf_of).await?)
    }

    async fn selectors_of(&self, agent: Uuid) -> Result<Vec<SelectorSubscription>, StoreError> {
        Ok(selectors::list(&mut self.begin().await?, agent).await?)
    }

    async fn update_selector(&self, id: Uuid, selector: Selector) -> Result<SelectorSubscription, StoreError> {
        selector.check()?;
        let updated =
            retrying!(async { selectors::update(self.begin().await?, self.actor.on_behalf_of, id, &selector).await });
        updated.map(|(selector, kept)| self.refresh_open_selectors(selector, &kept))
    }

    async fn delete_selector(&self, id: Uuid) -> Result<(), StoreError> {
        let deleted = retrying!(async { selectors::delete(self.begin().await?, self.actor.on_behalf_of, id).await });
        deleted.map(|kept| self.refresh_open_selectors((), &kept))
    }
}

impl TenantStore {
    /// Updates the agent's open streams with its new selectors.
    fn refresh_open_selectors<T>(&self, answer: T, kept: &selectors::VersionedSelectors) -> T {
        self.store.streams.selectors.apply(self.owner_id, self.actor.on_behalf_of, kept);
        self.store.streams.announcer.announce_selectors(self.owner_id);
        answer
    }
}
