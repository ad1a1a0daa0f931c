//! The console lines of a call with `debug`, as `tool.log.v1` records: written while the tool runs,
//! some lines in each, at a bounded rate. The last ones are written before the response.

use std::sync::Arc;
use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use rcrt_breadcrumb::{
    Breadcrumbs, LogLine, NewBreadcrumb, Sensitivity, ToolLog, ToolRequest, ToolResponse, TtlType, Visibility,
    schema_names::TOOL_LOG,
};
use rcrt_egress::Vault;
use rcrt_executors::{CallDebug, LogBatch, ToolCall, TriggerChain};
use serde_json::{Map, Value, json};
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;

use crate::backoff::with_retries;

/// The minimum time between two writes while the tool runs.
const PAUSE: Duration = Duration::from_millis(250);
/// How long the lines that are left can take after the run.
const LAST_WRITES: Duration = Duration::from_secs(5);

pub(crate) struct LogWriter {
    /// On behalf of the agent that asked: a caller reads the logs of its own calls.
    store: Arc<dyn Breadcrumbs>,
    request: ToolRequest,
    seen: (Visibility, Sensitivity),
    chain: TriggerChain,
    secrets: Arc<Vault>,
    debug: Arc<CallDebug>,
    attempt: u32,
    /// How many records, and lines in them, were written.
    written: (u64, u64),
    /// How many lines could not be written.
    lost: u64,
    /// The `dropped` of the last record, or 0.
    reported_dropped: u64,
}

impl LogWriter {
    /// `seen`: the visibility and sensitivity of the request.
    pub fn new(call: &ToolCall, debug: Arc<CallDebug>, seen: (Visibility, Sensitivity), attempt: u32) -> Self {
        Self {
            store: call.breadcrumbs.clone(),
            request: call.request.clone(),
            seen,
            chain: call.chain.clone(),
            secrets: call.secrets.clone(),
            debug,
            attempt,
            written: (0, 0),
            lost: 0,
            reported_dropped: 0,
        }
    }

    /// Writes until the run is over, and then what is left; nothing once the lease is `lost`. No
    /// write is in progress when it returns. Returns what the response says of the run.
    pub async fn run(mut self: Box<Self>, over: &CancellationToken, lost: &CancellationToken) -> Map<String, Value> {
        let ended = async {
            over.cancelled().await;
            sleep(LAST_WRITES).await;
        };
        tokio::select! {
            biased;
            () = lost.cancelled() => {}
            () = self.write_all(over) => {}
            () = ended => tracing::warn!("a call's last console lines are not written in time"),
        }
        let mut summary = self.debug.summary();
        let (records, lines) = self.written;
        let dropped = self.debug.printed().saturating_sub(lines);
        summary.insert("log".into(), json!({"records": records, "lines": lines, "dropped": dropped}));
        summary
    }

    async fn write_all(&mut self, over: &CancellationToken) {
        while !over.is_cancelled() {
            tokio::select! {
                () = over.cancelled() => break,
                () = self.debug.lines_added() => {}
            }
            let began = Instant::now();
            let batch = self.debug.take_lines();
            self.write(batch).await;
            tokio::select! {
                () = over.cancelled() => break,
                () = sleep_until(began + PAUSE) => {}
            }
        }
        while {
            let batch = self.debug.take_lines();
            self.write(batch).await
        } {}
    }

    /// Returns whether there was something to write.
    async fn write(&mut self, batch: LogBatch) -> bool {
        let LogBatch { first_line, lines, dropped } = batch;
        let dropped = dropped.saturating_add(self.lost);
        if lines.is_empty() && dropped == self.reported_dropped {
            return false;
        }
        self.reported_dropped = dropped;
        let (sequence, count) = (self.written.0, lines.len() as u64);
        let key = format!("log:{}:{}:{sequence}:{first_line}", self.request.id, self.attempt);
        let record = self.record(sequence, first_line, lines, dropped);
        let create = with_retries("write console lines", || self.store.create(record.clone(), Some(&key)));
        match create.await {
            Ok(_) => self.written = (sequence + 1, self.written.1 + count),
            Err(error) => {
                tracing::warn!(%error, lines = count, "console lines cannot be written");
                self.lost += count;
            }
        }
        true
    }

    fn record(&self, sequence: u64, first_line: u64, lines: Vec<LogLine>, dropped: u64) -> NewBreadcrumb {
        let request = &self.request;
        let clear = |line: LogLine| {
            // Postgres cannot store NUL.
            let message = self.secrets.cleared(&line.message).replace('\0', "\u{fffd}");
            LogLine { message, ..line }
        };
        let log = ToolLog {
            request_id: request.request_id.clone(),
            request: request.id,
            tool: request.tool.clone(),
            attempt: self.attempt,
            sequence,
            first_line,
            lines: lines.into_iter().map(clear).collect(),
            dropped,
            timestamp: Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
        };
        let mut tags = vec![ToolLog::TAG.to_owned(), ToolResponse::tag(&request.request_id)];
        tags.extend(request.workspace.clone());
        if !self.chain.is_empty() {
            self.chain.mark(&mut tags, 1);
        }
        NewBreadcrumb {
            title: format!("Log of {}", request.tool.chars().take(200).collect::<String>()),
            context: log.into_context(),
            tags,
            schema_name: Some(TOOL_LOG.into()),
            ttl_type: Some(TtlType::Duration),
            ttl_config: Some(json!({"duration": ToolLog::TTL_SECONDS})),
            visibility: self.seen.0,
            sensitivity: self.seen.1,
            ..NewBreadcrumb::default()
        }
    }
}
