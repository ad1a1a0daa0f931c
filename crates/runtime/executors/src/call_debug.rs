//! What an attempt of a call with `debug` does: its console lines, until they are written, and a
//! timeline of its requests to the network and its calls of `context.api`. It is bounded, and has
//! no text of the tool except the console lines and the names of hosts.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rcrt_breadcrumb::{EgressRecord, LogLine, OpError};
use rcrt_egress::RequestObserver;
use rcrt_sandbox::protocol::{MAX_CONSOLE_BYTES, MAX_CONSOLE_LINES};
use rcrt_sandbox::{CallObserver, ConsoleLevel, ConsoleLine, ProcessUsage};
use serde_json::{Map, Value, json};
use tokio::sync::Notify;
use tokio::time::Instant;

/// The most entries of a timeline.
const MAX_STEPS: usize = 200;
/// The most console lines that are taken at once.
const MAX_BATCH: usize = 200;

/// Records one attempt.
pub struct CallDebug {
    began: Instant,
    recorded: Mutex<Recorded>,
    has_lines: Notify,
}

#[derive(Default)]
struct Recorded {
    steps: Vec<Step>,
    omitted_steps: u64,
    /// Lines that were not taken yet.
    lines: Vec<LogLine>,
    /// How many lines were accepted, and their bytes.
    accepted: (usize, usize),
    dropped: u64,
    usage: Option<ProcessUsage>,
}

struct Step {
    at: Duration,
    entry: Value,
}

/// Console lines to write.
#[derive(Debug, PartialEq, Eq)]
pub struct LogBatch {
    /// The number of the first line in its attempt, from 0.
    pub first_line: u64,
    pub lines: Vec<LogLine>,
    /// How many lines of the attempt were beyond its limits so far.
    pub dropped: u64,
}

impl CallDebug {
    /// The attempt begins now.
    pub fn begin() -> Arc<Self> {
        Arc::new(Self { began: Instant::now(), recorded: Mutex::default(), has_lines: Notify::new() })
    }

    /// Returns when there are lines to take. They may have been taken meanwhile.
    pub async fn lines_added(&self) {
        self.has_lines.notified().await;
    }

    /// Takes the oldest lines that were not taken yet.
    pub fn take_lines(&self) -> LogBatch {
        let mut recorded = self.recorded.lock();
        let first_line = recorded.accepted.0 - recorded.lines.len();
        let most = recorded.lines.len().min(MAX_BATCH);
        let lines = recorded.lines.drain(..most).collect();
        if !recorded.lines.is_empty() {
            self.has_lines.notify_one();
        }
        LogBatch { first_line: first_line as u64, lines, dropped: recorded.dropped }
    }

    /// How many lines the tool printed so far, as far as that is known.
    pub fn printed(&self) -> u64 {
        let recorded = self.recorded.lock();
        recorded.dropped.saturating_add(recorded.accepted.0 as u64)
    }

    /// Begins a call of `context.api`.
    pub fn begin_api(&self, operation: &'static str) -> ApiStep<'_> {
        ApiStep { debug: self, operation, begun: Instant::now(), outcome: "interrupted".into() }
    }

    /// What the response says of the attempt: `cpu_ms` and `peak_memory_bytes` of tool code, and
    /// `timeline`.
    pub fn summary(&self) -> Map<String, Value> {
        let mut recorded = self.recorded.lock();
        let mut summary = Map::new();
        let usage = recorded.usage.unwrap_or_default();
        if let Some(cpu) = usage.cpu {
            summary.insert("cpu_ms".into(), ms(cpu));
        }
        if let Some(bytes) = usage.peak_memory {
            summary.insert("peak_memory_bytes".into(), bytes.into());
        }
        recorded.steps.sort_by_key(|step| step.at);
        summary.insert("timeline".into(), recorded.steps.iter().map(|step| step.entry.clone()).collect());
        if recorded.omitted_steps > 0 {
            summary.insert("timeline_omitted".into(), recorded.omitted_steps.into());
        }
        summary
    }

    /// Adds an entry of the timeline that began `took` ago.
    fn add(&self, took: Duration, entry: impl FnOnce(Value) -> Value) {
        let at = self.began.elapsed().saturating_sub(took);
        let mut recorded = self.recorded.lock();
        if recorded.steps.len() < MAX_STEPS {
            recorded.steps.push(Step { at, entry: entry(ms(at)) });
        } else {
            recorded.omitted_steps += 1;
        }
    }
}

/// Milliseconds, to the microsecond.
fn ms(time: Duration) -> Value {
    json!(time.as_micros() as f64 / 1000.0)
}

impl RequestObserver for CallDebug {
    fn ended(&self, request: &EgressRecord) {
        self.add(Duration::from_millis(request.duration_ms), |at_ms| {
            json!({
                "kind": "fetch",
                "at_ms": at_ms,
                "ms": request.duration_ms,
                "method": request.method,
                "host": request.host,
                "port": request.port,
                "outcome": request.outcome,
                "status": request.status,
                "bytes_out": request.bytes_out,
                "bytes_in": request.bytes_in,
            })
        });
    }
}

impl CallObserver for CallDebug {
    fn console(&self, line: &ConsoleLine) {
        let at_ms = self.began.elapsed().as_millis() as u64;
        let mut recorded = self.recorded.lock();
        let (lines, bytes) = (recorded.accepted.0 + 1, recorded.accepted.1 + line.message.len());
        // The sandbox has the same limits.
        if lines > MAX_CONSOLE_LINES || bytes > MAX_CONSOLE_BYTES {
            recorded.dropped += 1;
            return;
        }
        recorded.accepted = (lines, bytes);
        let level = level_name(line.level).to_owned();
        recorded.lines.push(LogLine { level, message: line.message.clone(), at_ms });
        drop(recorded);
        self.has_lines.notify_one();
    }

    fn ended(&self, usage: ProcessUsage) {
        let mut recorded = self.recorded.lock();
        recorded.dropped = recorded.dropped.saturating_add(usage.omitted_lines);
        recorded.usage = Some(usage);
    }
}

fn level_name(level: ConsoleLevel) -> &'static str {
    match level {
        ConsoleLevel::Debug => "debug",
        ConsoleLevel::Log => "log",
        ConsoleLevel::Info => "info",
        ConsoleLevel::Warn => "warn",
        ConsoleLevel::Error => "error",
    }
}

/// A call of `context.api` in progress. It is recorded on drop; without [`ApiStep::end`], the
/// attempt ended first.
pub struct ApiStep<'d> {
    debug: &'d CallDebug,
    operation: &'static str,
    begun: Instant,
    outcome: String,
}

impl ApiStep<'_> {
    /// `result`: what the tool gets. That of `callTool` can be the failure of the other tool.
    pub fn end(mut self, result: &Result<Value, OpError>) {
        self.outcome = match result {
            Ok(value) => value["failure"]["code"].as_str().unwrap_or("ok").to_owned(),
            Err(error) => error.name.clone(),
        };
    }
}

impl Drop for ApiStep<'_> {
    fn drop(&mut self) {
        let (took, operation, outcome) = (self.begun.elapsed(), self.operation, std::mem::take(&mut self.outcome));
        self.debug.add(
            took,
            |at_ms| json!({"kind": "api", "at_ms": at_ms, "ms": ms(took), "operation": operation, "outcome": outcome}),
        );
    }
}
