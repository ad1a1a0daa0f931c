//! `describe_tool`, `list_my_tools` and `retire_tool`.

use async_trait::async_trait;
use rcrt_breadcrumb::{Breadcrumb, BreadcrumbQuery, ErrorCode, Selector, ToolFailure, is_draft, schema_names};
use rcrt_executors::builtin::store_failed;
use rcrt_executors::{InputTool, NativeTool, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::own_tool;
use crate::owned_tools::{self, ToolsOfName, made_by};

pub(super) struct DescribeTool;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {
    name: String,
}

#[async_trait]
impl InputTool for DescribeTool {
    const NAME: &'static str = "describe_tool";
    type Input = Input;

    async fn run(&self, Input { name }: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let found = ToolsOfName::find(&*call.breadcrumbs, call.request.agent_id, &name).await.map_err(store_failed)?;
        let Some(record) = found.own.or(found.other) else {
            return Err(ToolFailure::new(ErrorCode::InvalidArguments, format!("there is no tool {name:?}")));
        };
        let errors = reported_errors(call, record.id).await?;
        Ok(json!({
            "name": name,
            "tool_id": record.id,
            "record_version": record.version,
            "definition_hash": Breadcrumb::definition_hash(&record.checksum),
            "schema_name": record.schema_name,
            "is_yours": record.created_by.is_some() && record.created_by == call.request.agent_id,
            "draft": is_draft(&record.tags),
            "updated_at": record.updated_at,
            "errors": errors,
            "definition": record.context,
        }))
    }
}

/// What runners report about the newest version.
async fn reported_errors(call: &ToolCall, tool: Uuid) -> Result<Value, ToolFailure> {
    let selector = Selector {
        schema_name: Some(schema_names::TOOL_ERROR.to_owned()),
        context_match: vec![owned_tools::equals("$.tool_id", json!(tool)).map_err(store_failed)?],
        ..Selector::default()
    };
    let query = BreadcrumbQuery { selector, limit: 1, include_context: true, ..BreadcrumbQuery::default() };
    let found = call.breadcrumbs.list(&query).await.map_err(store_failed)?;
    let report = found.into_iter().next().and_then(|item| item.context);
    Ok(report.and_then(|mut context| context.remove("errors")).unwrap_or_else(|| json!([])))
}

pub(super) struct ListMyTools;

#[async_trait]
impl NativeTool for ListMyTools {
    fn name(&self) -> &'static str {
        "list_my_tools"
    }

    async fn run(&self, call: &ToolCall, _metadata: &mut Map<String, Value>) -> Result<Value, ToolFailure> {
        let made = made_by(&*call.breadcrumbs, call.request.agent_id).await.map_err(store_failed)?;
        let tools = made.into_iter().map(|record| {
            json!({
                "name": record.context.get("name"),
                "description": record.context.get("description"),
                "version": record.context.get("version"),
                "tool_id": record.id,
                "record_version": record.version,
                "draft": is_draft(&record.tags),
                "updated_at": record.updated_at,
            })
        });
        Ok(json!({"tools": tools.collect::<Vec<_>>()}))
    }
}

pub(super) struct RetireTool;

#[async_trait]
impl InputTool for RetireTool {
    const NAME: &'static str = "retire_tool";
    type Input = Input;

    async fn run(&self, Input { name }: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let own = own_tool(call, &name).await?;
        call.breadcrumbs.delete(own.id, Some(own.version)).await.map_err(store_failed)?;
        Ok(json!({"name": name, "tool_id": own.id, "retired": true}))
    }
}
