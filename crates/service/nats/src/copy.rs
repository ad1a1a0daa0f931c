//! The copy of all events. It connects when the first event comes, and makes the stream if there is
//! none.

use std::fmt;
use std::time::{Duration, Instant};

use async_trait::async_trait;
use rcrt_breadcrumb::{Event, EventSink, StoreError};
use serde_json::{Value, json};
use tokio::sync::Mutex;

use crate::connection::error_of;
use crate::message::PREFIX;
use crate::{Address, Connection, Message, NatsError};

/// How long the server is not asked after it failed. The events of all tenants wait for it.
const REST: Duration = Duration::from_secs(1);
/// How long the stream of a server without one keeps events.
const MAX_AGE: Duration = Duration::from_hours(7 * 24);
/// How long the stream remembers numbers, to store an event that comes again only once.
const DUPLICATE_WINDOW: Duration = Duration::from_mins(10);
/// The code of JetStream for a stream that does not exist.
const NOT_FOUND: i64 = 404;

/// Copies events to one stream.
pub struct NatsCopy {
    address: Address,
    stream: String,
    /// What the ids of its messages begin with: numbers are unique in one database only.
    id_prefix: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    connection: Option<Connection>,
    /// Until when it rests, and why.
    failed: Option<(Instant, String)>,
}

impl NatsCopy {
    pub fn new(address: Address, stream: String) -> Self {
        Self { address, stream, id_prefix: String::new(), state: Mutex::default() }
    }

    /// The same stream for the events of another database with this name.
    #[must_use]
    pub fn of_cell(&self, name: &str) -> Self {
        let id_prefix = format!("{name}:");
        Self { address: self.address.clone(), stream: self.stream.clone(), id_prefix, state: Mutex::default() }
    }

    async fn connect(&self) -> Result<Connection, NatsError> {
        let mut connection = Connection::connect(&self.address).await?;
        let stream = &self.stream;
        let info = connection.request(&format!("$JS.API.STREAM.INFO.{stream}"), &Value::Null).await?;
        if info["error"]["code"].as_i64() == Some(NOT_FOUND) {
            let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
            let wanted = json!({
                "name": stream, "subjects": [format!("{PREFIX}.>")], "retention": "limits", "discard": "old",
                "storage": "file", "num_replicas": 1, "max_consumers": -1, "max_msgs": -1, "max_bytes": -1,
                "max_age": nanos(MAX_AGE), "duplicate_window": nanos(DUPLICATE_WINDOW),
            });
            let created = connection.request(&format!("$JS.API.STREAM.CREATE.{stream}"), &wanted).await?;
            if let Some(reason) = error_of(&created) {
                return Err(NatsError::NotStored { reason });
            }
            tracing::info!(stream, "the stream for the copies of events was created");
        } else if let Some(reason) = error_of(&info) {
            return Err(NatsError::NotStored { reason });
        }
        Ok(connection)
    }

    /// Publishes on the connection that is kept, or on a new one.
    async fn publish(&self, state: &mut State, events: &[Event]) -> Result<(), NatsError> {
        loop {
            let kept = state.connection.take();
            let was_kept = kept.is_some();
            let mut connection = match kept {
                Some(connection) => connection,
                None => self.connect().await?,
            };
            let messages = events.iter().map(|event| Message::of(event, &self.id_prefix, connection.max_payload()));
            let messages = messages.collect::<Result<Vec<_>, _>>();
            let messages = messages.map_err(|error| NatsError::NotStored { reason: error.to_string() })?;
            match connection.publish(&messages).await {
                Ok(()) => {
                    state.connection = Some(connection);
                    return Ok(());
                }
                // The server closes connections that were idle for long.
                Err(error) if was_kept && error.is_of_connection() => {}
                Err(error) => return Err(error),
            }
        }
    }
}

#[async_trait]
impl EventSink for NatsCopy {
    async fn send(&self, events: &[Event]) -> Result<(), StoreError> {
        let mut state = self.state.lock().await;
        if let Some((until, why)) = &state.failed
            && Instant::now() < *until
        {
            return Err(StoreError::Unavailable(why.clone()));
        }
        let published = self.publish(&mut state, events).await;
        state.failed = published.as_ref().err().map(|error| (Instant::now() + REST, error.to_string()));
        published.map_err(|error| StoreError::Unavailable(error.to_string()))
    }
}

impl fmt::Debug for NatsCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the stream {} at {:?}", self.stream, self.address)
    }
}
