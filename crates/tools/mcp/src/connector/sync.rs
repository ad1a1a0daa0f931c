//! Brings the records of a server's tools in line with its list. Several runners may do it at the
//! same time: each write names the version that it read, or has an idempotency key.

use std::collections::{BTreeMap, BTreeSet};

use rcrt_breadcrumb::{BreadcrumbChanges, BreadcrumbListItem, Records, StoreError, schema_names};
use serde_json::{Map, Value};

use crate::connection::ToolList;
use crate::definition::{Definition, tool_name};
use crate::records::{
    self, Change, RefusedTool, ServerRecord, Summary, change_record, definition_hash, once, tool_record, upstream_name,
};

/// What the server's status says about its tools.
#[derive(Debug, Default, PartialEq)]
pub struct Synced {
    pub tools: Vec<String>,
    pub waiting: Vec<String>,
    pub refused: Vec<RefusedTool>,
    pub summary: Option<Summary>,
}

/// `list` is the server's, or `None` to retire all of its tools.
pub async fn sync(
    store: &(impl Records + ?Sized),
    server: &ServerRecord,
    list: Option<&ToolList>,
) -> Result<Synced, StoreError> {
    let name = &server.config.name;
    let tags = vec![records::server_tag(name)];
    let offered = records::list(store, schema_names::TOOL_V1, tags.clone()).await?;
    let retired = records::list(store, schema_names::TOOL_RETIRED, tags).await?;
    let mut changes = BTreeMap::new();
    for (item, change) in records::changes(store, Some(name)).await? {
        if changes.contains_key(&change.tool) {
            // Two runners wrote it at the same time.
            once(store.delete(item.id, None).await)?;
        } else {
            changes.insert(change.tool.clone(), (item, change));
        }
    }
    let mut known: BTreeMap<String, BreadcrumbListItem> = BTreeMap::new();
    for item in offered.into_iter().chain(retired) {
        let upstream = item.context.as_ref().and_then(upstream_name).map(str::to_owned);
        if let Some(upstream) = upstream {
            known.entry(upstream).or_insert(item);
        }
    }
    let mut synced = Synced::default();
    let empty = ToolList::default();
    let list = list.unwrap_or(&empty);
    synced.refused.extend(list.refused.iter().map(|(tool, reason)| RefusedTool::new(tool, reason)));
    let mut names = BTreeSet::new();
    for tool in list.tools.values().filter(|tool| server.config.offers(&tool.name)) {
        let local = tool_name(name, &tool.name);
        if !names.insert(local.clone()) {
            synced.refused.push(RefusedTool::new(&tool.name, "its name is the same as that of another tool here"));
            continue;
        }
        let context = tool.context(&local, &server.config);
        let waits = match known.remove(&tool.name) {
            None => {
                if let Err(reason) = add(store, server, tool, context).await? {
                    synced.refused.push(RefusedTool::new(&tool.name, &reason));
                    continue;
                }
                false
            }
            Some(item) => update(store, server, tool, (item, context), &mut changes).await?,
        };
        if waits {
            synced.waiting.push(local.clone());
        }
        synced.tools.push(local);
    }
    // The record of a tool that is gone stays, retired: if the tool comes back with another
    // definition, that is a change too.
    for item in known.into_values().filter(|item| item.schema_name.as_deref() == Some(schema_names::TOOL_V1)) {
        let changes = BreadcrumbChanges {
            schema_name: Some(schema_names::TOOL_RETIRED.to_owned()),
            ..BreadcrumbChanges::default()
        };
        once(store.update(item.id, item.version, changes).await.map(drop))?;
    }
    // The tools of the changes that are left have no new definition.
    for (item, _) in changes.into_values() {
        once(store.delete(item.id, Some(item.version)).await)?;
    }
    Ok(synced)
}

/// Registers a tool. The inner error says why the store refuses it.
async fn add(
    store: &(impl Records + ?Sized),
    server: &ServerRecord,
    tool: &Definition,
    context: Map<String, Value>,
) -> Result<Result<(), String>, StoreError> {
    // A record that was deleted by hand is not written again by another runner of this version.
    let key = format!("mcp:{}:{}:{}", server.id, server.version, tool.hash);
    match store.create(tool_record(&server.config.name, context), Some(&key)).await {
        Err(StoreError::Invalid(violations)) => Ok(Err(violations.to_string())),
        Err(error @ StoreError::QuotaExceeded { .. }) => Ok(Err(error.to_string())),
        written => once(written.map(drop)).map(Ok),
    }
}

/// Updates a known tool. Returns whether its definition waits.
async fn update(
    store: &(impl Records + ?Sized),
    server: &ServerRecord,
    tool: &Definition,
    (item, context): (BreadcrumbListItem, Map<String, Value>),
    changes: &mut BTreeMap<String, (BreadcrumbListItem, Change)>,
) -> Result<bool, StoreError> {
    let present = item.context.clone().unwrap_or_default();
    let accepted = definition_hash(&present).unwrap_or_default().to_owned();
    let is_retired = item.schema_name.as_deref() == Some(schema_names::TOOL_RETIRED);
    if accepted == tool.hash {
        if present != context || is_retired {
            let changes = BreadcrumbChanges {
                context: Some(context),
                schema_name: Some(schema_names::TOOL_V1.to_owned()),
                ..BreadcrumbChanges::default()
            };
            once(store.update(item.id, item.version, changes).await.map(drop))?;
        }
        return Ok(false);
    }
    let change = Change {
        server: server.config.name.clone(),
        tool: tool.name.clone(),
        name: present.get("name").and_then(Value::as_str).unwrap_or_default().to_owned(),
        tool_id: item.id,
        accepted_hash: accepted,
        definition_hash: tool.hash.clone(),
        definition: tool.raw.clone(),
        proposed: context,
    };
    let record = change_record(&change);
    match changes.remove(&tool.name) {
        Some((_, waiting)) if waiting == change => {}
        Some((item, _)) => {
            let changes = BreadcrumbChanges { context: Some(record.context), ..BreadcrumbChanges::default() };
            once(store.update(item.id, item.version, changes).await.map(drop))?;
        }
        None => {
            tracing::warn!(
                server = change.server,
                tool = change.name,
                "an MCP server changed the definition of a tool; a curator must accept it (`rcrt mcp accept`)"
            );
            once(store.create(record, None).await.map(drop))?;
        }
    }
    Ok(true)
}
