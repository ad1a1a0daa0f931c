//! `mcp_list_services`: the servers that the caller can use, and the names of their tools.

use std::collections::BTreeMap;

use async_trait::async_trait;
use rcrt_breadcrumb::foreign_text::lines;
use rcrt_breadcrumb::{ToolFailure, ToolSource};
use rcrt_executors::{InputTool, ToolCall};
use serde::Deserialize;
use serde_json::{Value, json};

use super::{Tools, store_failed};
use crate::records;

pub(super) struct ListServices(pub Tools);

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Input {}

#[async_trait]
impl InputTool for ListServices {
    const NAME: &'static str = "mcp_list_services";
    type Input = Input;

    async fn run(&self, _: Input, call: &ToolCall) -> Result<Value, ToolFailure> {
        let store = &*self.0.servers.store;
        let servers = records::servers(store).await.map_err(store_failed)?;
        let allowed = call.breadcrumbs.allowed_tools().await.map_err(store_failed)?;
        let mut statuses = records::statuses(store).await.map_err(store_failed)?;
        let mut tools: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for tool in self.0.visible_tools(call, None).await? {
            tools.entry(tool.server.to_lowercase()).or_default().push(tool.upstream);
        }
        let services = servers.into_iter().filter_map(|record| {
            let name = record.config.name;
            let names = tools.remove(&name.to_lowercase()).unwrap_or_default();
            // A server that is not connected has no tools yet, and only its source can be allowed.
            let source = ToolSource::Mcp(name.clone());
            let is_listed = || allowed.as_ref().is_none_or(|allowed| allowed.allows("", &source, &[]));
            let is_open = call.profiles.denied_by(Self::NAME, &source).is_none() && is_listed();
            (is_open || !names.is_empty()).then_some(())?;
            let status = statuses.remove(&name.to_lowercase());
            let own = status.as_ref().and_then(|status| {
                status.instructions.clone().or_else(|| status.summary.as_ref().map(|summary| summary.text.clone()))
            });
            let summary = record.config.description.or(own).map(|text| lines(&text, 400));
            Some(json!({
                "serverName": name,
                "displayName": status.as_ref().and_then(|status| status.implementation.clone()),
                "summary": summary,
                "state": status.as_ref().map_or("connecting", |status| status.state.as_str()),
                "error": status.and_then(|status| status.error),
                "toolCount": names.len(),
                "toolNames": names,
            }))
        });
        Ok(Value::Array(services.collect()))
    }
}
