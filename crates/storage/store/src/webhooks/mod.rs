//! Webhooks: where agents receive events, and the queue of deliveries.
//!
//! Writers do not know webhooks. A follower of events ([`follower`]) writes a row for each webhook
//! and event. A deliverer claims rows under a lease and records the outcome ([`delivering`]).
//! Deliveries that were given up become dead letters ([`dead_letters`]).

mod dead_letters;
mod delivering;
mod follower;
mod of_calls;
mod registering;
mod signing;

use std::sync::Arc;

use async_trait::async_trait;
use rcrt_breadcrumb::{
    CallWebhook, DeadLetter, Deliveries, Delivery, DeliveryClaimRequest, DeliveryOutcome, NewWebhook, Retention,
    StoreError, WebhookInfo, WebhookSecret, Webhooks,
};
use tokio::sync::Notify;
use uuid::Uuid;

pub(crate) use self::follower::WebhookFollower;
use crate::database::Database;
use crate::database::failure::{Result, retrying};
use crate::database::transaction::TenantTransaction;
use crate::secrets::EnvelopeCipher;

/// The most queued deliveries of one webhook. Above it, the webhook is paused: its receiver does
/// not keep up.
pub const MOST_WAITING: i64 = 10_000;
/// The most bytes of one webhook's queued deliveries.
pub const MOST_WAITING_BYTES: i64 = 256 * 1024 * 1024;

/// The store's implementation of `Webhooks` and `Deliveries`.
pub(crate) struct WebhookStore {
    database: Arc<Database>,
    cipher: Arc<EnvelopeCipher>,
    /// Notified when deliveries may be queued.
    deliveries_queued: Notify,
}

impl WebhookStore {
    pub(crate) fn new(database: Arc<Database>, cipher: Arc<EnvelopeCipher>) -> Self {
        Self { database, cipher, deliveries_queued: Notify::new() }
    }

    async fn begin(&self, owner_id: Uuid) -> Result<TenantTransaction> {
        TenantTransaction::begin(&self.database, owner_id).await
    }
}

#[async_trait]
impl Webhooks for WebhookStore {
    async fn create_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        by: Uuid,
        webhook: NewWebhook,
    ) -> Result<WebhookInfo, StoreError> {
        webhook.check()?;
        Ok(registering::create(self.begin(owner_id).await?, agent_id, by, &webhook).await?)
    }

    async fn webhooks(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Vec<WebhookInfo>, StoreError> {
        Ok(registering::list(&mut self.begin(owner_id).await?, agent_id, None).await?)
    }

    async fn delete_webhook(&self, owner_id: Uuid, agent_id: Uuid, by: Uuid, id: Uuid) -> Result<(), StoreError> {
        retrying!(async { registering::delete(self.begin(owner_id).await?, agent_id, by, id).await })
    }

    async fn pause_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        id: Uuid,
        paused: bool,
    ) -> Result<WebhookInfo, StoreError> {
        let webhook = registering::pause(self.begin(owner_id).await?, agent_id, id, paused).await?;
        self.deliveries_queued.notify_one();
        Ok(webhook)
    }

    async fn create_call_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        webhook: CallWebhook,
    ) -> Result<(), StoreError> {
        webhook.check()?;
        Ok(of_calls::create(self.begin(owner_id).await?, &self.cipher, agent_id, &webhook).await?)
    }

    async fn call_webhooks(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        request: Uuid,
    ) -> Result<Vec<CallWebhook>, StoreError> {
        Ok(of_calls::list(&mut self.begin(owner_id).await?, agent_id, request).await?)
    }

    async fn delete_call_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        request: Uuid,
        name: &str,
    ) -> Result<bool, StoreError> {
        retrying!(async { of_calls::delete(self.begin(owner_id).await?, agent_id, request, name).await })
    }

    async fn set_webhook_secret(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        by: Uuid,
        secret: WebhookSecret,
    ) -> Result<(), StoreError> {
        secret.check()?;
        let tx = self.begin(owner_id).await?;
        Ok(signing::set(tx, &self.cipher, agent_id, by, &secret.secret).await?)
    }

    async fn dead_letters(&self, owner_id: Uuid, limit: u32, offset: u32) -> Result<Vec<DeadLetter>, StoreError> {
        Ok(dead_letters::list(&mut self.begin(owner_id).await?, limit, offset).await?)
    }

    async fn retry_dead_letter(&self, owner_id: Uuid, id: Uuid) -> Result<(), StoreError> {
        dead_letters::retry(self.begin(owner_id).await?, id).await?;
        self.deliveries_queued.notify_one();
        Ok(())
    }

    async fn delete_dead_letter(&self, owner_id: Uuid, id: Uuid) -> Result<(), StoreError> {
        Ok(dead_letters::delete(self.begin(owner_id).await?, id).await?)
    }

    async fn delete_dead_letters(&self, owner_id: Uuid) -> Result<u64, StoreError> {
        Ok(dead_letters::delete_all(self.begin(owner_id).await?).await?)
    }
}

#[async_trait]
impl Deliveries for WebhookStore {
    async fn claim(&self, request: &DeliveryClaimRequest) -> Result<Vec<Delivery>, StoreError> {
        Ok(delivering::claim(&self.database, &self.cipher, request).await?)
    }

    async fn complete(&self, delivery: &Delivery, outcome: &DeliveryOutcome) -> Result<(), StoreError> {
        retrying!(async { delivering::complete(self.begin(delivery.owner_id).await?, delivery, outcome).await })
    }

    async fn purge(&self, retention: &Retention) -> Result<usize, StoreError> {
        let ended = of_calls::purge(&self.database).await?;
        Ok(ended + delivering::purge(&self.database, retention).await?)
    }

    async fn queued(&self) {
        self.deliveries_queued.notified().await;
    }
}
