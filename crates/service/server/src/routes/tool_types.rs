//! The TypeScript types of tools, for editors of tool code.

use std::time::Duration;

use axum::{Json, extract::State};
use rcrt_breadcrumb::{Registration, StoreError};
use rcrt_typescript::{GLOBALS, TypedTool, types_of_tool, types_of_tools};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::Instant;
use utoipa::ToSchema;

use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::json_body::JsonBody;
use crate::routes::replies::Reply;
use crate::routes::tool_ranking::offered;

/// How long it may take to make the types, including the wait for the tenant's share.
const TIME: Duration = Duration::from_secs(30);
/// The schema that accepts everything.
static ANYTHING: Value = Value::Bool(true);

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TypesOf {
    /// The context of a `tool.code.v1`.
    #[schema(value_type = Option<Object>)]
    tool_spec: Option<Map<String, Value>>,
}

/// TypeScript declarations.
#[derive(Serialize, ToSchema)]
pub struct ToolTypes {
    /// The text of a `.d.ts` file.
    #[schema(example = "type Input = {\n  text: string;\n};\n")]
    types: String,
}

/// Declare the TypeScript types of a tool
///
/// With `tool_spec`, the types `Input`, `Output` and `Context` of this tool, from its schemas and
/// its `required_secrets`. Without it, what all tools share: the globals of the sandbox, and the
/// namespace `tools` with the types of each tool that `GET /tools` lists.
#[utoipa::path(post, path = "/tools/types", tag = "tools", operation_id = "tool_types",
    request_body = TypesOf, responses((status = 200, body = ToolTypes)))]
pub async fn types(
    State(state): State<ServerState>,
    caller: Caller,
    JsonBody(TypesOf { tool_spec }): JsonBody<TypesOf>,
) -> Reply<ToolTypes> {
    let owner = caller.identity.owner_id;
    let until = Instant::now() + TIME;
    let declared = match tool_spec {
        Some(spec) => rcrt_compute::pool().run_until(owner, until, move || of_spec(&spec)).await,
        None => {
            let catalog = state.allowed_catalog(&caller).await?;
            let tools = offered(catalog, [caller.identity.profile; 2]).tools;
            rcrt_compute::pool().run_until(owner, until, move || of_all(tools)).await
        }
    };
    let not_made = |error| StoreError::Busy(format!("the types were not made: {error}; try again later"));
    let types = declared.map_err(not_made)?;
    Ok(Json(ToolTypes { types }))
}

/// A field that is missing or not readable yet makes a type that accepts everything.
fn of_spec(spec: &Map<String, Value>) -> String {
    let schema = |name: &str| spec.get(name).unwrap_or(&ANYTHING);
    let secrets = spec.get("required_secrets").and_then(Value::as_array).into_iter().flatten();
    let secrets: Vec<String> = secrets.filter_map(Value::as_str).map(str::to_owned).collect();
    types_of_tool(schema("input_schema"), schema("output_schema"), &secrets)
}

fn of_all(tools: Vec<Registration>) -> String {
    let typed = |tool: Registration| TypedTool {
        name: tool.name,
        description: tool.description,
        input: tool.parameters,
        output: tool.output_schema.unwrap_or(Value::Bool(true)),
        secrets: None,
    };
    let tools: Vec<TypedTool> = tools.into_iter().map(typed).collect();
    format!("{GLOBALS}\n{}", types_of_tools(&tools))
}
