//! `rcrt call`: one request, and its response.

use std::convert::Infallible;
use std::time::Duration;

use anyhow::Context;
use breadcrumb::{Breadcrumb, Breadcrumbs, CallState, ErrorCode, ResponseStatus, ToolRequest, ToolResponse};
use clap::Args;
use serde_json::Value;
use uuid::Uuid;

use crate::config::Config;
use crate::exit::Failure;
use crate::output::Output;
use crate::{connection, input, wait};

/// When to say that nothing happens.
const HINT_AFTER: Duration = Duration::from_secs(5);
/// How long a cancelled call has to be answered before the program leaves all the same.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// Call a tool and print what it answers
#[derive(Debug, Args)]
#[command(after_long_help = "\
Prints the tool's output; with --output json the whole response. What the tool wrote to its console, and its error, go \
to stderr. Ctrl-C cancels the call.

Examples:
  rcrt call calculator '{\"expression\": \"6 * 7\"}'
  echo '{\"text\": \"hello\"}' | rcrt call echo -
  rcrt call json-transform @input.json --output json")]
pub struct Call {
    /// The tool's name
    tool: String,
    /// Its input: JSON, `-` for stdin, or `@file`
    #[arg(default_value = "{}", value_name = "JSON")]
    input: String,
    /// Give up after this many seconds and cancel the call; 0 waits for ever
    #[arg(long, env = "RCRT_TIMEOUT", default_value_t = 120, value_name = "SECONDS")]
    timeout: u64,
    /// The workspace that the request and its response belong to
    #[arg(long, env = "RCRT_WORKSPACE", value_name = "NAME")]
    workspace: Option<String>,
    /// Makes a repeated command the same request: the answer of the first one is given again
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

impl Call {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let input = input::json(&self.input, "the input")?;
        let workspace = self.workspace.as_deref().map(workspace_tag);
        let record = ToolRequest::record(&self.tool, input, None, workspace.as_deref());
        record.check().map_err(|violations| Failure::Usage(violations.to_string()))?;
        let key = self.idempotency_key.unwrap_or_else(|| Uuid::new_v4().to_string());

        let store = connection::store(config)?;
        let asked = wait::ask(&*store, record, &key).await?;
        let limit = async {
            match self.timeout {
                0 => std::future::pending().await,
                seconds => tokio::time::sleep(Duration::from_secs(seconds)).await,
            }
        };
        let why = tokio::select! {
            never = hint(&*store, &asked) => match never {},
            answer = wait::answer(&*store, &asked) => return show(&answer?, output),
            signal = tokio::signal::ctrl_c() => {
                signal.context("Ctrl-C cannot be watched")?;
                Failure::Interrupted
            }
            () = limit => Failure::Unreachable(format!(
                "no answer within {} s, so the call was cancelled; is a runner up? (request {})",
                self.timeout, asked.request
            )),
        };
        cancel(&*store, &asked).await;
        Err(match why {
            Failure::Interrupted => Failure::Interrupted.into(),
            // Reached, but not answered: a plain failure.
            other => anyhow::anyhow!(other.to_string()),
        })
    }
}

/// Says once where the call stands when it takes long, then waits for ever.
#[allow(clippy::print_stderr)]
async fn hint(store: &dyn Breadcrumbs, asked: &wait::Asked) -> Infallible {
    tokio::time::sleep(HINT_AFTER).await;
    if let Ok(breadcrumb::Call { state: CallState::Queued, .. }) = store.call(asked.request).await {
        eprintln!("rcrt: the call still waits for a runner; is one up? (Ctrl-C cancels it)");
    }
    std::future::pending().await
}

/// `--workspace x` and `--workspace workspace:x` mean the same.
fn workspace_tag(name: &str) -> String {
    if name.starts_with("workspace:") { name.to_owned() } else { format!("workspace:{name}") }
}

/// Asks for the end of the call, and stays until it is there, so that nothing runs on unseen.
async fn cancel(store: &dyn Breadcrumbs, asked: &wait::Asked) {
    let ended = async {
        store.cancel(asked.request).await?;
        wait::answer(store, asked).await
    };
    match tokio::time::timeout(CANCEL_GRACE, ended).await {
        Ok(Ok(_)) => {}
        Ok(Err(error)) => tracing::warn!(%error, request = %asked.request, "the call could not be cancelled"),
        Err(_) => tracing::warn!(request = %asked.request, "the call is to be cancelled, but did not end yet"),
    }
}

/// Prints the response; an error of the tool is this program's error 4.
#[allow(clippy::print_stderr)]
fn show(record: &Breadcrumb, output: Output) -> anyhow::Result<()> {
    let response = ToolResponse::from_context(&record.context).context("the response record is not well-formed")?;
    for line in console_lines(&response) {
        eprintln!("{line}");
    }
    if output.is_json() {
        output.json(&record.context)?;
    }
    match response.status {
        ResponseStatus::Success => {
            if !output.is_json() {
                output.line(&readable(response.output.as_ref().unwrap_or(&Value::Null)))?;
            }
            Ok(())
        }
        ResponseStatus::Error => {
            let code = response.error_code.map_or("Error", ErrorCode::as_str);
            eprintln!("rcrt: {}: {code}: {}", response.tool, response.error.as_deref().unwrap_or("no reason given"));
            for line in detail_lines(response.error_details.as_ref()) {
                eprintln!("  {line}");
            }
            if response.is_retryable == Some(true) {
                eprintln!("  A retry can help.");
            }
            Err(Failure::ToolError.into())
        }
    }
}

/// A string as it is, everything else as indented JSON.
fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
    }
}

fn console_lines(response: &ToolResponse) -> Vec<String> {
    let lines = response.metadata.get("console").and_then(Value::as_array);
    lines.into_iter().flatten().filter_map(console_line).collect()
}

fn console_line(line: &Value) -> Option<String> {
    if let Some(text) = line.as_str() {
        return Some(text.to_owned());
    }
    let level = line.get("level").and_then(Value::as_str).unwrap_or("log");
    Some(format!("[{level}] {}", line.get("message").and_then(Value::as_str)?))
}

/// What a person can use of the details: each violation on a line with its path, a stack, similar names.
fn detail_lines(details: Option<&Value>) -> Vec<String> {
    let Some(details) = details else { return Vec::new() };
    let list = |key: &str| details.get(key).and_then(Value::as_array);
    if let Some(violations) = details.as_array().or_else(|| list("violations")).or_else(|| list("errors")) {
        return violations.iter().map(violation_line).collect();
    }
    if let Some(stack) = details.get("stack").and_then(Value::as_str) {
        // Its first line is the message again.
        return stack.lines().skip(1).map(|line| line.trim().to_owned()).collect();
    }
    if let Some(nearest) = list("nearest") {
        let names: Vec<&str> = nearest.iter().filter_map(Value::as_str).collect();
        return if names.is_empty() { Vec::new() } else { vec![format!("Did you mean {}?", names.join(" or "))] };
    }
    serde_json::to_string_pretty(details).unwrap_or_default().lines().map(str::to_owned).collect()
}

fn violation_line(violation: &Value) -> String {
    let text = |key: &str| violation.get(key).and_then(Value::as_str).filter(|text| !text.is_empty());
    match (text("path").or_else(|| text("field")), text("message")) {
        (Some(path), Some(message)) => format!("{path}: {message}"),
        (None, Some(message)) => message.to_owned(),
        _ => violation.to_string(),
    }
}
