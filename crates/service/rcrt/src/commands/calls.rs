//! `rcrt calls`: what was called, how it ended and how long it took.

use std::sync::Arc;

use anyhow::Context;
use chrono::{DateTime, Utc};
use clap::{Args, Subcommand};
use futures::StreamExt;
use rcrt_breadcrumb::{
    CallDetails, CallHistory, CallQuery, CallState, CallStatsQuery, CallSummary, ErrorCode, Event, EventKind,
    EventNumber, Events, MAX_CALLS, Percentiles, ResponseStatus, StoreError, ToolStats, schema_names, ttl_seconds,
};
use rcrt_client::Client;
use serde_json::Value;
use uuid::Uuid;

use super::agent;
use super::audit::moment;
use super::failure_lines::failure_lines;
use crate::config::{Config, id};
use crate::connection;
use crate::exit::fail;
use crate::output::{Output, Style, one_line};

/// List calls, show one, or count them
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
#[command(after_long_help = "\
Examples:
  rcrt calls --failed --since 1h
  rcrt calls --follow --tool calculator
  rcrt calls show 0198c0de-0000-7000-8000-000000000001
  rcrt calls stats --window 24h")]
pub struct Calls {
    #[command(subcommand)]
    command: Option<CallsCommand>,
    #[command(flatten)]
    list: List,
}

#[derive(Debug, Subcommand)]
enum CallsCommand {
    Show(Show),
    Stats(Stats),
}

/// Show one call: request, response, attempts, stages, parent and children
#[derive(Debug, Args)]
struct Show {
    /// The id of the request's record, or the caller's own requestId
    #[arg(value_name = "ID")]
    id: String,
}

/// Count finished calls by tool: rate, failures and durations
#[derive(Debug, Args)]
struct Stats {
    /// The time up to now: 1 minute to 31 days
    #[arg(long, default_value = "1h", value_name = "TIME", value_parser = window)]
    window: u64,
    /// Only this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
}

#[derive(Debug, Args)]
struct List {
    /// Print each call when it finishes, until interrupted
    #[arg(long, conflicts_with_all = ["state", "since", "until", "before", "tag", "text"])]
    follow: bool,
    /// Only failed calls
    #[arg(long)]
    failed: bool,
    /// Only of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only in this state: queued, claimed, running or finished
    #[arg(long, value_name = "STATE")]
    state: Option<CallState>,
    /// Only with this error code, such as Timeout
    #[arg(long, value_name = "CODE")]
    code: Option<ErrorCode>,
    /// Only of this agent, by its name or id
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// Only of this session
    #[arg(long, value_name = "NAME")]
    session: Option<String>,
    /// Only calls that the call of this request asked for
    #[arg(long, value_name = "ID", value_parser = id)]
    parent: Option<Uuid>,
    /// Only calls whose request has this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<String>,
    /// Only calls with these words in texts of the request or the response, or with this number in
    /// the input or the output
    #[arg(long, value_name = "WORDS")]
    text: Option<String>,
    /// Only from this time on: 2026-01-31T12:00:00Z, or 30m, 2h, 7d ago
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<DateTime<Utc>>,
    /// Only before this time
    #[arg(long, value_name = "TIME", value_parser = moment)]
    until: Option<DateTime<Utc>>,
    /// Only calls before this one, for the next page
    #[arg(long, value_name = "ID", value_parser = id)]
    before: Option<Uuid>,
    /// Maximum number of rows, 1 to 500
    #[arg(long, default_value_t = 50, value_name = "N",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CALLS)))]
    limit: u32,
}

fn window(text: &str) -> Result<u64, String> {
    ttl_seconds(&Value::from(text)).ok_or_else(|| "must be a number and a unit: 15m, 24h, 7d".into())
}

impl Calls {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        match self.command {
            Some(CallsCommand::Show(Show { id })) => show(&client, output, &id).await,
            Some(CallsCommand::Stats(Stats { window, tool })) => {
                stats(&client, output, &CallStatsQuery { tool, window_seconds: window }).await
            }
            None if self.list.follow => {
                let query = self.list.query(&client).await?;
                tokio::select! {
                    ended = follow(&client, output, &query) => ended,
                    signal = tokio::signal::ctrl_c() => signal.context("Ctrl-C cannot be watched"),
                }
            }
            None => list(&client, output, self.list.query(&client).await?).await,
        }
    }
}

