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

use crate::{Host, PrivateHost, Purpose, Selector, StoreError, Violations, is_localhost, special_purpose};

/// The most webhooks of one agent.
pub const MAX_WEBHOOKS: usize = 20;
/// The most [`CallWebhook`]s of one agent.
pub const MAX_CALL_WEBHOOKS: usize = 100;
const CALL_WEBHOOK_NAME_CHARS: std::ops::RangeInclusive<usize> = 1..=200;
/// The most bytes of a call webhook's header fields, names and values.
const MAX_HEADERS: usize = 8192;
const MAX_URL: usize = 2048;
const SECRET_CHARS: std::ops::RangeInclusive<usize> = 8..=500;

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewWebhook {
    /// An absolute http or https URL without a user name or password; at most 2048 bytes. Each
    /// delivery checks that it leads to the public internet.
    #[schema(max_length = 2048, format = "uri")]
    pub url: String,
    /// Which events are posted. Without it: the events that the agent's stored selectors match, or
    /// all that the agent can see if it has none.
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
    let url = Url::parse(text).map_err(|error| format!("is not an absolute URL ({error}); {RIGHT}"))?;
    if !matches!(url.scheme(), "http" | "https") {
        return Err(format!("has the scheme {:?}; {RIGHT}", url.scheme()));
    }
    if !url.username().is_empty() || url.password().is_some() {
        return Err("has a user name or password, which is not sent; let the receiver verify the signature".into());
    }
    if Host::of(&url).is_none() || url.port() == Some(0) {
        return Err(format!("has no host and port to connect to; {RIGHT}"));
    }
    Ok(())
}

/// Where the updates of one call are posted, in the form of A2A. It is deleted some minutes after
/// the call has ended.
#[derive(Clone, PartialEq, Eq)]
pub struct CallWebhook {
    /// The record of the call's request.
    pub request: Uuid,
    /// The `request_id` of the request, by which the events of the call are found.
    pub request_id: String,
    /// Unique among the webhooks of the call.
    pub name: String,
    pub url: String,
    /// The conversation of the call.
    pub context_id: String,
    /// Header fields of each delivery. They are stored encrypted, and lists leave them out.
    pub headers: Vec<(String, String)>,
}

impl CallWebhook {
    /// The names of the violations' fields are those of a push configuration of A2A.
    pub fn check(&self) -> Result<(), Violations> {
        let mut found = Violations::default();
        if let Err(message) = check_url(&self.url) {
            found.add("url", message);
        }
        if !CALL_WEBHOOK_NAME_CHARS.contains(&self.name.chars().count()) || self.name.contains(char::is_control) {
            found.add("id", "must have 1 to 200 characters, none of them a control character");
        }
        let bytes: usize = self.headers.iter().map(|(name, value)| name.len() + value.len()).sum();
        let is_sendable = |text: &str| text.bytes().all(|byte| (b' '..=b'~').contains(&byte));
        if bytes > MAX_HEADERS || !self.headers.iter().all(|(_, value)| is_sendable(value)) {
            let message = format!("must have printable ASCII characters only, at most {MAX_HEADERS} together");
            found.add("token and authentication", message);
        }
        found.into_result()
    }
}

impl fmt::Debug for CallWebhook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { request, name, url, .. } = self;
        f.debug_struct("CallWebhook")
            .field("request", request)
            .field("name", name)
            .field("url", url)
            .finish_non_exhaustive()
    }
}

/// Refuses a host that is certainly private, unless the operator allowed it: each delivery would be
/// refused. Names are resolved only by the deliveries.
pub fn check_webhook_host(allowed: &[PrivateHost], url: &str) -> Result<(), Violations> {
    // An invalid URL is refused elsewhere, with what is wrong with it.
    let Ok(url) = Url::parse(url) else { return Ok(()) };
    let (Some(host), Some(port)) = (Host::of(&url), url.port_or_known_default()) else { return Ok(()) };
    let purpose = match &host {
        Host::Address(address) => special_purpose(*address),
        Host::Name(name) if is_localhost(name) => Some(Purpose::Loopback),
        Host::Name(_) => None,
    };
    let is_allowed = |private: &PrivateHost| private.allows("webhooks", &host, port);
    let Some(purpose) = purpose.filter(|_| !allowed.iter().any(is_allowed)) else { return Ok(()) };
    let fix = if purpose.is_private_use() {
        format!("the operator can allow it with --allow-private-host webhooks={host}:{port}")
    } else {
        "it cannot be allowed".into()
    };
    Err(Violations::one("url", format!("leads to {host}, which is not on the public internet ({purpose}); {fix}")))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum WebhookState {
    Active,
    /// Nothing is queued or sent.
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
    /// Why it is paused: by request, or because of the receiver's responses.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paused_because: Option<String>,
    /// Consecutive failed attempts.
    pub failures: u32,
    /// After many failures: no attempt is made before this time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_until: Option<DateTime<Utc>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_error: Option<String>,
    /// The time of the last successful delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_at: Option<DateTime<Utc>>,
    /// Queued deliveries, counted up to 10,000.
    pub waiting: u32,
    pub created_at: DateTime<Utc>,
}

/// The secret that signs deliveries.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct WebhookSecret {
    /// 8 to 500 characters: `whsec_` and 24 to 64 bytes in base64, as in Standard Webhooks, or any
    /// text, whose bytes are the key.
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
    /// The event that was posted.
    #[schema(value_type = Object)]
    pub payload: Value,
    /// The error of the last attempt.
    pub last_error: String,
    pub attempts: u32,
    /// When it was given up.
    pub created_at: DateTime<Utc>,
}

