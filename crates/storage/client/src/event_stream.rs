//! A subscription that survives lost connections: each event once, in order, across restarts of the
//! server.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures::{StreamExt, stream::BoxStream};
use rcrt_breadcrumb::{Event, EventNumber, StoreError, SubscribeOptions, SubscriptionItem, SubscriptionStream};
use reqwest::{
    StatusCode,
    header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE},
};
use serde::Deserialize;

use crate::{
    Client, problem,
    request::{ATTEMPTS, pause, reason},
    sse::{Message, messages},
};

/// The server pings every 15 seconds. After three missed pings the connection is treated as dead.
const PING_TIMEOUT: Duration = Duration::from_secs(45);
/// The timeout for the head of the server's response.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
const CLOSED: &str = "the server closed the stream";
/// How often in a row the same event can be unreadable before the stream fails.
const UNREADABLE: u32 = 5;

/// Follows events after a number, or from now on. The first connection is made before this returns,
/// so that an invalid token is an error at once.
pub(crate) async fn subscribe(client: Client, options: SubscribeOptions) -> Result<SubscriptionStream, StoreError> {
    let asked = asked(&options)?;
    let last = options.after;
    let mut subscription = Subscription { client, asked, last, connection: None, failures: 0, unreadable: 0 };
    while let Some(error) = subscription.reconnect().await? {
        if subscription.failures == ATTEMPTS {
            return Err(error);
        }
    }
    let events = futures::stream::unfold(Some(subscription), |subscription| async move {
        let mut subscription = subscription?;
        match subscription.next().await {
            Ok(item) => Some((Ok(item), Some(subscription))),
            // The last item.
            Err(error) => Some((Err(error), None)),
        }
    });
    Ok(events.boxed())
}

/// The query of a stream.
fn asked(options: &SubscribeOptions) -> Result<Vec<(&'static str, String)>, StoreError> {
    let mut asked = Vec::new();
    for filter in &options.filters {
        let text = serde_json::to_string(filter)
            .map_err(|error| StoreError::Internal(format!("cannot serialize to JSON: {error}")))?;
        asked.push(("filters", text));
    }
    if !options.by_selectors {
        asked.push(("all", "true".to_owned()));
    }
    Ok(asked)
}

struct Subscription {
    client: Client,
    asked: Vec<(&'static str, String)>,
    /// The newest number seen. Always set after the first connection: the server's first ping names
    /// the number where the stream starts.
    last: Option<EventNumber>,
    connection: Option<Connection>,
    /// Consecutive connections that failed before they delivered anything.
    failures: u32,
    unreadable: u32,
}

impl Subscription {
    async fn next(&mut self) -> Result<SubscriptionItem, StoreError> {
        loop {
            let Some(connection) = &mut self.connection else {
                self.reconnect().await?;
                continue;
            };
            match connection.next().await {
                Ok(message) => {
                    self.failures = 0;
                    if let Some(item) = self.take(&message)? {
                        return Ok(item);
                    }
                }
                Err(why) => {
                    tracing::debug!(why, last = ?self.last, "the event stream failed; reconnecting");
                    self.connection = None;
                }
            }
        }
    }

    /// One attempt. Returns the error of one that can be repeated.
    async fn reconnect(&mut self) -> Result<Option<StoreError>, StoreError> {
        if self.failures > 0 {
            tokio::time::sleep(pause(self.failures)).await;
        }
        // Counted before the attempt, because a connection that breaks before its first message is
        // also a failure.
        self.failures = self.failures.saturating_add(1);
        match Connection::open(&self.client, &self.asked, self.last).await {
            Ok((connection, start)) => {
                self.connection = Some(connection);
                self.last = self.last.or(start);
                Ok(None)
            }
            Err(error) if error.is_retryable() => {
                tracing::debug!(%error, attempt = self.failures, "the event stream cannot be reached yet");
                Ok(Some(error))
            }
            Err(error) => Err(error),
        }
    }

