//! `rcrt call`: one request, and its response.

use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::Args;
use parking_lot::Mutex;
use rcrt_breadcrumb::{
    CallQueue, CallState, ErrorCode, LargeResult, MAX_DEADLINE_MS, RESULT_CHARS, ResponseStatus, StoreError, ToolLog,
    ToolRequest, ToolResponse, Violations, model_text,
};
use rcrt_client::Client;
use rcrt_pending_call::{self as pending_call, CallObserver, CallResponse, NoObserver};
use serde_json::{Map, Value};
use url::Url;
use uuid::Uuid;

use super::debug_lines::debug_lines;
use super::failure_lines::failure_lines;
use super::unavailable;
use crate::config::Config;
use crate::exit::Failure;
use crate::output::{Output, printable_lines};
use crate::progress_bar::CallProgressBar;
use crate::{connection, input};

/// Time after which a hint is printed that no runner has started the call.
const HINT_AFTER: Duration = Duration::from_secs(5);
/// How long the server can take to accept a cancellation.
const CANCEL_TIME: Duration = Duration::from_secs(5);
/// Maximum wait for the response to a cancelled call.
const CANCEL_GRACE: Duration = Duration::from_secs(10);

/// Call a tool and print its output
// `--version` is the tool's here, and not the program's as in other commands.
#[derive(Debug, Args)]
#[command(disable_version_flag = true)]
#[command(after_long_help = "\
Prints the tool's output, or the whole response with --output json. The tool's console output and its error go to \
stderr. On a terminal, a bar shows the progress that the tool reports. Ctrl-C cancels the call.

Examples:
  rcrt call calculator '{\"expression\": \"6 * 7\"}'
  echo '{\"text\": \"hello\"}' | rcrt call echo -
  rcrt call json-transform @input.json --output json
  rcrt call calculator '{\"expression\": \"6 * 7\"}' --version 1
  rcrt call echo '{\"message\": \"hello\"}' --debug
  rcrt call web_fetch '{\"url\": \"https://example.com/\"}' --session tonight --deadline 20")]
pub struct Call {
    /// The tool's name
    tool: String,
    /// The input: JSON, `-` for stdin, or `@file`
    #[arg(default_value = "{}", value_name = "JSON")]
    input: String,
    /// Cancel the call after this many seconds, and end; 0 waits forever
    #[arg(long, env = "RCRT_TIMEOUT", default_value_t = 120, value_name = "SECONDS")]
    timeout: u64,
    /// The workspace of the request and its response
    #[arg(long, env = "RCRT_WORKSPACE", value_name = "NAME")]
    workspace: Option<String>,
    /// The conversation of the call: a result that is too large goes to its working memory
    #[arg(long, env = "RCRT_SESSION", value_name = "NAME")]
    session: Option<String>,
    /// The model that will read the output; it determines how long a result can be
    #[arg(long, env = "RCRT_MODEL", value_name = "NAME")]
    model: Option<String>,
    /// Characters of a result that are returned at once
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(RESULT_CHARS))]
    max_result_chars: Option<u64>,
    /// The call fails with Timeout after this many seconds, such as 2.5, even if no runner has
    /// started it
    #[arg(long, value_name = "SECONDS", value_parser = deadline_ms)]
    deadline: Option<u64>,
    /// Run this version of `rcrt tool history` instead of the current one
    #[arg(long = "version", value_name = "N", value_parser = clap::value_parser!(i64).range(1..))]
    tool_version: Option<i64>,
    /// Run the version with this definition hash, such as sha256:…
    #[arg(long, value_name = "HASH", conflicts_with = "tool_version")]
    definition_hash: Option<String>,
    /// Makes a repeated command the same request, which returns the first response again
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
    /// Print console lines while the tool runs, and then what the call did and used
    #[arg(long)]
    debug: bool,
}

/// Parses seconds and returns milliseconds.
fn deadline_ms(text: &str) -> Result<u64, String> {
    let most = MAX_DEADLINE_MS / 1000;
    let seconds: f64 = text.parse().map_err(|_| "must be a number of seconds, such as 2.5".to_owned())?;
    let ms = (seconds * 1000.0).round();
    if ms >= 1.0 && ms <= MAX_DEADLINE_MS as f64 {
        Ok(ms as u64)
    } else {
        Err(format!("must be from 0.001 to {most} seconds"))
    }
}

