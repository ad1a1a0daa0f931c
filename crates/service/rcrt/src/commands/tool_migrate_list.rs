//! `rcrt tool migrate` without a name: the tools of the schema `tool.v1`, and their next steps.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use chrono::{DateTime, Utc};
use rcrt_breadcrumb::{
    Breadcrumb, BreadcrumbQuery, CallHistory, CallQuery, CallStatsQuery, ENOUGH_SAME, MAX_CALLS, Records as _,
    ShadowReport, ToolStats, schema_names, shadow_share,
};
use rcrt_client::Client;
use rcrt_executors::rest;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::tool_lookup::tools;
use super::tool_migrate::Records;
use crate::output::{Output, one_line};

const DAY: u64 = 24 * 60 * 60;
/// The most reports on shadows that are read.
const MAX_REPORTS: u32 = 1000;

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    id: Uuid,
    /// `implementation.type`: `http`, `builtin`, …
    kind: String,
    /// The code of the same name: `none`, `draft`, `shadow 10%` or `published`.
    code: String,
    calls_24h: u64,
    calls_7d: u64,
    failed_7d: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    last: Option<DateTime<Utc>>,
    /// The agents of the newest calls of these seven days, at most 500.
    callers: BTreeSet<Uuid>,
    /// What to do next: a command, or why there is nothing to do.
    next: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    shadow: Option<ShadowReport>,
}

pub(super) async fn run(client: &Client, output: Output) -> anyhow::Result<()> {
    let mut by_name: BTreeMap<String, Vec<Breadcrumb>> = BTreeMap::new();
    for record in tools(client, None).await? {
        by_name.entry(name_of(&record).to_owned()).or_default().push(record);
    }
    let (day, week, reports) = tokio::try_join!(statistics(client, DAY), statistics(client, 7 * DAY), reports(client))?;
    let mut rows = Vec::new();
    for (name, mut records) in by_name {
        records.sort_by_key(|record| (record.created_at, record.id));
        let Some(records) = Records::of(records) else { continue };
        let calls = |stats: &HashMap<String, ToolStats>| stats.get(&name).map_or(0, |of| of.calls);
        let (last, callers) = if calls(&week) > 0 { callers(client, &name).await? } else { (None, BTreeSet::new()) };
        let shadow = records.draft.as_ref().filter(|draft| share(draft).is_some());
        let shadow = shadow.map(|draft| report_on(draft, &reports));
        rows.push(Row {
            id: records.legacy.id,
            kind: kind(&records.legacy).to_owned(),
            code: code(&records),
            calls_24h: calls(&day),
            calls_7d: calls(&week),
            failed_7d: week.get(&name).map_or(0, |of| of.failed),
            last,
            callers,
            next: next_step(&name, &records, shadow.as_ref()),
            shadow,
            name,
        });
    }
    let heading = ["NAME", "SOURCE", "CODE", "24 H", "7 D", "FAILED", "LAST (UTC)", "CALLERS", "NEXT"];
    output.list(&rows, &heading, cells)
}

fn cells(row: &Row) -> Vec<String> {
    let callers = match row.callers.first() {
        None => "-".to_owned(),
        Some(one) if row.callers.len() == 1 => one.to_string(),
        Some(one) => format!("{one} and {} more", row.callers.len() - 1),
    };
    vec![
        one_line(&row.name, 40),
        one_line(&row.kind, 20),
        row.code.clone(),
        row.calls_24h.to_string(),
        row.calls_7d.to_string(),
        row.failed_7d.to_string(),
        row.last.map_or_else(|| "-".to_owned(), |last| last.format("%Y-%m-%d %H:%M").to_string()),
        callers,
        row.next.clone(),
    ]
}

fn name_of(record: &Breadcrumb) -> &str {
    record.context.get("name").and_then(Value::as_str).unwrap_or_default()
}

fn kind(legacy: &Breadcrumb) -> &str {
    let kind = legacy.context.get("implementation").and_then(|implementation| implementation.get("type")?.as_str());
    kind.unwrap_or("-")
}

/// The share of calls that the draft is a shadow for.
pub(super) fn share(draft: &Breadcrumb) -> Option<u8> {
    shadow_share(&draft.tags)
}

fn code(records: &Records) -> String {
    match (&records.code, records.draft.as_ref().map(share)) {
        (Some(_), _) => "published".to_owned(),
        (None, Some(Some(share))) => format!("shadow {share}%"),
        (None, Some(None)) => "draft".to_owned(),
        (None, None) => "none".to_owned(),
    }
}

fn next_step(name: &str, records: &Records, shadow: Option<&ShadowReport>) -> String {
    let command = format!("rcrt tool migrate {name}");
    match (records, shadow) {
        (Records { code: Some(_), .. }, _) => format!("{command} --retire-legacy"),
        (_, Some(report)) if report.is_ready() => format!("{command} --promote"),
        (_, Some(report)) if report.different + report.failed > 0 => format!("{command} (shows the differences)"),
        (_, Some(report)) => format!("wait: {} of {ENOUGH_SAME} calls compared", report.same),
        (Records { draft: Some(_), .. }, None) => format!("{command} --shadow 10%"),
        _ if rest::KINDS.contains(&kind(&records.legacy)) => command,
        _ if kind(&records.legacy) == "builtin" => "keep: its code is in the program".to_owned(),
        _ => format!("write a tool.code.v1 named {name}"),
    }
}

async fn statistics(client: &Client, window_seconds: u64) -> anyhow::Result<HashMap<String, ToolStats>> {
    let stats = client.call_stats(&CallStatsQuery { tool: None, window_seconds }).await?;
    Ok(stats.tools.into_iter().filter_map(|one| Some((one.tool.clone()?, one))).collect())
}

/// The time and the agents of the newest calls.
async fn callers(client: &Client, tool: &str) -> anyhow::Result<(Option<DateTime<Utc>>, BTreeSet<Uuid>)> {
    let since = Utc::now() - chrono::Duration::days(7);
    let query = CallQuery { tool: Some(tool.to_owned()), since: Some(since), limit: MAX_CALLS, ..CallQuery::default() };
    let calls = client.list_calls(&query).await?.calls;
    let last = calls.iter().map(|call| call.call.queued_at).max();
    Ok((last, calls.iter().filter_map(|call| call.agent_id).collect()))
}

/// The reports on shadows that this agent can read, by the record of the draft.
pub(super) async fn reports(client: &Client) -> anyhow::Result<HashMap<Uuid, ShadowReport>> {
    let query = BreadcrumbQuery { limit: MAX_REPORTS, ..BreadcrumbQuery::of_schema(schema_names::TOOL_SHADOW) };
    let items = client.list(&query).await?;
    let read = |context: &serde_json::Map<String, Value>| ShadowReport::from_context(context);
    let reports = items.iter().filter_map(|item| item.context.as_ref().and_then(read));
    Ok(reports.map(|report| (report.tool_id, report)).collect())
}

/// What came of the runs of this definition of the draft.
pub(super) fn report_on(draft: &Breadcrumb, reports: &HashMap<Uuid, ShadowReport>) -> ShadowReport {
    let definition_hash = Breadcrumb::definition_hash(&draft.checksum);
    let report = reports.get(&draft.id).filter(|report| report.definition_hash == definition_hash);
    report.cloned().unwrap_or_else(|| ShadowReport { name: name_of(draft).to_owned(), ..ShadowReport::default() })
}
