//! `rcrt logs`: console lines of calls. A response has those of its attempt; `tool.log.v1` records
//! have those of calls with `debug`, also while they run and if their runner was lost.

use std::collections::HashMap;

use anyhow::Context;
use chrono::{DateTime, Utc};
use clap::Args;
use rcrt_breadcrumb::{
    BreadcrumbQuery, CallQuery, CallSummary, Event, EventKind, MAX_CALLS, MAX_PAGE, Records, ResponseStatus, Selector,
    StoreError, ToolLog, ToolResponse, schema_names,
};
use rcrt_client::Client;
use serde::Serialize;
use serde_json::Value;
use uuid::Uuid;

use super::audit::moment;
use super::calls::{each_event, outcome, read_calls, time};
use super::tool_lookup::{no_tool, tools, whole_catalog};
use crate::config::Config;
use crate::connection;
use crate::exit::Failure;
use crate::output::{Output, Style, one_line, printable_lines};

/// Running calls whose lines are counted by `--follow`.
const MAX_FOLLOWED: usize = 10_000;

/// Show the console lines of calls
#[derive(Debug, Args)]
#[command(after_long_help = "\
Without --follow: the lines of the newest calls. Lines of a call with `debug` are there while it runs.

Examples:
  rcrt logs greet
  rcrt logs --failed --since 1h
  rcrt logs greet --follow")]
pub struct Logs {
    /// Only of this tool
    tool: Option<String>,
    /// Print lines as they are written, until interrupted
    #[arg(long, conflicts_with = "since")]
    follow: bool,
    /// Only of failed calls, with their errors
    #[arg(long)]
    failed: bool,
    /// Only of calls from this time on: 2026-01-31T12:00:00Z, or 30m, 2h, 7d ago
    #[arg(long, value_name = "TIME", value_parser = moment)]
    since: Option<DateTime<Utc>>,
    /// Maximum number of calls to look at, 1 to 500
    #[arg(long, default_value_t = 20, value_name = "N", conflicts_with = "follow",
        value_parser = clap::value_parser!(u32).range(1..=i64::from(MAX_CALLS)))]
    limit: u32,
}

/// A console line with its call.
#[derive(Debug, Serialize)]
struct Line {
    request: Uuid,
    tool: String,
    attempt: u64,
    level: String,
    message: String,
}

/// The console lines of a call.
#[derive(Debug, Serialize)]
struct CallLines {
    #[serde(flatten)]
    call: CallSummary,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    lines: Vec<Line>,
    /// How many lines were left out, as far as that is known.
    dropped: u64,
}

impl Logs {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let client = connection::client(config)?;
        if self.follow {
            if let Some(missing) = self.unknown_tool(&client).await? {
                output.note(&format!("warning: {missing}"));
            }
            return tokio::select! {
                ended = self.follow(&client, output) => ended,
                signal = tokio::signal::ctrl_c() => signal.context("Ctrl-C cannot be watched"),
            };
        }
        let query = CallQuery {
            tool: self.tool.clone(),
            status: self.failed.then_some(ResponseStatus::Error),
            since: self.since,
            limit: self.limit,
            ..CallQuery::default()
        };
        let calls = read_calls(&client, query).await?;
        if calls.is_empty()
            && let Some(missing) = self.unknown_tool(&client).await?
        {
            return Err(missing.into());
        }
        let mut found = Vec::new();
        for call in calls.into_iter().rev() {
            let lines = lines_of(&client, call).await?;
            if self.failed || !lines.lines.is_empty() || lines.dropped > 0 {
                found.push(lines);
            }
        }
        if output.is_json() {
            return output.json(&found);
        }
        if found.is_empty() {
            output.note("none of the newest calls has console lines");
        }
        found.iter().try_for_each(|call| print(output, call))
    }

    /// The error, if no tool has the name.
    async fn unknown_tool(&self, client: &Client) -> anyhow::Result<Option<Failure>> {
        let Some(name) = &self.tool else { return Ok(None) };
        let catalog = whole_catalog(client).await?;
        // A draft, or a tool that cannot run, has a record and no entry.
        let is_known = catalog.entry(name).is_some() || !tools(client, Some(name.as_str())).await?.is_empty();
        Ok((!is_known).then(|| no_tool(name, &catalog)))
    }

    /// Prints the lines of debugged calls as they are written, those of other calls with their
    /// responses. Whether a call fails is known with its response.
    async fn follow(&self, client: &Client, output: Output) -> anyhow::Result<()> {
        let mut printed: HashMap<(Uuid, u64), u64> = HashMap::new();
        each_event(client, async |event| {
            if event.kind != EventKind::Created {
                return Ok(());
            }
            match event.schema_name.as_deref() {
                Some(schema_names::TOOL_LOG) if !self.failed => {
                    let Ok(log) = ToolLog::from_context(&event.context) else { return Ok(()) };
                    if self.tool.as_ref().is_none_or(|tool| *tool == log.tool) {
                        if printed.len() >= MAX_FOLLOWED {
                            printed.clear();
                        }
                        printed.insert((log.request, log.attempt.into()), log.next_line());
                        print_lines(output, log_lines(&log))?;
                    }
                }
                Some(schema_names::TOOL_RESPONSE) => {
                    let Some((request, response)) = self.wanted_response(&event) else { return Ok(()) };
                    let logs = if self.failed { logs_of(client, request, &response.request_id).await? } else { vec![] };
                    let seen = printed.remove(&(request, attempt_of(&response))).unwrap_or_default();
                    let lines = merged(&logs, Some(&response), request);
                    print_lines(output, lines.into_iter().skip(seen as usize))?;
                    if let (true, false, Some(error)) = (self.failed, output.is_json(), error_of(&response)) {
                        output.line(&format!("{request}  {}  {error}", one_line(&response.tool, 40)))?;
                    }
                }
                _ => {}
            }
            Ok(())
        })
        .await
    }

    fn wanted_response(&self, event: &Event) -> Option<(Uuid, ToolResponse)> {
        let response = ToolResponse::from_context(&event.context).ok()?;
        let request = response.metadata.get("request")?.as_str()?.parse().ok()?;
        let is_wanted = self.tool.as_ref().is_none_or(|tool| *tool == response.tool)
            && (!self.failed || response.status == ResponseStatus::Error);
        is_wanted.then_some((request, response))
    }
}