impl List {
    async fn query(&self, client: &Client) -> anyhow::Result<CallQuery> {
        Ok(CallQuery {
            state: self.state,
            tool: self.tool.clone(),
            agent_id: agent::id_of(client, self.agent.as_deref()).await?,
            session: self.session.clone(),
            status: self.failed.then_some(ResponseStatus::Error),
            error_code: self.code,
            parent: self.parent,
            request_id: None,
            tag: self.tag.clone(),
            text: self.text.clone(),
            since: self.since,
            until: self.until,
            before: self.before,
            limit: self.limit,
        })
    }
}

async fn list(client: &Client, output: Output, query: CallQuery) -> anyhow::Result<()> {
    let calls = read_calls(client, query).await?;
    output.list(&calls, &["TIME (UTC)", "ID", "TOOL", "MS", "ENDED"], row)
}

/// Reads pages until there are enough calls: a page of a rare tool can be short.
pub(super) async fn read_calls(client: &Client, mut query: CallQuery) -> anyhow::Result<Vec<CallSummary>> {
    let wanted = query.limit as usize;
    let mut calls: Vec<CallSummary> = Vec::new();
    loop {
        let page = client.list_calls(&query).await?;
        calls.extend(page.calls);
        query.limit = u32::try_from(wanted - calls.len().min(wanted)).unwrap_or(MAX_CALLS);
        query.before = page.next;
        if query.before.is_none() || query.limit == 0 {
            return Ok(calls);
        }
    }
}

fn row(call: &CallSummary) -> Vec<String> {
    vec![
        time(call.call.queued_at),
        call.call.request.to_string(),
        one_line(&call.call.tool, 40),
        call.duration_ms.map_or_else(String::new, |ms| format!("{ms:.1}")),
        outcome(call),
    ]
}

pub(super) fn time(at: DateTime<Utc>) -> String {
    at.format("%Y-%m-%d %H:%M:%S%.3f").to_string()
}

pub(super) fn outcome(call: &CallSummary) -> String {
    match (call.error_code, call.status) {
        (Some(code), _) => code.to_string(),
        (None, Some(status)) => status.as_str().into(),
        (None, None) => call.call.state.as_str().into(),
    }
}

/// Prints a call for each response.
async fn follow(client: &Client, output: Output, query: &CallQuery) -> anyhow::Result<()> {
    each_event(client, async |event| match finished_by(client, query, &event).await? {
        Some(call) if output.is_json() => output.json_line(&call),
        Some(call) => output.line(&row(&call).join("  ")),
        None => Ok(()),
    })
    .await
}

