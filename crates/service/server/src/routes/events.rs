//! The event stream: server-sent events, which a subscriber can resume after a lost connection.
//!
//! Nothing is buffered here: the next event is taken from the store only after the connection took
//! the last one. So a slow subscriber waits, and the server's memory does not grow.

use std::{convert::Infallible, sync::Arc, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue},
    response::{
        IntoResponse, Response,
        sse::{Event as Message, Sse},
    },
};
use chrono::{SecondsFormat, Utc};
use futures::StreamExt;
use rcrt_breadcrumb::{
    Breadcrumbs, Event, EventKind, EventNumber, Identity, Profile, Role, Selector, StoreError, SubscribeOptions,
    SubscriptionItem, SubscriptionStream,
};
use serde::Serialize;
use serde_json::{Map, Value, json};
use tokio::{
    sync::watch,
    time::{Instant, Interval, MissedTickBehavior},
};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::AuthMode;
use crate::ServerState;
use crate::auth::access::{Caller, current_identity};
use crate::auth::token::TicketUse;
use crate::http::headers::one_header;
use crate::http::json_body;
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::http::streams::StreamPermit;
use crate::routes::replies::{NoStore, NoStoreReply};

/// The time after which the subscribers of a server that stops reconnect.
const RECONNECT_DELAY: Duration = Duration::from_secs(1);
/// Bytes that most events fit into.
const USUAL_EVENT: usize = 1024;
/// Without it, a proxy that buffers responses would hold back every event.
pub(crate) const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));

/// The number of the newest event.
#[derive(Serialize, ToSchema)]
pub struct Latest {
    number: EventNumber,
}

/// Get the number of the newest event
///
/// 0 if there is none. A stream that starts after this number misses nothing from then on.
#[utoipa::path(get, path = "/events/latest", tag = "events", operation_id = "latest_event",
    responses((status = 200, body = Latest)))]
pub async fn latest(caller: Caller, query: Query) -> Result<axum::Json<Latest>, Problem> {
    query.finish()?;
    Ok(axum::Json(Latest { number: caller.store.latest_event().await? }))
}

/// One message of a stream, as an SSE parser returns it.
#[derive(Serialize, ToSchema)]
pub struct StreamMessage {
    /// The number after which to resume. If a message has none, the last one counts.
    id: Option<String>,
    /// As JSON text.
    #[schema(value_type = String)]
    data: StreamData,
}

/// The data of a message. Kinds can be added.
#[derive(Serialize, ToSchema)]
#[serde(untagged)]
#[allow(dead_code)] // Used only as a schema.
pub enum StreamData {
    Event(Event),
    Ping(Ping),
    Missed(Missed),
}

/// `{"type": "ping", "ts": …}`: the stream is alive.
#[derive(Serialize, ToSchema)]
pub struct Ping {
    #[serde(rename = "type")]
    kind: &'static str,
    ts: String,
}

/// `{"type": "missed", …}`: events after `after` and before `first` are no longer stored.
#[derive(Serialize, ToSchema)]
pub struct Missed {
    #[serde(rename = "type")]
    kind: &'static str,
    after: EventNumber,
    first: EventNumber,
}

/// A ticket for one event stream.
#[derive(Serialize, ToSchema)]
pub struct StreamTicket {
    /// For the URL of the stream: `/events/stream?ticket=…`. Valid once.
    ticket: String,
    /// Seconds in which the stream must be opened.
    expires_in: u64,
}

/// Get a ticket for an event stream
///
/// For browsers, whose `EventSource` sends no header. A URL can appear in logs, and a ticket is
/// useless after its first use. The stream has the rights of the token of this request, and closes
/// when that token expires.
#[utoipa::path(post, path = "/events/ticket", tag = "events", operation_id = "stream_ticket",
    responses((status = 200, body = StreamTicket)))]
pub async fn ticket(State(state): State<ServerState>, caller: Caller, query: Query) -> NoStoreReply<StreamTicket> {
    query.finish()?;
    let ticket = caller.ticket(&state, TicketUse::Stream)?;
    Ok(NoStore(StreamTicket { ticket, expires_in: TicketUse::Stream.time().as_secs() }))
}