/// A tenant's webhooks and dead letters. The server checks rights before it calls these methods.
/// `by` is the agent that acts, for the audit log.
#[async_trait]
pub trait Webhooks: Send + Sync + 'static {
    /// Creates a webhook for events from now on. [`StoreError::Invalid`] if the agent already has
    /// [`MAX_WEBHOOKS`].
    async fn create_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        by: Uuid,
        webhook: NewWebhook,
    ) -> Result<WebhookInfo, StoreError>;

    /// Lists an agent's webhooks, oldest first.
    async fn webhooks(&self, owner_id: Uuid, agent_id: Uuid) -> Result<Vec<WebhookInfo>, StoreError>;

    /// Deletes a webhook, its queued deliveries and its dead letters.
    async fn delete_webhook(&self, owner_id: Uuid, agent_id: Uuid, by: Uuid, id: Uuid) -> Result<(), StoreError>;

    /// Pauses a webhook, or resumes it at once with the deliveries that are queued.
    async fn pause_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        id: Uuid,
        paused: bool,
    ) -> Result<WebhookInfo, StoreError>;

    /// Creates a webhook for the events of a call from now on, in place of the one with its name.
    /// [`StoreError::Invalid`] if the agent already has [`MAX_CALL_WEBHOOKS`].
    async fn create_call_webhook(&self, owner_id: Uuid, agent_id: Uuid, webhook: CallWebhook)
    -> Result<(), StoreError>;

    /// Lists the webhooks of a call that the agent created, oldest first, without their headers.
    async fn call_webhooks(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        request: Uuid,
    ) -> Result<Vec<CallWebhook>, StoreError>;

    /// Deletes a webhook of a call, and its queued deliveries. Returns whether there was one.
    async fn delete_call_webhook(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        request: Uuid,
        name: &str,
    ) -> Result<bool, StoreError>;

    /// Sets the secret that signs all deliveries of the agent from now on.
    async fn set_webhook_secret(
        &self,
        owner_id: Uuid,
        agent_id: Uuid,
        by: Uuid,
        secret: WebhookSecret,
    ) -> Result<(), StoreError>;

    /// Lists dead letters, newest first. Returns at most `limit`, and fewer if payloads are large,
    /// but at least one if any exists.
    async fn dead_letters(&self, owner_id: Uuid, limit: u32, offset: u32) -> Result<Vec<DeadLetter>, StoreError>;

    /// Queues a dead letter again, with a new count of attempts.
    async fn retry_dead_letter(&self, owner_id: Uuid, id: Uuid) -> Result<(), StoreError>;

    async fn delete_dead_letter(&self, owner_id: Uuid, id: Uuid) -> Result<(), StoreError>;

    /// Deletes all dead letters. Returns how many.
    async fn delete_dead_letters(&self, owner_id: Uuid) -> Result<u64, StoreError>;
}

/// One attempt of a delivery, under a lease.
#[derive(Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The same for all attempts.
    pub id: Uuid,
    pub owner_id: Uuid,
    pub webhook_id: Uuid,
    pub url: String,
    /// The event's JSON text, byte for byte.
    pub payload: String,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// Time since the delivery was queued.
    pub age: Duration,
    /// The webhook's consecutive failed attempts before this one.
    pub failures: u32,
    /// The agent's signing secret, if it has one.
    pub secret: Option<String>,
    /// For a [`CallWebhook`].
    pub call: Option<DeliveryOfCall>,
    pub fence: i64,
}

/// What the delivery of a [`CallWebhook`] is made of, besides the event.
#[derive(Clone, PartialEq, Eq)]
pub struct DeliveryOfCall {
    pub request: Uuid,
    pub context_id: String,
    pub headers: Vec<(String, String)>,
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

/// The result of an attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeliveryOutcome {
    Delivered,
    /// Retry after this time. `hold`: send nothing to the webhook for this time.
    Retry {
        error: String,
        after: Duration,
        hold: Option<Duration>,
    },
    /// The delivery is given up.
    Dead {
        error: String,
        hold: Option<Duration>,
    },
    /// The receiver wants no further deliveries: this one is given up, and the webhook is paused.
    Gone {
        error: String,
    },
}

/// The limits of one claim of deliveries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeliveryClaimRequest {
    pub most: usize,
    /// Concurrent deliveries of one webhook, over all servers.
    pub per_webhook: usize,
    /// A webhook with this many consecutive failures gets one delivery at a time.
    pub slow_from: u32,
    pub lease: Duration,
}

/// How long deliveries are retained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retention {
    /// A delivery that is queued longer is given up.
    pub waiting: Duration,
    /// An older dead letter is deleted.
    pub dead: Duration,
    /// The most dead letters of a tenant. The oldest are deleted first.
    pub most_dead: u32,
}

/// The queue of deliveries of all tenants, for the deliverer.
#[async_trait]
pub trait Deliveries: Send + Sync + 'static {
    /// Claims due deliveries under leases, in the order of the events for each webhook. One
    /// webhook's backlog does not delay another's deliveries.
    async fn claim(&self, request: &DeliveryClaimRequest) -> Result<Vec<Delivery>, StoreError>;

    /// Records the result of an attempt. If its lease was lost, nothing changes.
    async fn complete(&self, delivery: &Delivery, outcome: &DeliveryOutcome) -> Result<(), StoreError>;

    /// Gives up and deletes what is too old. Returns how many.
    async fn purge(&self, retention: &Retention) -> Result<usize, StoreError>;

    /// Returns when something may have been queued since the last call. This is a hint; the
    /// deliverer also polls.
    async fn queued(&self);
}