/// Handles each event from now on, and reconnects when the server cannot be reached.
pub(super) async fn each_event(
    client: &Client,
    mut handle: impl AsyncFnMut(Arc<Event>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut after = client.latest_event().await?;
    loop {
        match stream_events(client, &mut after, &mut handle).await {
            Ok(()) => {}
            Err(error) => match error.downcast_ref() {
                Some(StoreError::Unavailable(reason)) => {
                    tracing::warn!(reason, "the event stream broke; reconnecting");
                }
                _ => return Err(error),
            },
        }
        tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    }
}

/// Moves `after` past each event that was handled.
async fn stream_events(
    client: &Client,
    after: &mut EventNumber,
    handle: &mut impl AsyncFnMut(Arc<Event>) -> anyhow::Result<()>,
) -> anyhow::Result<()> {
    let mut events = client.events(Some(*after)).await?;
    while let Some(event) = events.next().await {
        let event = event?;
        let number = event.number;
        handle(event).await?;
        *after = number;
    }
    Ok(())
}

/// The call that this response finished, if it matches.
async fn finished_by(client: &Client, query: &CallQuery, event: &Event) -> anyhow::Result<Option<CallSummary>> {
    if event.kind != EventKind::Created || event.schema_name.as_deref() != Some(schema_names::TOOL_RESPONSE) {
        return Ok(None);
    }
    let Some(request_id) = event.tags.iter().find_map(|tag| tag.strip_prefix("request:")) else { return Ok(None) };
    // Other requests can have the same requestId.
    let asked = CallQuery { request_id: Some(request_id.to_owned()), limit: MAX_CALLS, ..query.clone() };
    let page = client.list_calls(&asked).await?;
    Ok(page.calls.into_iter().find(|call| call.call.response == Some(event.breadcrumb_id)))
}

async fn show(client: &Client, output: Output, id: &str) -> anyhow::Result<()> {
    let by_requests_id = async || {
        let query = CallQuery { request_id: Some(id.to_owned()), limit: 1, ..CallQuery::default() };
        let found = client.list_calls(&query).await?.calls;
        anyhow::Ok(found.first().map(|call| call.call.request))
    };
    let found = match id.parse::<Uuid>() {
        Ok(request) => match client.call_details(request).await {
            Err(StoreError::NotFound { .. }) => None,
            other => Some(other?),
        },
        Err(_) => None,
    };
    let call = match found {
        Some(call) => call,
        None => match by_requests_id().await? {
            Some(request) => client.call_details(request).await?,
            None => {
                fail!(NotFound, "no call has the request id {:?}; `rcrt calls` lists them", one_line(id, 100));
            }
        },
    };
    if output.is_json() { output.json(&call) } else { print(output, &call) }
}

fn print(output: Output, details: &CallDetails) -> anyhow::Result<()> {
    let call = &details.summary;
    let field = |name: &str, value: Option<String>| match value {
        Some(value) => output.line(&format!("{:<12}{value}", output.paint(Style::Bold, &format!("{name:<12}")))),
        None => Ok(()),
    };
    let id = |id: Option<Uuid>| id.map(|id| id.to_string());
    field("call", id(Some(call.call.request)))?;
    field("tool", Some(one_line(&call.call.tool, 200)))?;
    field("state", Some(format!("{}, {}", call.call.state.as_str(), outcome(call))))?;
    field("requestId", Some(one_line(&call.request_id, 200)))?;
    field("session", call.session.as_deref().map(|session| one_line(session, 200)))?;
    field("agent", id(call.agent_id))?;
    field("runner", id(details.runner_id))?;
    field("trace", Some(details.trace_id.clone()))?;
    field("parent", id(call.parent))?;
    field("deadline", call.deadline_at.map(time))?;
    for attempt in &details.attempts {
        let ended = attempt.outcome.as_deref().unwrap_or("running");
        let started = attempt.started_at.map_or_else(String::new, time);
        field("attempt", Some(format!("{} of {}: {ended}  {started}", attempt.attempt, call.call.max_attempts)))?;
    }
    for stage in &details.stages {
        let took = stage.duration_ms.map_or_else(|| "...".into(), |ms| format!("{ms:.1} ms"));
        field("stage", Some(format!("{:<6} {}  {took}", stage.name, time(stage.started_at))))?;
    }
    for child in &details.children {
        let named = one_line(&child.call.tool, 60);
        field("child", Some(format!("{}  {named}  {}", child.call.request, outcome(child))))?;
    }
    for (name, record, key) in
        [("input", &details.request_record, "input"), ("output", &details.response_record, "output")]
    {
        let value = record.as_ref().and_then(|record| record.context.get(key));
        field(name, value.map(|value| one_line(&value.to_string(), 2000)))?;
    }
    let response = details.response_record.as_ref().map(|record| &record.context);
    let error = response.and_then(|response| response.get("error")?.as_str());
    field("error", error.map(|error| one_line(error, 2000)))?;
    for line in failure_lines(error.unwrap_or_default(), response.and_then(|response| response.get("error_details"))) {
        output.line(&format!("{:<12}{}", "", one_line(&line, 2000)))?;
    }
    Ok(())
}

async fn stats(client: &Client, output: Output, query: &CallStatsQuery) -> anyhow::Result<()> {
    let stats = client.call_stats(query).await?;
    if output.is_json() {
        return output.json(&stats);
    }
    let rows: Vec<Vec<String>> = stats.tools.iter().chain([&stats.all]).map(stats_row).collect();
    output.table(&["TOOL", "CALLS", "PER S", "FAILED", "P50 MS", "P95 MS", "P99 MS", "FAILURES"], &rows)
}

fn stats_row(stats: &ToolStats) -> Vec<String> {
    let Percentiles { p50, p95, p99 } = stats.duration_ms;
    let failures: Vec<String> = stats.failures.iter().map(|(code, calls)| format!("{code} {calls}")).collect();
    vec![
        stats.tool.as_deref().map_or_else(|| "all".into(), |tool| one_line(tool, 40)),
        stats.calls.to_string(),
        format!("{:.2}", stats.per_second),
        stats.failed.to_string(),
        format!("{p50:.1}"),
        format!("{p95:.1}"),
        format!("{p99:.1}"),
        failures.join(", "),
    ]
}
