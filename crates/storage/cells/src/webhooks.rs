//! The webhooks of all cells, and their deliveries as one queue.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use async_trait::async_trait;
use futures::FutureExt as _;
use futures::future::select_all;
use rcrt_breadcrumb::{
    CallWebhook, DeadLetter, Deliveries, Delivery, DeliveryClaimRequest, DeliveryOutcome, NewWebhook, Retention,
    StoreError, Tenancy as _, WebhookInfo, WebhookSecret, Webhooks,
};
use uuid::Uuid;

use crate::routes::Routes;

type Result<T> = std::result::Result<T, StoreError>;

pub(crate) struct CellWebhooks {
    routes: Arc<Routes>,
}

impl CellWebhooks {
    pub(crate) fn new(routes: Arc<Routes>) -> Self {
        Self { routes }
    }

    fn of(&self, tenant: Uuid) -> Result<Arc<dyn Webhooks>> {
        Ok(self.routes.store(tenant)?.webhooks())
    }
}

#[async_trait]
impl Webhooks for CellWebhooks {
    async fn create_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        by: Uuid,
        webhook: NewWebhook,
    ) -> Result<WebhookInfo> {
        self.of(owner_id)?.create_webhook(owner_id, agent_id, by, webhook).await
    }

    async fn webhooks(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Vec<WebhookInfo>> {
        self.of(owner_id)?.webhooks(owner_id, agent_id).await
    }

    async fn delete_webhook(&self, owner_id: Uuid, agent_id: Uuid, by: Uuid, id: Uuid) -> Result<()> {
        self.of(owner_id)?.delete_webhook(owner_id, agent_id, by, id).await
    }

    async fn pause_webhook(&self, owner_id: Uuid, agent_id: Uuid, id: Uuid, paused: bool) -> Result<WebhookInfo> {
        self.of(owner_id)?.pause_webhook(owner_id, agent_id, id, paused).await
    }

    async fn create_call_webhook(&self, owner_id: Uuid, agent_id: Uuid, webhook: CallWebhook) -> Result<()> {
        self.of(owner_id)?.create_call_webhook(owner_id, agent_id, webhook).await
    }

    async fn call_webhooks(&self, owner_id: Uuid, agent_id: Uuid, request: Uuid) -> Result<Vec<CallWebhook>> {
        self.of(owner_id)?.call_webhooks(owner_id, agent_id, request).await
    }

    async fn delete_call_webhook(&self, owner_id: Uuid, agent_id: Uuid, request: Uuid, name: &str) -> Result<bool> {
        self.of(owner_id)?.delete_call_webhook(owner_id, agent_id, request, name).await
    }

    async fn set_webhook_secret(&self, owner_id: Uuid, agent_id: Uuid, by: Uuid, secret: WebhookSecret) -> Result<()> {
        self.of(owner_id)?.set_webhook_secret(owner_id, agent_id, by, secret).await
    }

    async fn dead_letters(&self, owner_id: Uuid, limit: u32, offset: u32) -> Result<Vec<DeadLetter>> {
        self.of(owner_id)?.dead_letters(owner_id, limit, offset).await
    }

    async fn retry_dead_letter(&self, owner_id: Uuid, id: Uuid) -> Result<()> {
        self.of(owner_id)?.retry_dead_letter(owner_id, id).await
    }

    async fn delete_dead_letter(&self, owner_id: Uuid, id: Uuid) -> Result<()> {
        self.of(owner_id)?.delete_dead_letter(owner_id, id).await
    }

    async fn delete_dead_letters(&self, owner_id: Uuid) -> Result<u64> {
        self.of(owner_id)?.delete_dead_letters(owner_id).await
    }
}

pub(crate) struct CellDeliveries {
    routes: Arc<Routes>,
    /// Each claim begins with another cell, so that none is always served last.
    turn: AtomicUsize,
}

impl CellDeliveries {
    pub(crate) fn new(routes: Arc<Routes>) -> Self {
        Self { routes, turn: AtomicUsize::new(0) }
    }

    fn queues(&self) -> Vec<Arc<dyn Deliveries>> {
        self.routes.all().iter().map(|store| store.deliveries()).collect()
    }
}

#[async_trait]
impl Deliveries for CellDeliveries {
    async fn claim(&self, request: &DeliveryClaimRequest) -> Result<Vec<Delivery>> {
        let mut queues = self.queues();
        let first = self.turn.fetch_add(1, Ordering::Relaxed) % queues.len();
        queues.rotate_left(first);
        let (mut claimed, mut failed) = (Vec::new(), None);
        for queue in queues {
            let most = request.most.saturating_sub(claimed.len());
            if most == 0 {
                break;
            }
            match queue.claim(&DeliveryClaimRequest { most, ..*request }).await {
                Ok(more) => claimed.extend(more),
                // A cell that does not respond holds up no other.
                Err(error) => failed = Some(error),
            }
        }
        failed.filter(|_| claimed.is_empty()).map_or(Ok(claimed), Err)
    }

    async fn complete(&self, delivery: &Delivery, outcome: &DeliveryOutcome) -> Result<()> {
        // The row has moved with its tenant, lease and fence included.
        self.routes.store(delivery.owner_id)?.deliveries().complete(delivery, outcome).await
    }

    async fn purge(&self, retention: &Retention) -> Result<usize> {
        let (mut purged, mut failed) = (0, None);
        for queue in self.queues() {
            match queue.purge(retention).await {
                Ok(more) => purged += more,
                Err(error) => failed = Some(error),
            }
        }
        failed.map_or(Ok(purged), Err)
    }

    async fn queued(&self) {
        let queues = self.queues();
        select_all(queues.iter().map(|queue| queue.queued().boxed())).await;
    }
}
