//! Webhooks: where an agent's events are posted, the outcome of deliveries, and the traits for
//! both.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{Host, Selector, StoreError, Violations};

/// The most webhooks of one agent.
pub const MAX_WEBHOOKS: usize = 20;
const MAX_URL: usize = 2048;
const SECRET_CHARS: std::ops::RangeInclusive<usize> = 8..=500;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// Absolute, http or https, without a user name or password; at most 2048 bytes. That it leads to the public internet is
    /// judged at each delivery.
    #[schema(max_length = 2048, format = "uri")]
    pub url: String,
    /// Which events are posted. Without it: those that the agent's own selectors admit, and all that the agent may see if it
    /// has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    /// For people; at most 1000 characters.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(max_length = 1000)]
    pub description: Option<String>,
}

impl NewWebhook {
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if let Err(message) = check_url(&self.url) {
            found.add("url", message);
        }
        if let Some(description) = &self.description {
            found.optional_text("description", description, 1000);
        }
        if let Some(Err(inner)) = self.selector.as_ref().map(Selector::check) {
            for violation in inner.0 {
                found.add(format!("selector.{}", violation.field), violation.message);
            }
        }
        found.into_result()
    }
}

fn check_url(text: &str) -> Result<(), String> {
    const RIGHT: &str = "write one like https://example.com/hook";
    if text.len() > MAX_URL {
        return Err(format!("has {} bytes; at most {MAX_URL} are allowed", text.len()));
    }
    if text.contains(|c: char| c.is_control() || c.is_whitespace()) {
        return Err(format!("has a space or a control character; {RIGHT}"));
    }
    let url = Url::parse(text).map_err(|error| format!("is no absolute URL ({error}); {RIGHT}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("has the scheme {:?}; {RIGHT}", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user name or password, which is not sent; let the receiver verify the signature".into());
    }
    if Host::of(&url).is_none() || url.port() == Some(0) {
        return Err(format!("names no host and port that can be dialled; {RIGHT}"));
    }
    Ok(())
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookState {
    Active,
    /// Nothing is queued for it, and nothing sent.
    Paused,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct WebhookInfo {
    pub id: Uuid,
    pub agent_id: Uuid,
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub selector: Option<Selector>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    pub state: WebhookState,
    /// Of a paused one: that somebody asked for it, or what the receiver did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_because: Option<String>,
    /// Attempts in a row that failed.
    pub failures: u32,
    /// While many failed: nothing is tried before then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_until: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The last time that the receiver took one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<DateTime<Utc>>,
    /// What is queued now, counted to 10,000.
    pub waiting: u32,
    pub created_at: DateTime<Utc>,
}

/// What deliveries are signed with.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookSecret {
    /// 8 to 500 characters. `whsec_` and 24 to 64 bytes in base64, as Standard Webhooks has it, or any text, whose bytes are the
    /// key.
    #[schema(min_length = 8, max_length = 500)]
    pub secret: String,
}

impl WebhookSecret {
    pub fn check(&self) -> Result<(), Violations> {
        let characters = self.secret.chars().count();
        if !SECRET_CHARS.contains(&characters) || self.secret.contains('\0') {
            let message =
                format!("must have {} to {} characters, none of them NUL", SECRET_CHARS.start(), SECRET_CHARS.end());
            return Err(Violations::one("secret", message));
        }
        Ok(())
    }
}

impl fmt::Debug for WebhookSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WebhookSecret(…)")
    }
}

/// A delivery that was given up.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct DeadLetter {
    /// The `webhook-id` of its attempts, also of those after a retry.
    pub id: Uuid,
    pub webhook_id: Uuid,
    pub agent_id: Uuid,
    pub url: String,
    /// The event, as it was posted.
    #[schema(value_type = Object)]
    pub payload: Value,
    /// What came of the last attempt.
    pub last_error: String,
    pub attempts: u32,
    /// When it was given up.
    pub created_at: DateTime<Utc>,
}

