//! Tools as MCP clients see them.

use std::sync::Arc;

use rcrt_breadcrumb::{Registration, ToolFormat};
use rmcp::ErrorData;
use rmcp::model::{CacheScope, JsonObject, ListToolsResult, PaginatedRequestParams, Tool};
use serde_json::{Value, json};

use crate::Principal;
use crate::errors;
use crate::input_required;
use crate::page::{TTL_MS, page};

/// A page of the tools that the agent can call, by name.
pub(crate) async fn list(
    principal: &dyn Principal,
    request: Option<PaginatedRequestParams>,
) -> Result<ListToolsResult, ErrorData> {
    let catalog = principal.catalog().await.map_err(errors::of_store)?;
    let (tools, next_cursor) = page(catalog.tools, |tool| tool.name.as_str(), request)?;
    let tools = tools.iter().filter_map(described).collect();
    let list = ListToolsResult { next_cursor, ..ListToolsResult::with_all_items(tools) };
    Ok(list.with_ttl_ms(TTL_MS).with_cache_scope(CacheScope::Private))
}

/// `None`: its input is never an object.
pub(crate) fn described(tool: &Registration) -> Option<Tool> {
    let mut shown: Tool = serde_json::from_value(tool.in_format(ToolFormat::Mcp)?).ok()?;
    if input_required::asks(tool) {
        input_required::hide(Arc::make_mut(&mut shown.input_schema));
    }
    shown.output_schema = output_schema(tool).map(Arc::new);
    Some(shown)
}

/// Whether clients see a schema of the output. They do not if the tool describes no output, or if
/// its schema refers to itself by paths that would change.
pub(crate) fn has_output_schema(tool: &Registration) -> bool {
    own_schema(tool).is_some()
}

fn own_schema(tool: &Registration) -> Option<&JsonObject> {
    tool.output_schema.as_ref().filter(|schema| !has_other_references(schema))?.as_object()
}

/// The schema of `structuredContent`: the tool's, or the index of a large result.
fn output_schema(tool: &Registration) -> Option<JsonObject> {
    let mut inner = own_schema(tool)?.clone();
    let mut schema = JsonObject::new();
    for shared in ["$schema", "$defs", "definitions"] {
        if let Some(value) = inner.remove(shared) {
            schema.insert(shared.into(), value);
        }
    }
    if inner.get("type").is_some_and(|kind| kind == "object") {
        // Clients of earlier revisions require it at the top.
        schema.insert("type".into(), "object".into());
    }
    let large = json!({
        "description": "In place of a result that is too large: an index of its parts.",
        "type": "object", "properties": {"type": {"const": "large_result"}}, "required": ["type"],
    });
    schema.insert("anyOf".into(), json!([inner, large]));
    Some(schema)
}

/// Whether a reference points elsewhere than into the definitions, which stay at the top.
fn has_other_references(schema: &Value) -> bool {
    match schema {
        Value::Object(members) => members.iter().any(|(key, value)| match (key.as_str(), value) {
            ("$ref" | "$dynamicRef", Value::String(to)) => {
                !to.starts_with("#/$defs/") && !to.starts_with("#/definitions/")
            }
            (_, value) => has_other_references(value),
        }),
        Value::Array(items) => items.iter().any(has_other_references),
        _ => false,
    }
}