impl Call {
    pub async fn run(self, config: &Config, output: Output) -> anyhow::Result<()> {
        let input = input::json(&self.input, "the input")?;
        let workspace = self.workspace.as_deref().map(workspace_tag);
        let mut record = ToolRequest::record(&self.tool, input, None, workspace.as_deref());
        self.put_options(&mut record.context);
        record.check().map_err(|violations| Failure::Usage(as_arguments(violations).to_string()))?;
        let key = self.idempotency_key.unwrap_or_else(|| Uuid::new_v4().to_string());

        let (store, server) = (connection::client(config)?, config.server_url()?);
        let end = Instant::now().checked_add(Duration::from_secs(self.timeout)).filter(|_| self.timeout > 0);
        let sender = end.map_or_else(|| store.clone(), |end| store.with_deadline(end));
        let after = pending_call::newest_event(&sender).await?;
        let asked = pending_call::send(&sender, record, &key, after).await;
        let asked = asked.map_err(|error| not_confirmed(error, &server, &key))?;
        let limit = async {
            match end {
                None => std::future::pending().await,
                Some(end) => tokio::time::sleep_until(end.into()).await,
            }
        };
        let is_reported = AtomicBool::new(false);
        let bar = CallProgressBar::new(&self.tool);
        let watching = Watcher { is_reported: &is_reported, server: &server, bar, printed: Mutex::default() };
        tokio::select! {
            never = hint(&store, &asked) => match never {},
            answer = pending_call::response(&store, &asked, &watching) => {
                watching.bar.clear();
                return show(&answer?, output, &watching);
            }
            signal = tokio::signal::ctrl_c() => {
                signal.context("Ctrl-C cannot be watched")?;
                watching.bar.clear();
                let ended = match cancel(&store, &asked).await {
                    Ok(Some(response)) if is_cancelled(&response) => "the call was cancelled".to_owned(),
                    // The response arrived before the cancellation.
                    Ok(Some(response)) => return show(&response, output, &watching),
                    Ok(None) => "the call is being cancelled, but has not stopped yet".to_owned(),
                    Err(error) => format!("the call could not be cancelled and may still run: {error}"),
                };
                let text = format!("stopped; {ended} (request {})", asked.request);
                return Err(anyhow::Error::new(Failure::Interrupted).context(text));
            }
            () = limit => {}
        }
        watching.bar.clear();
        let late = format!("no response within {} s", self.timeout);
        let request = asked.request;
        let state = store.with_deadline(Instant::now() + CANCEL_TIME).call(request).await;
        let cancelled = match &state {
            Err(error @ StoreError::Unavailable(_)) => Err(error.clone()),
            _ => cancel(&store, &asked).await,
        };
        match cancelled {
            Ok(Some(response)) if is_cancelled(&response) => {
                let why = match state {
                    Ok(rcrt_breadcrumb::Call { state: CallState::Queued, .. }) => {
                        "no runner had started it; is one running?"
                    }
                    _ => "it was still running; --timeout SECONDS waits longer",
                };
                anyhow::bail!("{late}, so the call was cancelled; {why} (request {request})")
            }
            // The response arrived before the cancellation.
            Ok(Some(response)) => show(&response, output, &watching),
            Ok(None) => {
                anyhow::bail!("{late}; the call is being cancelled, but has not stopped yet (request {request})")
            }
            Err(StoreError::Unavailable(why)) => Err(Failure::Unreachable(format!(
                "{late}: {}; the call is not cancelled and may still run (request {request})",
                unavailable(&server, &why)
            ))
            .into()),
            Err(error) => {
                Err(anyhow::Error::new(error)
                    .context(format!("{late}, and the call is not cancelled (request {request})")))
            }
        }
    }
}

impl Call {
    fn put_options(&self, context: &mut Map<String, Value>) {
        let fields = [
            ("session", self.session.clone().map(Value::from)),
            ("model", self.model.clone().map(Value::from)),
            ("max_result_chars", self.max_result_chars.map(Value::from)),
            ("deadline_ms", self.deadline.map(Value::from)),
            ("version", self.tool_version.map(Value::from)),
            ("definition_hash", self.definition_hash.clone().map(Value::from)),
            ("debug", self.debug.then(|| true.into())),
        ];
        context.extend(fields.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))));
    }
}

struct Watcher<'w> {
    is_reported: &'w AtomicBool,
    server: &'w Url,
    bar: CallProgressBar,
    printed: Mutex<PrintedLines>,
}

/// The console lines that were printed while the tool ran.
#[derive(Default)]
struct PrintedLines {
    attempt: u32,
    count: u64,
}

impl CallObserver for Watcher<'_> {
    fn lost(&self, why: &StoreError) {
        self.bar.clear();
        report_loss(self.is_reported, self.server, why);
    }

    fn progress(&self, fraction: Option<f64>, message: &str) {
        self.bar.show(fraction, message);
    }

    fn log(&self, log: &ToolLog) {
        self.bar.clear();
        for line in &log.lines {
            eprintln!("[{}] {}", line.level, printable_lines(&line.message).collect::<Vec<_>>().join("\n"));
        }
        *self.printed.lock() = PrintedLines { attempt: log.attempt, count: log.next_line() };
    }
}

