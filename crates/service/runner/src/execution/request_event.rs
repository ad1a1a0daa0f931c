//! The event of a request itself, as the original RCRT passes it to the tool. With it, fields that
//! a caller writes beside the input (such as `config_id`) reach the tool.

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{Breadcrumb, EventKind, TriggerEvent};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};
use uuid::Uuid;

use crate::execution::speculative_run::takes_at_most;

/// A larger input is not copied into the event: the tool has its input already.
const MAX_INPUT_BYTES: usize = 16 * 1024;

/// The field of the context that says so.
const INPUT_OMITTED: &str = "input_omitted";

/// `input` was removed from the record's context before.
pub(crate) fn request_event(record: &Breadcrumb, input: &Value) -> Option<TriggerEvent> {
    let input = takes_at_most(MAX_INPUT_BYTES, input).then_some(input);
    let event = RequestEvent {
        kind: EventKind::Created.as_str(),
        id: record.id,
        breadcrumb_id: record.id,
        owner_id: record.owner_id,
        title: &record.title,
        version: record.version,
        tags: &record.tags,
        schema_name: record.schema_name.as_deref(),
        updated_at: record.updated_at,
        context: Context { others: &record.context, input },
    };
    TriggerEvent::new(&event).ok()
}

#[derive(Serialize)]
struct RequestEvent<'r> {
    #[serde(rename = "type")]
    kind: &'static str,
    id: Uuid,
    breadcrumb_id: Uuid,
    owner_id: Uuid,
    title: &'r str,
    version: i64,
    tags: &'r [String],
    schema_name: Option<&'r str>,
    updated_at: DateTime<Utc>,
    context: Context<'r>,
}

/// The request's context.
struct Context<'r> {
    others: &'r Map<String, Value>,
    input: Option<&'r Value>,
}

impl Serialize for Context<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let input = self.input.map_or((INPUT_OMITTED, &Value::Bool(true)), |input| ("input", input));
        let others = self.others.iter().map(|(key, value)| (key.as_str(), value));
        serializer.collect_map(others.filter(|(key, _)| *key != input.0).chain([input]))
    }
}
