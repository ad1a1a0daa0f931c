//! What `rcrt mcp list`, `rcrt mcp show` and `rcrt doctor` say about a server.

use rcrt_breadcrumb::{BreadcrumbQuery, MAX_PAGE, Records, schema_names};
use rcrt_mcp::{ServerConfig, ServerState, Status};
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use crate::output::{Output, Style, one_line};

/// A server, and its state if a runner has written one.
#[derive(Serialize)]
pub struct ServerWithState {
    pub id: Uuid,
    #[serde(flatten)]
    pub config: ServerConfig,
    pub status: Option<Status>,
}

/// All servers of the tenant, by name.
pub async fn servers(store: &(impl Records + ?Sized)) -> anyhow::Result<Vec<ServerWithState>> {
    let list = async |schema: &str| {
        store.list(&BreadcrumbQuery { limit: MAX_PAGE, ..BreadcrumbQuery::of_schema(schema) }).await
    };
    let states = list(schema_names::MCP_STATUS).await?;
    let mut statuses: Vec<Status> =
        states.into_iter().filter_map(|item| serde_json::from_value(Value::Object(item.context?)).ok()).collect();
    let mut all = Vec::new();
    for item in list(schema_names::MCP_SERVER).await? {
        let Ok(config) = ServerConfig::read(&item.context.unwrap_or_default()) else { continue };
        let at = statuses.iter().position(|status| status.server_id == item.id);
        let status = at.map(|at| statuses.swap_remove(at));
        all.push(ServerWithState { id: item.id, config, status });
    }
    all.sort_by(|left, right| left.config.name.cmp(&right.config.name));
    Ok(all)
}

fn state(server: &ServerWithState) -> &'static str {
    server.status.as_ref().map_or("connecting", |status| status.state.as_str())
}

pub(super) fn row(server: &ServerWithState) -> Vec<String> {
    let status = server.status.as_ref();
    vec![
        server.config.name.clone(),
        server.config.transport.kind().to_owned(),
        state(server).to_owned(),
        status.map_or(0, |status| status.tools.len()).to_string(),
        status.map_or(0, |status| status.waiting.len()).to_string(),
        status.and_then(|status| status.protocol_version.clone()).unwrap_or_else(|| "-".to_owned()),
        one_line(status.and_then(|status| status.error.as_deref()).unwrap_or("-"), 100),
    ]
}

/// One line for `rcrt doctor`.
pub(super) fn line(output: Output, server: &ServerWithState) -> String {
    let name = &server.config.name;
    let Some(status) = &server.status else {
        return format!("{name}: {}", output.paint(Style::Warning, "no runner has connected to it yet"));
    };
    let shown = match status.state {
        ServerState::Connected => output.paint(Style::Good, "connected"),
        ServerState::Error => output.paint(Style::Bad, "cannot be used"),
        ServerState::Disabled => "disabled".to_owned(),
    };
    let error = status.error.as_ref().map(|error| format!("; {}", one_line(error, 200))).unwrap_or_default();
    let waiting = if status.waiting.is_empty() {
        String::new()
    } else {
        let text = format!("{} changed definitions wait (`rcrt mcp diff {name}`)", status.waiting.len());
        format!("; {}", output.paint(Style::Warning, &text))
    };
    format!("{name}: {shown}, {} tools{error}{waiting}", status.tools.len())
}

pub(super) fn print(output: Output, server: &ServerWithState) -> anyhow::Result<()> {
    let field = |name: &str, value: &str| output.line(&format!("{name:<14}{}", one_line(value, 2000)));
    let ServerWithState { id, config, status } = server;
    field("name", &config.name)?;
    field("record", &id.to_string())?;
    field("runs", &config.transport.describe())?;
    for secret in config.transport.secrets() {
        field("secret", &secret)?;
    }
    field("state", state(server))?;
    let Some(status) = status else { return Ok(()) };
    for (name, value) in [
        ("error", &status.error),
        ("protocol", &status.protocol_version),
        ("program", &status.implementation),
        ("instructions", &status.instructions),
    ] {
        if let Some(value) = value {
            field(name, value)?;
        }
    }
    for tool in &status.tools {
        let waits =
            if status.waiting.contains(tool) { " (its changed definition waits; calls are refused)" } else { "" };
        field("tool", &format!("{tool}{waits}"))?;
    }
    for refused in &status.refused {
        field("not offered", &format!("{}: {}", refused.tool, refused.reason))?;
    }
    Ok(())
}
