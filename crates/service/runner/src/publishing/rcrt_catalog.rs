//! The catalog in the form of the original RCRT: one record of all tools, beside the parts of our
//! own catalog.

use std::sync::Arc;

use chrono::{SecondsFormat, Utc};
use rcrt_breadcrumb::{
    BreadcrumbListItem, BreadcrumbQuery, Catalog, MAX_RECORD_BYTES, NewBreadcrumb, Records, Selector, StoreError,
    schema_names::TOOL_CATALOG,
};
use serde_json::{Map, Value, json};

use crate::backoff::with_retries;
use crate::publishing::catalog_part::{create, delete, update};
use crate::registry::tool::Candidate;

/// Distinguishes this record from those of the original RCRT's runners.
const TAG: &str = "catalog:rcrt";
/// The workspace in which RCRT's clients look for tools.
const WORKSPACE: &str = "workspace:tools";
/// Fields with times. A change of these alone does not rewrite the record.
const TIMES: [&str; 2] = ["lastSeen", "lastUpdated"];
/// The size limit of a record, less what the other fields can use.
const MAX_TOOLS_BYTES: usize = MAX_RECORD_BYTES - 64 * 1024;
/// The maximum number of attempts while other runners change the record.
const MAX_TRIES: usize = 5;

/// Removes the record that a runner with `--compat rcrt` left behind, which nothing else would
/// update. If such a runner is live, it sees the deletion and writes the record again. So call this
/// once and not on every change.
pub(crate) async fn remove(store: &dyn Records) -> Result<(), StoreError> {
    for row in list(store).await? {
        delete(store, row.id).await?;
    }
    Ok(())
}

async fn list(store: &dyn Records) -> Result<Vec<BreadcrumbListItem>, StoreError> {
    let selector = Selector {
        all_tags: vec![Catalog::TAG.into(), TAG.into()],
        schema_name: Some(TOOL_CATALOG.into()),
        ..Selector::default()
    };
    let query = BreadcrumbQuery { selector, limit: 10, offset: 0, include_context: true };
    with_retries("read the catalog in RCRT's format", || store.list(&query)).await
}

/// Updates the record to the offered tools. Catalog records of other programs are not changed.
pub(crate) async fn synchronize(store: &dyn Records, offered: &[Arc<Candidate>]) -> Result<(), StoreError> {
    let Some(wanted) = record(offered) else {
        tracing::warn!(tools = offered.len(), "there are too many tools for one catalog record in RCRT's format");
        return Ok(());
    };
    for _ in 0..MAX_TRIES {
        let mut rows = list(store).await?;
        rows.sort_by_key(|row| row.id);
        let mut rows = rows.into_iter();
        let Some(first) = rows.next() else {
            create(store, &wanted).await?;
            continue;
        };
        // Runners that started at the same time may each have created one.
        for surplus in rows {
            delete(store, surplus.id).await?;
        }
        let current = Value::Object(first.context.unwrap_or_default());
        if without_times(current) == without_times(Value::Object(wanted.context.clone())) {
            return Ok(());
        }
        if update(store, first.id, first.version, &wanted).await?.is_some() {
            return Ok(());
        }
    }
    tracing::warn!("other runners keep changing the catalog in RCRT's format");
    Ok(())
}

fn record(offered: &[Arc<Candidate>]) -> Option<NewBreadcrumb> {
    let now = Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true);
    let mut tools: Vec<Value> = offered.iter().filter(|tool| !is_removed(tool)).map(|tool| entry(tool, &now)).collect();
    let bytes = |tools: &[Value]| tools.iter().map(|tool| tool.to_string().len() + 1).sum::<usize>();
    if bytes(&tools) > MAX_TOOLS_BYTES {
        // Clients can read these fields from `GET /tools` or from the tool's record.
        for tool in &mut tools {
            (tool["inputSchema"], tool["outputSchema"], tool["examples"]) = (json!({}), json!({}), json!([]));
        }
    }
    if bytes(&tools) > MAX_TOOLS_BYTES {
        return None;
    }
    let mut context = Map::new();
    context.insert("workspace".into(), WORKSPACE.into());
    context.insert("totalTools".into(), tools.len().into());
    context.insert("activeTools".into(), tools.len().into());
    context.insert("tools".into(), tools.into());
    context.insert("lastUpdated".into(), now.into());
    context.insert("llm_hints".into(), hints());
    Some(NewBreadcrumb {
        title: format!("{WORKSPACE} Tool Catalog"),
        context,
        tags: vec![WORKSPACE.into(), Catalog::TAG.into(), TAG.into()],
        schema_name: Some(TOOL_CATALOG.into()),
        ..NewBreadcrumb::default()
    })
}

/// Whether its author's last day for it is over.
fn is_removed(tool: &Candidate) -> bool {
    tool.definition.deprecated.as_ref().is_some_and(|deprecation| deprecation.is_over(Utc::now()))
}

fn entry(tool: &Candidate, now: &str) -> Value {
    let definition = &tool.definition;
    let version = if definition.version.is_empty() { "1.0.0" } else { definition.version.as_str() };
    // RCRT's clients expect an object; a schema can also be `true`.
    let schema = |schema: &Value| if schema.is_object() { schema.clone() } else { json!({}) };
    json!({
        "name": tool.name(),
        "description": match &definition.deprecated {
            Some(deprecation) => deprecation.described(&definition.description),
            None => definition.description.clone(),
        },
        "category": definition.category.as_deref().unwrap_or("general"),
        "version": version,
        "inputSchema": schema(&definition.input_schema),
        "outputSchema": schema(&definition.output_schema),
        "examples": definition.examples,
        "capabilities": {
            "async": true,
            "timeout": definition.limits.timeout_ms,
            "retries": definition.limits.max_attempts.saturating_sub(1),
        },
        "status": "active",
        "lastSeen": now,
    })
}

/// Hints that define how a model sees the record.
fn hints() -> Value {
    let list = "{{context.activeTools}} tools can be called:\n{{#each context.tools}}\n- {{this.name}}: \
                {{this.description}}{{/each}}\n";
    json!({
        "transform": {
            "tool_list": {"type": "template", "template": list},
            "available_tools": {"type": "extract", "value": "$.tools[*].name"},
        },
        "mode": "merge",
    })
}

fn without_times(mut context: Value) -> Value {
    let tools = context.get_mut("tools").and_then(Value::as_array_mut);
    for tool in tools.into_iter().flatten() {
        forget_times(tool);
    }
    forget_times(&mut context);
    context
}

fn forget_times(value: &mut Value) {
    if let Value::Object(entries) = value {
        entries.retain(|key, _| !TIMES.contains(&key.as_str()));
    }
}
