//! The records of servers: their descriptions, states, tools, and changes that wait.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbListItem, BreadcrumbQuery, MAX_PAGE, NewBreadcrumb, Records, Selector, StoreError,
    schema_names,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::server::ServerConfig;

/// A server's record.
#[derive(Debug, Clone, PartialEq)]
pub struct ServerRecord {
    pub id: Uuid,
    pub version: i64,
    pub config: ServerConfig,
}

/// The state of a server, as the runner that connected last knows it. The context of an
/// `mcp.status.v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Status {
    pub server: String,
    /// The record that describes the server.
    pub server_id: Uuid,
    pub state: ServerState,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The revision of the protocol that is spoken. Revisions from 2026-07-28 on have no sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<String>,
    /// What the server calls itself: name and version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<String>,
    /// What a model says about its tools, if neither the server nor its record says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// The names of its registered tools.
    pub tools: Vec<String>,
    /// The names of the tools whose changed definitions wait.
    #[serde(default)]
    pub waiting: Vec<String>,
    /// Tools that cannot be registered, each with the reason.
    #[serde(default)]
    pub refused: Vec<RefusedTool>,
}

/// A summary of a server's tools.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub text: String,
    /// The hash of what it was made of.
    pub of: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ServerState {
    Connected,
    /// It cannot be reached. It is tried again.
    Error,
    Disabled,
}

impl ServerState {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Connected => "connected",
            Self::Error => "error",
            Self::Disabled => "disabled",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefusedTool {
    pub tool: String,
    pub reason: String,
}

impl RefusedTool {
    pub fn new(tool: &str, reason: &str) -> Self {
        Self { tool: tool.to_owned(), reason: reason.to_owned() }
    }
}

/// A changed definition that waits. The context of an `mcp.change.v1`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Change {
    pub server: String,
    /// The server's own name for the tool.
    pub tool: String,
    /// The name of the tool's record.
    pub name: String,
    /// The tool's record.
    pub tool_id: Uuid,
    pub accepted_hash: String,
    pub definition_hash: String,
    /// The definition as the server sent it.
    pub definition: Value,
    /// The context of the tool's record if it is accepted.
    pub proposed: Map<String, Value>,
}

/// The tag of all records of a server.
pub fn server_tag(server: &str) -> String {
    format!("mcp:{server}")
}

/// The record of a new server.
pub fn server_record(config: &ServerConfig) -> NewBreadcrumb {
    NewBreadcrumb {
        title: format!("MCP server {}", config.name),
        description: config.description.clone(),
        context: config.context(),
        tags: vec!["mcp:server".to_owned(), server_tag(&config.name), "workspace:tools".to_owned()],
        schema_name: Some(schema_names::MCP_SERVER.to_owned()),
        ..NewBreadcrumb::default()
    }
}

/// The record of a tool.
pub fn tool_record(server: &str, context: Map<String, Value>) -> NewBreadcrumb {
    let name = context.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    NewBreadcrumb {
        title: format!("{name} (MCP server {server})"),
        tags: tool_tags(server, &name),
        context,
        schema_name: Some(schema_names::TOOL_V1.to_owned()),
        ..NewBreadcrumb::default()
    }
}

fn tool_tags(server: &str, name: &str) -> Vec<String> {
    vec!["tool".to_owned(), format!("tool:{name}"), server_tag(server), "workspace:tools".to_owned()]
}

/// All records of this schema with these tags, oldest first, with their contexts.
pub async fn list(
    store: &(impl Records + ?Sized),
    schema: &str,
    tags: Vec<String>,
) -> Result<Vec<BreadcrumbListItem>, StoreError> {
    let selector = Selector { schema_name: Some(schema.to_owned()), all_tags: tags, ..Selector::default() };
    let query = BreadcrumbQuery { selector, limit: MAX_PAGE, offset: 0, include_context: true };
    let mut items = store.list(&query).await?;
    items.sort_by_key(|item| item.id);
    Ok(items)
}

/// The valid servers of the tenant. Of several with one name only the oldest counts.
pub async fn servers(store: &(impl Records + ?Sized)) -> Result<Vec<ServerRecord>, StoreError> {
    let mut found: BTreeMap<String, ServerRecord> = BTreeMap::new();
    for item in list(store, schema_names::MCP_SERVER, Vec::new()).await? {
        match ServerConfig::read(&item.context.unwrap_or_default()) {
            Ok(config) => {
                let record = ServerRecord { id: item.id, version: item.version, config };
                match found.entry(record.config.name.to_lowercase()) {
                    Entry::Vacant(vacant) => drop(vacant.insert(record)),
                    Entry::Occupied(older) => {
                        tracing::warn!(server = older.key(), record = %record.id, "an older MCP server has the same name");
                    }
                }
            }
            Err(violations) => tracing::warn!(record = %item.id, %violations, "the record of an MCP server is invalid"),
        }
    }
    Ok(found.into_values().collect())
}