/// Follow events
///
/// An endless stream of server-sent events: one for each change of a record that the agent can see,
/// with its number as `id:`. A client that names the last number it saw (`Last-Event-ID`) gets each
/// later event once, in order. Without that number the stream starts now. If the agent has
/// selectors, the stream has only events that match one of them; `filters` and the other parameters
/// narrow this stream further.
///
/// A ping (`{"type":"ping","ts":…}`) comes first, with the number from which the stream starts, and
/// then every 15 seconds, with the number up to which all events were examined. Events are stored
/// for 7 days. A client that was away for longer gets `{"type":"missed","after":…,"first":…}`
/// before the next event; from the number `first` on nothing is missing. The stream closes when the
/// token expires or is revoked, and when the agent's roles change.
#[utoipa::path(get, path = "/events/stream", tag = "events", operation_id = "stream_events",
    params(
        ("Last-Event-ID" = Option<i64>, Header, minimum = 0, description = "The last number seen; has precedence over `last_event_id`"),
        ("last_event_id" = Option<i64>, Query, minimum = 0, description = "The last number seen"),
        ("filters" = Option<String>, Query, description = "A selector, as JSON; repeat it for several, all of which must match the event"),
        ("schema_name" = Option<String>, Query, description = "Only records of this schema"),
        ("tag" = Option<Vec<String>>, Query, description = "The record has all of these tags"),
        ("all_tags" = Option<Vec<String>>, Query, description = "The same"),
        ("any_tags" = Option<Vec<String>>, Query, description = "The record has at least one of these tags"),
        ("agent_id" = Option<Uuid>, Query, description = "The stream of this agent: the caller itself, or any agent for curators"),
        ("all" = Option<bool>, Query, description = "`true`: ignore the agent's selectors"),
        ("ticket" = Option<String>, Query, description = "A ticket from `POST /events/ticket`, for browsers: an EventSource sends no header"),
    ),
    responses((status = 200, body = StreamMessage, content_type = "text/event-stream")))]