/// A tenant's webhooks and dead letters, as a server sees them. Who may ask is judged before. `by` is the agent that does it,
/// for the audit log.
#[async_trait]
pub trait Webhooks: Send + Sync + 'static {
    /// Events from now on are posted. [`StoreError::Invalid`] on `url` when the agent has [`MAX_WEBHOOKS`].
    async fn create_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        by: Uuid,
        webhook: NewWebhook,
    ) -> Result<WebhookInfo, StoreError>;

    /// An agent's webhooks, the oldest first.
    async fn webhooks(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Vec<WebhookInfo>, StoreError>;

    /// What waits for it, and its dead letters, end with it.
    async fn delete_webhook(&self, owner_id: Uuid, agent_id: Uuid, by: Uuid, id: Uuid) -> Result<(), StoreError>;

    /// Pauses it, or lets it go on at once, with what waited.
    async fn pause_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        id: Uuid,
        paused: bool,
    ) -> Result<WebhookInfo, StoreError>;

    /// Signs all deliveries of the agent from now on.
    async fn set_webhook_secret(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        by: Uuid,
        secret: WebhookSecret,
    ) -> Result<(), StoreError>;

    /// The newest first. At most `limit`, and fewer where payloads are large, but one where there is one.
    async fn dead_letters(&self, owner_id: Uuid, limit: u32, offset: u32) -> Result<Vec<DeadLetter>, StoreError>;

    /// Queues it again, as if it had never been tried.
    async fn retry_dead_letter(&self, owner_id: Uuid, id: Uuid) -> Result<(), StoreError>;

    async fn delete_dead_letter(&self, owner_id: Uuid, id: Uuid) -> Result<(), StoreError>;

    /// All of them. Gives how many.
    async fn delete_dead_letters(&self, owner_id: Uuid) -> Result<u64, StoreError>;
}

/// One attempt, held under a lease.
#[derive(Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The same for all attempts.
    pub id: Uuid,
    pub owner_id: Uuid,
    pub webhook_id: Uuid,
    pub url: String,
    /// The event's JSON, to the byte.
    pub payload: String,
    /// From 1, this one included.
    pub attempt: u32,
    /// How long ago it was queued.
    pub age: Duration,
    /// The webhook's attempts in a row that failed before this one.
    pub failures: u32,
    /// The agent's signing secret, if it has one.
    pub secret: Option<String>,
    pub fence: i64,
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, webhook_id, attempt, fence, .. } = self;
        f.debug_struct("Delivery")
            .field("id", id)
            .field("webhook_id", webhook_id)
            .field("attempt", attempt)
            .field("fence", fence)
            .finish_non_exhaustive()
    }
}

/// What became of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    Delivered,
    /// Again after this long. `hold`: nothing at all goes to the webhook for so long.
    Retry {
        error: String,
        after: Duration,
        hold: Option<Duration>,
    },
    /// Given up.
    Dead {
        error: String,
        hold: Option<Duration>,
    },
    /// The receiver wants no more: given up, and the webhook is paused.
    Gone {
        error: String,
    },
}

/// How much is taken at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryClaimRequest {
    pub most: usize,
    /// Of one webhook under way at the same time, on all servers together.
    pub per_webhook: usize,
    /// A webhook with so many failures in a row gets one at a time.
    pub slow_from: u32,
    pub lease: Duration,
}

/// How long deliveries are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// One that waits longer is given up.
    pub waiting: Duration,
    /// A dead one that is older is forgotten.
    pub dead: Duration,
    /// The most dead ones of a tenant; the oldest are forgotten.
    pub most_dead: u32,
}

/// The queue of deliveries of all tenants, as who delivers sees it.
#[async_trait]
pub trait Deliveries: Send + Sync + 'static {
    /// Takes what is due under leases: of each webhook in the order of the events. No webhook's backlog keeps out another's.
    async fn take(&self, taking: &DeliveryClaimRequest) -> Result<Vec<Delivery>, StoreError>;

    /// Ends an attempt. Of one whose lease was lost nothing changes.
    async fn settle(&self, delivery: &Delivery, settlement: &Settlement) -> Result<(), StoreError>;

    /// Gives up and forgets what is too old. Gives how many.
    async fn tidy(&self, retention: &Retention) -> Result<usize, StoreError>;

    /// Returns when something may have been queued since the last call. A hint: who delivers looks now and then all the same.
    async fn queued(&self);
}