/// The states of all servers, by name.
pub async fn statuses(store: &(impl Records + ?Sized)) -> Result<BTreeMap<String, Status>, StoreError> {
    let items = list(store, schema_names::MCP_STATUS, Vec::new()).await?;
    let read = |item: BreadcrumbListItem| serde_json::from_value::<Status>(Value::Object(item.context?)).ok();
    Ok(items.into_iter().filter_map(read).map(|status| (status.server.to_lowercase(), status)).collect())
}

/// Writes the state of a server if it has changed. Returns whether it has.
pub async fn write_status(store: &(impl Records + ?Sized), status: &Status) -> Result<bool, StoreError> {
    let Value::Object(context) = json!(status) else { return Ok(false) };
    let present = list(store, schema_names::MCP_STATUS, vec![server_tag(&status.server)]).await?;
    let present = present.into_iter().next();
    if present.as_ref().and_then(|item| item.context.as_ref()) == Some(&context) {
        return Ok(false);
    }
    let written = match present {
        Some(item) => {
            let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
            once(store.update(item.id, item.version, changes).await.map(drop))
        }
        None => {
            let record = NewBreadcrumb {
                title: format!("State of the MCP server {}", status.server),
                context,
                tags: vec!["mcp:status".to_owned(), server_tag(&status.server)],
                schema_name: Some(schema_names::MCP_STATUS.to_owned()),
                ..NewBreadcrumb::default()
            };
            let key = format!("mcp:status:{}", status.server_id);
            once(store.create(record, Some(&key)).await.map(drop))
        }
    };
    written.map(|()| true)
}

/// The changes that wait, of one server or of all.
pub async fn changes(
    store: &(impl Records + ?Sized),
    server: Option<&str>,
) -> Result<Vec<(BreadcrumbListItem, Change)>, StoreError> {
    let tags = server.map(server_tag).into_iter().collect();
    let items = list(store, schema_names::MCP_CHANGE, tags).await?;
    let read = |item: BreadcrumbListItem| {
        let change = serde_json::from_value(Value::Object(item.context.clone()?)).ok()?;
        Some((item, change))
    };
    Ok(items.into_iter().filter_map(read).collect())
}

/// The record of a change.
pub fn change_record(change: &Change) -> NewBreadcrumb {
    let context = match json!(change) {
        Value::Object(context) => context,
        _ => Map::new(),
    };
    NewBreadcrumb {
        title: format!("Changed definition of {}", change.name),
        description: Some("The tool is not called until a curator accepts it with `rcrt mcp accept`.".to_owned()),
        context,
        tags: vec!["mcp:change".to_owned(), server_tag(&change.server), format!("tool:{}", change.name)],
        schema_name: Some(schema_names::MCP_CHANGE.to_owned()),
        ..NewBreadcrumb::default()
    }
}

/// Puts the changed definition into the tool's record, as a curator.
pub async fn accept_change(
    store: &(impl Records + ?Sized),
    (record, version): (Uuid, i64),
    change: &Change,
) -> Result<(), StoreError> {
    let tool = store.get(change.tool_id).await?;
    let accepted = definition_hash(&tool.context);
    if accepted != Some(change.accepted_hash.as_str()) {
        return Err(StoreError::VersionConflict { expected: version, actual: tool.version });
    }
    // The change that was shown, and no newer one.
    let present = store.get(record).await?;
    if present.version != version {
        return Err(StoreError::VersionConflict { expected: version, actual: present.version });
    }
    let changes = BreadcrumbChanges {
        context: Some(change.proposed.clone()),
        schema_name: Some(schema_names::TOOL_V1.to_owned()),
        ..BreadcrumbChanges::default()
    };
    store.update(tool.id, tool.version, changes).await?;
    // A runner that has seen the accepted definition deletes the change too.
    once(store.delete(record, None).await)
}

/// The hash of the definition that was accepted.
pub fn definition_hash(context: &Map<String, Value>) -> Option<&str> {
    context.get("implementation")?.get("definition_hash")?.as_str()
}

/// The server's own name of a tool.
pub fn upstream_name(context: &Map<String, Value>) -> Option<&str> {
    context.get("implementation")?.get("tool")?.as_str()
}

/// Deletes everything that was written for a server.
pub async fn remove_server_records(store: &(impl Records + ?Sized), server: &str) -> Result<(), StoreError> {
    let schemas =
        [schema_names::TOOL_V1, schema_names::TOOL_RETIRED, schema_names::MCP_CHANGE, schema_names::MCP_STATUS];
    for schema in schemas {
        for item in list(store, schema, vec![server_tag(server)]).await? {
            once(store.delete(item.id, None).await)?;
        }
    }
    Ok(())
}

/// Ignores the errors of a write that another runner made first.
pub fn once(written: Result<(), StoreError>) -> Result<(), StoreError> {
    match written {
        Err(StoreError::VersionConflict { .. } | StoreError::NotFound { .. } | StoreError::IdempotencyMismatch) => {
            Ok(())
        }
        other => other,
    }
}
