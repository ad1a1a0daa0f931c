//! The event of a request itself, as the original RCRT passes it to the tool. With it, fields that
//! a caller writes beside the input (such as `config_id`) reach the tool.

use rcrt_breadcrumb::{Breadcrumb, EventKind};
use serde_json::{Map, Value, json};

use crate::execution::speculative_run::takes_at_most;

/// A larger input is not copied into the event: the tool has its input already.
const MAX_INPUT_BYTES: usize = 16 * 1024;

/// `input` was removed from the record's context before.
pub(crate) fn request_event(record: &Breadcrumb, input: &Value) -> Value {
    let mut context: Map<String, Value> = record.context.clone();
    if takes_at_most(MAX_INPUT_BYTES, input) {
        context.insert("input".into(), input.clone());
    } else {
        context.insert("input_omitted".into(), true.into());
    }
    let id = record.id.to_string();
    // Collected at once, so that the map is allocated once.
    let fields: [(&str, Value); 10] = [
        ("type", EventKind::Created.as_str().into()),
        ("id", id.clone().into()),
        ("breadcrumb_id", id.into()),
        ("owner_id", record.owner_id.to_string().into()),
        ("title", record.title.as_str().into()),
        ("version", record.version.into()),
        ("tags", record.tags.as_slice().into()),
        ("schema_name", record.schema_name.as_deref().into()),
        ("updated_at", json!(record.updated_at)),
        ("context", context.into()),
    ];
    fields.into_iter().collect()
}
