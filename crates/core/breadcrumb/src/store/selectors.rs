//! The trait [`Selectors`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{Selector, SelectorSubscription, StoreError};

/// The selectors of an agent's event streams.
#[async_trait]
pub trait Selectors: Send + Sync + 'static {
    /// Adds a selector. From now on the agent's streams carry only events that match one of its
    /// selectors. [`StoreError::Invalid`] if the agent already has
    /// [`MAX_SELECTORS`](crate::MAX_SELECTORS).
    async fn create_selector(&self, selector: Selector) -> Result<SelectorSubscription, StoreError>;

    /// Lists the agent's selectors, oldest first.
    async fn selectors(&self) -> Result<Vec<SelectorSubscription>, StoreError>;

    /// Replaces a selector. This applies to open streams too.
    async fn update_selector(&self, id: Uuid, selector: Selector) -> Result<SelectorSubscription, StoreError>;

    /// Deletes a selector. After the last one is deleted, the agent's streams carry all events
    /// again.
    async fn delete_selector(&self, id: Uuid) -> Result<(), StoreError>;
}