pub async fn stream(
    State(state): State<ServerState>,
    caller: Caller,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Problem> {
    // Checked before this: without `rcrt_compat` a token in the query is refused.
    query.take_all("ticket");
    for credential in ["token", "access_token"] {
        query.take_other(credential);
    }
    let asked = query.take_text("last_event_id");
    let filters = filters(&mut query, caller.identity.owner_id);
    let all = query.take_as("all", "true or false", false);
    let agent = query.take_as("agent_id", "the id of an agent, a UUID", caller.identity.agent_id);
    query.finish()?;
    // A browser that reconnects repeats the old query, but its header is current.
    let header = one_header(&headers, "last-event-id")?.filter(|text| !text.is_empty()).map(str::to_owned);
    let asked = asked.as_deref().map(number).transpose()?;
    let after = header.as_deref().map(number).transpose()?.or(asked);
    let store = as_agent(&state, &caller, agent).await?;
    let permit = state.streams.acquire(&state.stream_options, caller.identity.owner_id, caller.identity.agent_id)?;
    let start = match after {
        Some(number) => number,
        // The first ping names it, so that a stream that breaks before its first event can be
        // resumed without a gap. It is the newest number that is certainly complete, so such a
        // stream can have a few events from shortly before.
        None => store.latest_event().await?,
    };
    let followed = store.subscribe(SubscribeOptions { after, filters, by_selectors: !all }).await?;
    let new_as_updated = state.stream_options.new_as_updated && !all;
    let stream = SubscriberStream::new(state, caller, followed, start, new_as_updated, permit);
    let messages = futures::stream::unfold(stream, |mut stream| async move {
        let message = stream.next().await?;
        Some((Ok::<_, Infallible>(message), stream))
    });
    Ok(([UNBUFFERED], Sse::new(messages)).into_response())
}

fn number(text: &str) -> Result<EventNumber, Problem> {
    let number = text.parse().ok().filter(|number| *number >= 0).map(EventNumber);
    number.ok_or_else(|| Problem::invalid("last_event_id", "must be the number of an event, 0 or more"))
}

/// The filters of this stream. RCRT's clients also send the parts of a selector as separate
/// parameters, and its selectors can name the tenant.
fn filters(query: &mut Query, owner_id: Uuid) -> Vec<Selector> {
    let mut filters: Vec<Selector> = Vec::new();
    for mut parts in query.take_objects::<Map<String, Value>>("filters") {
        let owner = parts.remove("owner_id");
        if owner.is_some_and(|owner| !owner.is_null() && owner.as_str().map(Uuid::parse_str) != Some(Ok(owner_id))) {
            query.wrong("filters.owner_id", "must be the tenant of the token, or be left out");
        }
        match json_body::read_object::<Selector>(Value::Object(parts).to_string().as_bytes()) {
            Ok(filter) => {
                for violation in filter.check().err().into_iter().flat_map(|found| found.0) {
                    query.wrong(&format!("filters.{}", violation.field), violation.message);
                }
                filters.push(filter);
            }
            Err((field, message)) => query.wrong(&format!("filters.{field}"), message),
        }
    }
    let mut all_tags = query.take_all("tag");
    all_tags.extend(query.take_all("all_tags"));
    let any_tags = query.take_all("any_tags");
    let by_parts = Selector { any_tags, all_tags, schema_name: query.take_text("schema_name"), ..Selector::default() };
    for violation in by_parts.check().err().into_iter().flat_map(|found| found.0) {
        query.wrong(&violation.field, violation.message);
    }
    if !by_parts.is_empty() {
        filters.push(by_parts);
    }
    filters
}

/// The records as this agent sees them: the caller itself, or for curators any agent of the tenant.
async fn as_agent(state: &ServerState, caller: &Caller, agent_id: Uuid) -> Result<Arc<dyn Breadcrumbs>, Problem> {
    let own = &caller.identity;
    if agent_id == own.agent_id {
        return Ok(caller.store.clone());
    }
    if !own.has(Role::Curator) {
        return Err(Problem::forbidden("only a curator can follow events as another agent; leave agent_id out"));
    }
    let (roles, profile) = match state.tenancy.agent(own.owner_id, agent_id).await? {
        Some(agent) => (agent.roles, agent.profile),
        // In open mode the agent need not exist.
        None if state.auth == AuthMode::Open => (Role::ALL.to_vec(), Profile::Main),
        None => return Err(StoreError::NotFound { what: "agent", id: agent_id }.into()),
    };
    Ok(state.tenancy.acting_as(Identity { owner_id: own.owner_id, agent_id, roles, profile }))
}

/// One subscriber's connection.
struct SubscriberStream {
    state: ServerState,
    caller: Caller,
    followed: SubscriptionStream,
    /// The number from which the stream starts, until it is sent.
    start: Option<EventNumber>,
    /// Every event up to this number was sent, or is not for this subscriber.
    passed: EventNumber,
    /// The last number that was sent to the subscriber.
    sent: EventNumber,
    new_as_updated: bool,
    ping: Interval,
    /// Notifies when this server changes an agent or a tenant.
    changes: watch::Receiver<u64>,
    /// When the token expires. `None`: the stream continues after that.
    ends: Option<Instant>,
    /// Set at the shutdown: the number of the newest committed event then. The stream ends after
    /// it, so that a response that was written before the shutdown is not lost.
    last: Option<EventNumber>,
    /// The message about the shutdown was sent.
    has_announced_shutdown: bool,
    _permit: StreamPermit,
}

impl SubscriberStream {
    fn new(
        state: ServerState,
        caller: Caller,
        followed: SubscriptionStream,
        start: EventNumber,
        new_as_updated: bool,
        permit: StreamPermit,
    ) -> Self {
        let every = state.stream_options.ping_every;
        let mut ping = tokio::time::interval_at(Instant::now() + every, every);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let ends = expiry(&state, &caller);
        let (passed, sent) = (start, start);
        let changes = state.agent_cache.changes();
        let start = Some(start);
        Self {
            state,
            caller,
            followed,
            start,
            passed,
            sent,
            new_as_updated,
            ping,
            changes,
            ends,
            last: None,
            has_announced_shutdown: false,
            _permit: permit,
        }
    }

    async fn next(&mut self) -> Option<Message> {
        if let Some(start) = self.start.take() {
            return Some(ping().id(start.to_string()));
        }
        if self.has_announced_shutdown {
            return None;
        }
        loop {
            if self.last.is_some_and(|last| self.passed >= last) {
                self.has_announced_shutdown = true;
                return Some(shutdown_message());
            }
            tokio::select! {
                () = self.state.shutdown.cancelled(), if self.last.is_none() => {
                    self.last = Some(self.caller.store.newest_committed_event().await.unwrap_or(self.passed));
                    self.ends = Some(Instant::now() + self.state.stream_options.flush_time);
                }
                () = passed(self.ends) => match self.last {
                    None => return None,
                    Some(_) => self.last = Some(self.passed),
                },
                followed = self.followed.next() => match followed? {
                    Ok(SubscriptionItem::Event(event)) => {
                        self.mark_sent(event.number);
                        return message(&event, self.new_as_updated);
                    }
                    Ok(SubscriptionItem::Skipped(number)) => self.passed = self.passed.max(number),
                    Ok(SubscriptionItem::Missed { first }) => return Some(self.missed(first)),
                    Err(error) => {
                        tracing::warn!(%error, "an event stream failed; its subscriber can resume it");
                        return None;
                    }
                },
                Ok(()) = self.changes.changed() => {
                    if !is_still_authorized(&self.state, &self.caller).await {
                        return None;
                    }
                }
                _ = self.ping.tick() => {
                    if !is_still_authorized(&self.state, &self.caller).await {
                        return None;
                    }
                    if self.passed == self.sent {
                        return Some(ping());
                    }
                    self.mark_sent(self.passed);
                    return Some(ping().id(self.sent.to_string()));
                }
            }
        }
    }

    fn mark_sent(&mut self, number: EventNumber) {
        self.passed = number;
        self.sent = number;
    }

    fn missed(&mut self, first: EventNumber) -> Message {
        let after = self.passed;
        self.mark_sent(EventNumber(first.0 - 1));
        Message::default().id(self.sent.to_string()).data(json!(Missed { kind: "missed", after, first }).to_string())
    }
}

/// When the caller's token expires. `None`: its streams continue after that.
pub(crate) fn expiry(state: &ServerState, caller: &Caller) -> Option<Instant> {
    let left = caller.expires_at.saturating_sub(jsonwebtoken::get_current_timestamp());
    // Some clocks cannot represent a time that is years away.
    (!state.rcrt_compat).then(|| Instant::now() + Duration::from_secs(left.min(366 * 24 * 3600)))
}

/// Whether the agent exists, has the same roles as when its stream began, and its token is not
/// revoked.
pub(crate) async fn is_still_authorized(state: &ServerState, caller: &Caller) -> bool {
    let Caller { identity, token, .. } = caller;
    current_identity(state, identity, *token).await.is_ok_and(|(current, _)| current.roles == identity.roles)
}

pub(crate) async fn passed(ends: Option<Instant>) {
    match ends {
        Some(ends) => tokio::time::sleep_until(ends).await,
        None => std::future::pending().await,
    }
}

/// Not an event: clients of server-sent events reconnect after this time, with their last number.
fn shutdown_message() -> Message {
    Message::default().retry(RECONNECT_DELAY).comment("the server is stopping; connect again")
}

fn ping() -> Message {
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Secs, true);
    Message::default().data(json!(Ping { kind: "ping", ts: now }).to_string())
}

fn message(event: &Event, new_as_updated: bool) -> Option<Message> {
    let updated = (new_as_updated && event.kind == EventKind::Created)
        .then(|| Event { kind: EventKind::Updated, ..event.clone() });
    // Made here, because `json_data` allocates again and again as the message grows.
    let mut text = Vec::with_capacity(USUAL_EVENT);
    let written = serde_json::to_writer(&mut text, updated.as_ref().unwrap_or(event));
    match written.map(|()| String::from_utf8_lossy(&text)) {
        Ok(text) => Some(Message::default().id(event.number.to_string()).data(text)),
        Err(error) => {
            tracing::error!(%error, "an event cannot be serialized");
            None
        }
    }
}