    /// The item in the message, if it is new.
    fn take(&mut self, message: &Message) -> Result<Option<SubscriptionItem>, StoreError> {
        match read(message) {
            Ok(None) => Ok(None),
            Ok(Some(item)) => {
                self.unreadable = 0;
                let number = match &item {
                    SubscriptionItem::Event(event) => event.number,
                    SubscriptionItem::Skipped(number) => *number,
                    SubscriptionItem::Missed { first } => EventNumber(first.0 - 1),
                };
                let news = Some(number) > self.last;
                self.last = self.last.max(Some(number));
                Ok(news.then_some(item))
            }
            Err(why) => {
                self.connection = None;
                self.unreadable += 1;
                if self.unreadable >= UNREADABLE {
                    let last = self.last.unwrap_or_default();
                    return Err(StoreError::Internal(format!("the event after {last} cannot be read: {why}")));
                }
                Ok(None)
            }
        }
    }
}

/// The item in the message; `None` for a ping without a number and for unknown kinds.
fn read(message: &Message) -> Result<Option<SubscriptionItem>, String> {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
        first: Option<EventNumber>,
    }
    // Nearly every message is an event. Other kinds are only considered if this fails.
    let event = match serde_json::from_str::<Event>(&message.data) {
        Ok(event) => event,
        Err(error) => {
            let Kind { kind, first } = serde_json::from_str(&message.data).map_err(|error| error.to_string())?;
            return match (kind.as_str(), first) {
                ("ping", _) => Ok(message.id.parse().ok().map(|number| SubscriptionItem::Skipped(EventNumber(number)))),
                ("missed", Some(first)) => Ok(Some(SubscriptionItem::Missed { first })),
                (kind, _) if kind.starts_with("breadcrumb.") => Err(error.to_string()),
                _ => Ok(None),
            };
        }
    };
    let number = message.id.parse().map_err(|_| format!("{:?} is not an event number", message.id))?;
    Ok(Some(SubscriptionItem::Event(Arc::new(Event { number: EventNumber(number), ..event }))))
}

struct Connection(BoxStream<'static, Result<Message, String>>);

impl Connection {
    /// A connection that has sent its first message, and the number where it starts.
    async fn open(
        client: &Client,
        asked: &[(&'static str, String)],
        last: Option<EventNumber>,
    ) -> Result<(Self, Option<EventNumber>), StoreError> {
        let bytes = Self::request(client, asked, last).await?;
        let bytes = futures::stream::unfold(bytes, |mut bytes| async move {
            let part = match tokio::time::timeout(PING_TIMEOUT, bytes.next()).await {
                Ok(Some(part)) => part.map_err(|error| reason(&error)),
                Ok(None) => Err(CLOSED.to_owned()),
                Err(_) => Err("no data arrived, not even a ping".to_owned()),
            };
            Some((part, bytes))
        });
        let mut connection = Self(messages(bytes));
        let hello = connection.next().await.map_err(StoreError::Unavailable)?;
        let start = hello.id.parse().ok().map(EventNumber);
        if !matches!(read(&hello), Ok(None | Some(SubscriptionItem::Skipped(_)))) {
            // Not a ping, but already an item.
            let all = futures::stream::iter([Ok(hello)]).chain(connection.0);
            return Ok((Self(all.boxed()), None));
        }
        Ok((connection, start))
    }

    async fn request(
        client: &Client,
        asked: &[(&'static str, String)],
        last: Option<EventNumber>,
    ) -> Result<BoxStream<'static, reqwest::Result<Bytes>>, StoreError> {
        let mut renewed = false;
        loop {
            let authorization = client.authorization().await?;
            let mut sending = client
                .http()?
                .get(client.url(&["events", "stream"])?)
                .query(asked)
                .header(ACCEPT, "text/event-stream")
                .header(AUTHORIZATION, &authorization);
            if let Some(agent) = client.on_behalf_of {
                sending = sending.header("x-acting-for", agent.to_string());
            }
            if let Some(last) = last {
                sending = sending.header("last-event-id", last.to_string());
            }
            let answer = tokio::time::timeout(RESPONSE_TIMEOUT, sending.send())
                .await
                .map_err(|_| StoreError::Unavailable("no response in time".into()))?
                .map_err(|error| StoreError::Unavailable(reason(&error)))?;
            let status = answer.status();
            if status.is_success() {
                let kind = answer.headers().get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or("none");
                if kind.starts_with("text/event-stream") {
                    return Ok(answer.bytes_stream().boxed());
                }
                let message = format!("the server's response is invalid: its type is {kind}, not an event stream");
                return Err(StoreError::Internal(format!("{message}; check the address")));
            }
            if status == StatusCode::UNAUTHORIZED && !renewed && client.tokens.refused(&authorization) {
                renewed = true;
                continue;
            }
            let headers = answer.headers().clone();
            let body = tokio::time::timeout(RESPONSE_TIMEOUT, answer.bytes()).await;
            return Err(problem::error(
                status,
                &headers,
                body.ok().and_then(Result::ok).as_deref().unwrap_or_default(),
            ));
        }
    }

    async fn next(&mut self) -> Result<Message, String> {
        self.0.next().await.unwrap_or_else(|| Err(CLOSED.to_owned()))
    }
}