/// Reports once that the connection was lost. The call is still awaited.
fn report_loss(is_reported: &AtomicBool, server: &Url, error: &StoreError) {
    if let StoreError::Unavailable(why) = error
        && !is_reported.swap(true, Ordering::Relaxed)
    {
        let what = match rcrt_client::refused_for_now(why) {
            Some(refusal) => format!("{server} refuses the event stream for now: {refusal}"),
            None => format!("the connection to {server} is lost ({why})"),
        };
        eprintln!("rcrt: {what}; retrying until the timeout");
    }
}

/// Prints a hint if no runner has started the call for some time. Never returns.
async fn hint(store: &Client, asked: &pending_call::PendingCall) -> Infallible {
    tokio::time::sleep(HINT_AFTER).await;
    if let Ok(rcrt_breadcrumb::Call { state: CallState::Queued, .. }) = store.call(asked.request).await {
        eprintln!("rcrt: the call is still waiting for a runner; is one running? (Ctrl-C cancels it)");
    }
    std::future::pending().await
}

/// `--workspace x` and `--workspace workspace:x` mean the same.
fn workspace_tag(name: &str) -> String {
    if name.starts_with("workspace:") { name.to_owned() } else { format!("workspace:{name}") }
}

/// Cancels the call and waits until it has stopped, so that nothing continues unnoticed. Returns
/// the response, or `None` if the call did not stop in time.
async fn cancel(store: &Client, asked: &pending_call::PendingCall) -> Result<Option<CallResponse>, StoreError> {
    store.with_deadline(Instant::now() + CANCEL_TIME).cancel(asked.request).await?;
    match tokio::time::timeout(CANCEL_GRACE, pending_call::response(store, asked, &NoObserver)).await {
        Ok(answer) => answer.map(Some),
        Err(_) => Ok(None),
    }
}

/// If the response was lost, it is not known whether the server wrote the request.
fn not_confirmed(error: StoreError, server: &Url, key: &str) -> anyhow::Error {
    match error {
        StoreError::Unavailable(why) => Failure::Unreachable(format!(
            "{}; the call may still run: the same command with --idempotency-key {key} gets its response",
            unavailable(server, &why)
        ))
        .into(),
        error => error.into(),
    }
}

/// Names the arguments of the command in place of the record's fields.
fn as_arguments(mut violations: Violations) -> Violations {
    for violation in &mut violations.0 {
        violation.field = match violation.field.as_str() {
            "context.tool" => "TOOL".to_owned(),
            "context.max_result_chars" => "--max-result-chars".to_owned(),
            "context.deadline_ms" => "--deadline".to_owned(),
            "context.definition_hash" => "--definition-hash".to_owned(),
            field if field.starts_with("tags") => "--workspace".to_owned(),
            field => match field.strip_prefix("context.") {
                Some(option @ ("session" | "model")) => format!("--{option}"),
                _ => field.to_owned(),
            },
        };
    }
    violations
}

fn is_cancelled(response: &CallResponse) -> bool {
    ToolResponse::from_context(&response.context)
        .is_ok_and(|response| response.error_code == Some(ErrorCode::Cancelled))
}

/// Prints the response. An error of the tool exits with status 4.
fn show(answer: &CallResponse, output: Output, watching: &Watcher<'_>) -> anyhow::Result<()> {
    let response = ToolResponse::from_context(&answer.context).context("the response record is not well-formed")?;
    let printed = watching.printed.lock();
    let is_printed = response.metadata.get("attempt").and_then(Value::as_u64) == Some(printed.attempt.into());
    for line in console_lines(&response).iter().skip(if is_printed { printed.count as usize } else { 0 }) {
        eprintln!("{line}");
    }
    for line in response.metadata.get("debug").map(debug_lines).unwrap_or_default() {
        output.note(&line);
    }
    if let Some(notice) = response.notice() {
        eprintln!("rcrt: {notice}");
    }
    if output.is_json() {
        output.json(&answer.context)?;
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
            let error = response.error.as_deref().unwrap_or("no reason given");
            let text = format!("{}: {code}: {error}", response.tool);
            if output.is_json() {
                return Err(Failure::ToolError(text).into());
            }
            eprintln!("rcrt: {text}");
            let details = response.error_details.as_ref();
            for line in failure_lines(error, details) {
                eprintln!("  {line}");
            }
            // The caller set its deadline itself.
            let is_own_limit = details.is_some_and(|details| details["limit"] == "deadline_ms");
            if response.is_retryable == Some(true) && !is_own_limit {
                eprintln!("  A retry can help.");
            }
            Err(Failure::ToolError(text).into())
        }
    }
}

/// Formats a string unchanged, a large result as its index, and everything else as indented JSON.
pub(super) fn readable(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        large if LargeResult::of(large).is_some() => model_text(large).into_owned(),
        other => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
    }
}

pub(super) fn console_lines(response: &ToolResponse) -> Vec<String> {
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