async fn lines_of(client: &Client, call: CallSummary) -> anyhow::Result<CallLines> {
    let request = call.call.request;
    let logs = logs_of(client, request, &call.request_id).await?;
    let response = match call.call.response {
        Some(id) => match client.get(id).await {
            Ok(record) => ToolResponse::from_context(&record.context).ok(),
            // Deleted meanwhile, or only its summary can be read.
            Err(StoreError::NotFound { .. } | StoreError::Forbidden(_)) => None,
            Err(error) => return Err(error.into()),
        },
        None => None,
    };
    let of_debug = |response: &ToolResponse| response.metadata.get("debug")?["log"]["dropped"].as_u64();
    let is_truncated = |response: &ToolResponse| response.metadata.contains_key("console_truncated");
    let from_logs = logs.iter().map(|log| log.dropped).max().unwrap_or_default();
    let dropped = match &response {
        Some(response) => of_debug(response).unwrap_or_else(|| from_logs.max(u64::from(is_truncated(response)))),
        None => from_logs,
    };
    let error = response.as_ref().and_then(error_of);
    Ok(CallLines { lines: merged(&logs, response.as_ref(), request), call, error, dropped })
}

/// The log records of a call, in order.
async fn logs_of(client: &Client, request: Uuid, request_id: &str) -> anyhow::Result<Vec<ToolLog>> {
    let selector = Selector {
        all_tags: vec![ToolResponse::tag(request_id)],
        schema_name: Some(schema_names::TOOL_LOG.into()),
        ..Selector::default()
    };
    let query = BreadcrumbQuery { selector, limit: MAX_PAGE, include_context: true, ..BreadcrumbQuery::default() };
    let contexts = client.list(&query).await?.into_iter().filter_map(|row| row.context);
    let mut logs: Vec<ToolLog> = contexts.filter_map(|context| ToolLog::from_context(&context).ok()).collect();
    // Other requests can have the same requestId.
    logs.retain(|log| log.request == request);
    logs.sort_by_key(|log| (log.attempt, log.sequence));
    Ok(logs)
}

/// The lines of all attempts. A response has those of its own attempt, if a runner wrote it.
fn merged(logs: &[ToolLog], response: Option<&ToolResponse>, request: Uuid) -> Vec<Line> {
    let console = response.and_then(|response| Some((response, response.metadata.get("console")?.as_array()?)));
    let mut lines = Vec::new();
    for log in logs {
        if console.is_none_or(|(response, _)| u64::from(log.attempt) < attempt_of(response)) {
            lines.extend(log_lines(log));
        }
    }
    if let Some((response, console)) = console {
        let text = |line: &Value, field: &str| line.get(field).and_then(Value::as_str).map(str::to_owned);
        lines.extend(console.iter().map(|line| Line {
            request,
            tool: response.tool.clone(),
            attempt: attempt_of(response),
            level: text(line, "level").unwrap_or_else(|| "log".into()),
            message: text(line, "message").or_else(|| line.as_str().map(str::to_owned)).unwrap_or_default(),
        }));
    }
    lines
}

fn log_lines(log: &ToolLog) -> Vec<Line> {
    let of = |line: &rcrt_breadcrumb::LogLine| Line {
        request: log.request,
        tool: log.tool.clone(),
        attempt: log.attempt.into(),
        level: line.level.clone(),
        message: line.message.clone(),
    };
    log.lines.iter().map(of).collect()
}

fn attempt_of(response: &ToolResponse) -> u64 {
    response.metadata.get("attempt").and_then(Value::as_u64).unwrap_or_default()
}

fn error_of(response: &ToolResponse) -> Option<String> {
    let code = response.error_code?;
    Some(format!("{code}: {}", one_line(response.error.as_deref().unwrap_or_default(), 2000)))
}

/// One line of a followed call after the other.
fn print_lines(output: Output, lines: impl IntoIterator<Item = Line>) -> anyhow::Result<()> {
    for line in lines {
        if output.is_json() {
            output.json_line(&line)?;
            continue;
        }
        for text in printable_lines(&line.message) {
            let tool = one_line(&line.tool, 40);
            output.line(&format!("{}  {tool}  [{}] {text}", line.request, one_line(&line.level, 10)))?;
        }
    }
    Ok(())
}

fn print(output: Output, lines: &CallLines) -> anyhow::Result<()> {
    let call = &lines.call;
    let (at, tool) = (time(call.call.queued_at), one_line(&call.call.tool, 40));
    let head = format!("{at}  {}  {tool}  {}", call.call.request, outcome(call));
    output.line(&output.paint(Style::Bold, &head))?;
    for line in &lines.lines {
        for text in printable_lines(&line.message) {
            output.line(&format!("  [{}] {text}", one_line(&line.level, 10)))?;
        }
    }
    if lines.dropped > 0 {
        output.line(&format!("  ({} or more lines were left out)", lines.dropped))?;
    }
    if let Some(error) = &lines.error {
        output.line(&format!("  {error}"))?;
    }
    Ok(())
}
