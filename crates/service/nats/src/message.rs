//! What an event looks like in the stream.

use std::fmt::Write as _;

use rcrt_breadcrumb::{Event, EventContext};

/// All subjects begin with this.
pub(crate) const PREFIX: &str = "rcrt";
/// The stream stores a message with the number of an earlier one only once.
const MESSAGE_ID: &str = "Nats-Msg-Id";
const KIND: &str = "Rcrt-Event";
/// The event is larger than what the server takes, and has no context.
const OMITTED: &str = "Rcrt-Context";

/// A message to be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Message {
    pub subject: String,
    pub headers: Vec<(&'static str, String)>,
    pub payload: Vec<u8>,
}

impl Message {
    /// `most`: the bytes that the server takes. The payload is the event as `GET /events/stream`
    /// sends it.
    pub(crate) fn of(event: &Event, id_prefix: &str, most: usize) -> Result<Self, serde_json::Error> {
        let id = format!("{id_prefix}{}", event.number);
        let mut headers = vec![(MESSAGE_ID, id), (KIND, event.kind.as_str().to_owned())];
        let mut payload = serde_json::to_vec(event)?;
        if payload.len() + header_text(&headers).len() > most {
            let bare = Event { context: EventContext::default(), ..event.clone() };
            headers.push((OMITTED, "omitted".to_owned()));
            payload = serde_json::to_vec(&bare)?;
        }
        Ok(Self { subject: subject(event), headers, payload })
    }
}

/// The headers as they are sent, with the empty line at their end.
pub(crate) fn header_text(headers: &[(&'static str, String)]) -> String {
    let mut text = String::from("NATS/1.0\r\n");
    for (name, value) in headers {
        text.extend([*name, ": ", value.as_str(), "\r\n"]);
    }
    text.push_str("\r\n");
    text
}

/// `rcrt.<tenant>.<schema name>`, with the dots of the schema name, so that a consumer can take
/// `rcrt.<tenant>.tool.>`. A record without a schema has `_`.
fn subject(event: &Event) -> String {
    let schema = event.schema_name.as_deref().unwrap_or("_");
    let parts: Vec<String> = schema.split('.').map(part).collect();
    format!("{PREFIX}.{}.{}", event.owner_id, parts.join("."))
}

/// A part of a subject has no spaces and wildcards and is not empty: others become `%` and two
/// hexadecimal digits.
fn part(text: &str) -> String {
    if text.is_empty() {
        return "%".to_owned();
    }
    let mut encoded = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'_' | b'-' => encoded.push(char::from(byte)),
            _ => {
                // Writing to a string does not fail.
                let _ = write!(encoded, "%{byte:02X}");
            }
        }
    }
    encoded
}
