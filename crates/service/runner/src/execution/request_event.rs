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
    json!({
        "type": EventKind::Created.as_str(),
        "id": record.id,
        "breadcrumb_id": record.id,
        "owner_id": record.owner_id,
        "title": record.title,
        "version": record.version,
        "tags": record.tags,
        "schema_name": record.schema_name,
        "updated_at": record.updated_at,
        "context": context,
    })
}
