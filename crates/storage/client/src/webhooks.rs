//! Webhooks of agents, and the dead letters of a tenant.

use rcrt_breadcrumb::{DeadLetter, NewWebhook, StoreError, WebhookInfo, WebhookSecret};
use reqwest::Method;
use uuid::Uuid;

use crate::{
    Client,
    agents::Acknowledged,
    request::{Request, RetryPolicy},
};

impl Client {
    /// Posts the agent's events to a URL from now on. Requires a curator for other agents than the
    /// caller.
    pub async fn create_webhook(&self, agent: Uuid, webhook: &NewWebhook) -> Result<WebhookInfo, StoreError> {
        let agent = agent.to_string();
        let path = ["agents", &agent, "webhooks"];
        let request = Request::new(Method::POST, &path, RetryPolicy::IfNotProcessed);
        Ok(self.send(request.json(webhook)?).await?)
    }

    /// The agent's webhooks, the oldest first.
    pub async fn webhooks(&self, agent: Uuid) -> Result<Vec<WebhookInfo>, StoreError> {
        let agent = agent.to_string();
        Ok(self.send(Request::new(Method::GET, &["agents", &agent, "webhooks"], RetryPolicy::Idempotent)).await?)
    }

    pub async fn delete_webhook(&self, agent: Uuid, id: Uuid) -> Result<(), StoreError> {
        self.delete_at(&["agents", &agent.to_string(), "webhooks", &id.to_string()], None).await
    }

    /// Pauses or resumes a webhook.
    pub async fn pause_webhook(&self, agent: Uuid, id: Uuid, paused: bool) -> Result<WebhookInfo, StoreError> {
        let (agent, id, what) = (agent.to_string(), id.to_string(), if paused { "pause" } else { "resume" });
        let path = ["agents", &agent, "webhooks", &id, what];
        let request = Request::new(Method::POST, &path, RetryPolicy::Idempotent);
        Ok(self.send(request).await?)
    }

    /// Sets the secret that signs the agent's deliveries from now on.
    pub async fn set_webhook_secret(&self, agent: Uuid, secret: &WebhookSecret) -> Result<(), StoreError> {
        let agent = agent.to_string();
        let path = ["agents", &agent, "secret"];
        let request = Request::new(Method::POST, &path, RetryPolicy::Idempotent).json(secret)?;
        self.send::<Acknowledged>(request).await?;
        Ok(())
    }

    /// Failed deliveries, newest first; at most `limit` (1 to 1000). The last page is empty.
    /// Requires a curator.
    pub async fn dead_letters(&self, limit: u32, offset: u32) -> Result<Vec<DeadLetter>, StoreError> {
        let mut request = Request::new(Method::GET, &["dlq"], RetryPolicy::Idempotent);
        request.query = vec![("limit", limit.to_string()), ("offset", offset.to_string())];
        Ok(self.send(request).await?)
    }

    /// Queues a delivery again, as if it were new. Requires a curator.
    pub async fn retry_dead_letter(&self, id: Uuid) -> Result<(), StoreError> {
        let id = id.to_string();
        let path = ["dlq", &id, "retry"];
        self.send::<Acknowledged>(Request::new(Method::POST, &path, RetryPolicy::IfNotProcessed)).await?;
        Ok(())
    }

    /// Requires a curator.
    pub async fn delete_dead_letter(&self, id: Uuid) -> Result<(), StoreError> {
        self.delete_at(&["dlq", &id.to_string()], None).await
    }

    /// Deletes all of them. Requires a curator.
    pub async fn delete_dead_letters(&self) -> Result<(), StoreError> {
        self.delete_at(&["dlq"], None).await
    }
}
