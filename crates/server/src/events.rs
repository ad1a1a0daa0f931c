//! The event stream: server-sent events that a subscriber can take up again where it was cut off.
//!
//! Nothing is buffered here: the next event is taken from the store only when the connection took the last one, so a
//! slow subscriber waits and the server's memory does not grow.

use std::{convert::Infallible, time::Duration};

use axum::{
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue},
    response::{
        IntoResponse, Response,
        sse::{Event as Message, Sse},
    },
};
use breadcrumb::{Event, EventNumber, EventStream};
use futures::StreamExt;
use serde::Serialize;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use utoipa::ToSchema;

use crate::{
    ServerState,
    access::{Caller, present_roles},
    metrics::OpenStream,
    one_header::one_header,
    problem::Problem,
    query::Query,
};

/// How often a stream without events says that it lives.
const PING_EVERY: Duration = Duration::from_secs(15);
/// A proxy that collects an answer before it passes it on would hold every event back.
const UNBUFFERED: (HeaderName, HeaderValue) =
    (HeaderName::from_static("x-accel-buffering"), HeaderValue::from_static("no"));
const PING: &str = r#"{"type":"ping"}"#;

/// The number of the newest event.
#[derive(Serialize, ToSchema)]
pub struct Latest {
    number: EventNumber,
}

/// The number of the newest event
///
/// 0 when there is none. A stream that starts after it misses nothing from here on.
#[utoipa::path(get, path = "/events/latest", tag = "events", operation_id = "latest_event",
    responses((status = 200, body = Latest)))]
pub async fn latest(caller: Caller, query: Query) -> Result<axum::Json<Latest>, Problem> {
    query.finish(&[])?;
    Ok(axum::Json(Latest { number: caller.store.latest_event().await? }))
}

/// Follow events
///
/// Server-sent events without end: one for each change of a record, with its number as `id:`. Who names the last number
/// it saw (`Last-Event-ID`) gets every later event once, in order; who names none starts now. A ping
/// (`{"type":"ping"}`) comes first, with the number from which the stream starts, and every 15 seconds. The stream ends
/// with the token.
#[utoipa::path(get, path = "/events/stream", tag = "events", operation_id = "stream_events",
    params(
        ("Last-Event-ID" = Option<i64>, Header, description = "The last number seen; goes before `last_event_id`"),
        ("last_event_id" = Option<i64>, Query, description = "The last number seen"),
        ("token" = Option<String>, Query, description = "The token, for browsers: an EventSource sends no header"),
    ),
    responses((status = 200, body = Event, content_type = "text/event-stream")))]
pub async fn stream(
    State(state): State<ServerState>,
    caller: Caller,
    headers: HeaderMap,
    mut query: Query,
) -> Result<Response, Problem> {
    query.take_all("token");
    let asked = query.take_text("last_event_id");
    query.finish(&["last_event_id", "token"])?;
    // A browser that reconnects repeats the old query, but its header is new.
    let header = one_header(&headers, "last-event-id")?.filter(|text| !text.is_empty()).map(str::to_owned);
    let after = header.or(asked).as_deref().map(number).transpose()?;
    let start = match after {
        Some(number) => number,
        // Told in the first ping, so that a stream cut off before its first event can be taken up without a gap. (It
        // is the newest number that is sure to be complete, so such a stream may hear a few events from just before.)
        None => caller.store.latest_event().await?,
    };
    let events = caller.store.events(after).await?;
    let feed = Feed::new(state, caller, events, start);
    let messages = futures::stream::unfold(feed, |mut feed| async move {
        let message = feed.next().await?;
        Some((Ok::<_, Infallible>(message), feed))
    });
    Ok(([UNBUFFERED], Sse::new(messages)).into_response())
}

fn number(text: &str) -> Result<EventNumber, Problem> {
    let number = text.parse().ok().filter(|number| *number >= 0).map(EventNumber);
    number.ok_or_else(|| Problem::invalid("last_event_id", "must be the number of an event, 0 or more"))
}

/// One subscriber's connection.
struct Feed {
    state: ServerState,
    caller: Caller,
    events: EventStream,
    start: Option<EventNumber>,
    ping: Interval,
    ends: Instant,
    _open: OpenStream,
}

impl Feed {
    fn new(state: ServerState, caller: Caller, events: EventStream, start: EventNumber) -> Self {
        let mut ping = tokio::time::interval_at(Instant::now() + PING_EVERY, PING_EVERY);
        ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let left = caller.expires_at.saturating_sub(jsonwebtoken::get_current_timestamp());
        // Some clocks cannot name a moment years away.
        let ends = Instant::now() + Duration::from_secs(left.min(366 * 24 * 3600));
        Self { state, caller, events, start: Some(start), ping, ends, _open: OpenStream::new() }
    }

    async fn next(&mut self) -> Option<Message> {
        if let Some(start) = self.start.take() {
            return Some(Message::default().id(start.to_string()).data(PING));
        }
        tokio::select! {
            () = self.state.shutdown.cancelled() => None,
            () = tokio::time::sleep_until(self.ends) => None,
            event = self.events.next() => match event? {
                Ok(event) => message(&event),
                Err(error) => {
                    tracing::warn!(%error, "an event stream ended; its subscriber will come back");
                    None
                }
            },
            _ = self.ping.tick() => {
                let roles = present_roles(&self.state, &self.caller.identity).await.ok()?;
                (!roles.is_empty()).then(|| Message::default().data(PING))
            }
        }
    }
}

fn message(event: &Event) -> Option<Message> {
    match serde_json::to_string(event) {
        Ok(text) => Some(Message::default().id(event.number.to_string()).data(text)),
        Err(error) => {
            tracing::error!(%error, "an event could not be written as JSON");
            None
        }
    }
}
