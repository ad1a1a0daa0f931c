//! The progress of a running call, as one `tool.progress.v1` record for subscribers: created with
//! the first report, updated with later ones, at a bounded rate. A report that a newer one has
//! replaced is not written.

use std::sync::Arc;
use std::time::Duration;

use chrono::{SecondsFormat, Utc};
use rcrt_breadcrumb::{
    BreadcrumbChanges, BreadcrumbQuery, ContextMatch, ContextPath, MatchOp, NewBreadcrumb, Records, Selector,
    Sensitivity, StoreError, ToolRequest, ToolResponse, TtlType, Visibility, schema_names::TOOL_PROGRESS,
};
use rcrt_egress::Vault;
use rcrt_executors::{ProgressSink, TriggerChain};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

/// The minimum time between two writes.
const PAUSE: Duration = Duration::from_millis(250);
/// The pause after a failed write.
const PAUSE_AFTER_FAILURE: Duration = Duration::from_secs(2);
/// How long a write in progress can still take after the run: no progress is written after the
/// response.
const LAST_WRITE: Duration = Duration::from_secs(5);
/// How long a record is kept after its last change.
const TTL_SECONDS: u64 = 600;
/// The maximum length of a message, in characters.
const MAX_MESSAGE: usize = 500;
/// The maximum size of a message in bytes. A larger one is not searched for secrets, and only its
/// size is reported.
const MAX_REPORTED: usize = 256 * 1024;

#[derive(Debug, Clone)]
struct ProgressUpdate {
    fraction: Option<f64>,
    message: String,
}

/// The tool's side of the channel.
struct ProgressSender(watch::Sender<Option<ProgressUpdate>>);

impl ProgressSink for ProgressSender {
    fn report(&self, fraction: Option<f64>, message: &str) {
        let fraction = fraction.filter(|fraction| fraction.is_finite()).map(|fraction| fraction.clamp(0.0, 1.0));
        let message = if message.len() > MAX_REPORTED {
            format!("(a message of {} bytes)", message.len())
        } else {
            message.to_owned()
        };
        self.0.send_replace(Some(ProgressUpdate { fraction, message }));
    }
}

/// The store's side of the channel.
pub(crate) struct ProgressWriter {
    /// On behalf of the agent that asked: a caller sees the progress of its own calls.
    store: Arc<dyn Records>,
    request: ToolRequest,
    seen: (Visibility, Sensitivity),
    chain: TriggerChain,
    secrets: Arc<Vault>,
    words: watch::Receiver<Option<ProgressUpdate>>,
    /// The record and its version, once it is written.
    record: Option<(Uuid, i64)>,
}

/// `seen`: the visibility and sensitivity of the request. `chain` marks the record, so that a tool
/// cannot trigger itself by reporting progress.
pub(crate) fn channel(
    store: Arc<dyn Records>,
    request: &ToolRequest,
    seen: (Visibility, Sensitivity),
    chain: TriggerChain,
    secrets: Arc<Vault>,
) -> (Arc<dyn ProgressSink>, ProgressWriter) {
    let (heard, words) = watch::channel(None);
    let request = request.clone();
    (Arc::new(ProgressSender(heard)), ProgressWriter { store, request, seen, chain, secrets, words, record: None })
}

impl ProgressWriter {
    /// Whether there is no report left to write.
    pub fn is_flushed(&self) -> bool {
        // No report can follow once all senders are gone.
        !self.words.has_changed().unwrap_or(false)
    }

    /// The visibility and sensitivity of the request.
    pub fn seen(&self) -> (Visibility, Sensitivity) {
        self.seen
    }

    /// Discards the reports so far.
    pub fn forget(&mut self) {
        self.words.mark_unchanged();
    }

    /// Writes until the run is over. No write is in progress when it returns.
    pub async fn run(mut self, over: &CancellationToken) {
        loop {
            let next = tokio::select! {
                biased;
                () = over.cancelled() => return,
                next = self.words.changed() => next,
            };
            if next.is_err() {
                return;
            }
            let Some(update) = self.words.borrow_and_update().clone() else { continue };
            let began = Instant::now();
            let wrote = tokio::select! {
                wrote = self.write(&update) => wrote,
                () = async { over.cancelled().await; sleep(LAST_WRITE).await } => return,
            };
            let mut pause = PAUSE;
            if let Err(error) = wrote {
                tracing::warn!(%error, "a call's progress cannot be written");
                self.record = None;
                self.words.mark_changed();
                pause = PAUSE_AFTER_FAILURE;
            }
            tokio::select! {
                () = over.cancelled() => return,
                () = sleep_until(began + pause) => {}
            }
        }
    }

    async fn write(&mut self, update: &ProgressUpdate) -> Result<(), StoreError> {
        if let Some((id, version)) = self.record {
            match self.change(id, version, update).await {
                // It has expired or was deleted.
                Err(StoreError::NotFound { .. }) => self.record = None,
                Err(StoreError::VersionConflict { actual, .. }) => return self.change(id, actual, update).await,
                outcome => return outcome,
            }
        }
        // The key depends on the call and not on the attempt, so that there is one record for all
        // attempts.
        let key = format!("progress:{}", self.request.id);
        let record = self.record_of(update, 1);
        let created = match self.store.create(record.clone(), Some(&key)).await {
            Err(StoreError::IdempotencyMismatch) => match self.earlier().await? {
                Some((id, version)) => return self.change(id, version, update).await,
                None => self.store.create(record, None).await?,
            },
            created => created?,
        };
        self.record = Some((created.id, created.version));
        Ok(())
    }

    async fn change(&mut self, id: Uuid, version: i64, update: &ProgressUpdate) -> Result<(), StoreError> {
        let content = self.record_of(update, version + 1);
        let changes = BreadcrumbChanges {
            context: Some(content.context),
            tags: Some(content.tags),
            ttl_type: content.ttl_type,
            ttl_config: content.ttl_config,
            ..BreadcrumbChanges::default()
        };
        let record = self.store.update(id, version, changes).await?;
        self.record = Some((record.id, record.version));
        Ok(())
    }

    /// The record that an earlier attempt wrote.
    async fn earlier(&self) -> Result<Option<(Uuid, i64)>, StoreError> {
        let path = ContextPath::try_from("$.request".to_owned()).map_err(StoreError::Internal)?;
        let of_call = ContextMatch { path, op: MatchOp::Eq, value: self.request.id.to_string().into() };
        let selector = Selector {
            all_tags: vec![ToolResponse::tag(&self.request.request_id)],
            schema_name: Some(TOOL_PROGRESS.into()),
            context_match: vec![of_call],
            ..Selector::default()
        };
        let query = BreadcrumbQuery { selector, limit: 1, ..BreadcrumbQuery::default() };
        Ok(self.store.list(&query).await?.first().map(|row| (row.id, row.version)))
    }

    fn record_of(&self, update: &ProgressUpdate, version: i64) -> NewBreadcrumb {
        let request = &self.request;
        let context = json!({
            "request_id": request.request_id,
            "request": request.id,
            "tool": request.tool,
            "fraction": update.fraction,
            "message": one_line(&self.secrets.cleared(&update.message)),
            "timestamp": Utc::now().to_rfc3339_opts(SecondsFormat::Millis, true),
        });
        let mut tags = vec!["tool:progress".to_owned(), ToolResponse::tag(&request.request_id)];
        tags.extend(request.workspace.clone());
        if !self.chain.is_empty() {
            self.chain.mark(&mut tags, version);
        }
        NewBreadcrumb {
            title: format!("Progress of {}", request.tool.chars().take(200).collect::<String>()),
            context: match context {
                Value::Object(context) => context,
                _ => serde_json::Map::new(),
            },
            tags,
            schema_name: Some(TOOL_PROGRESS.into()),
            ttl_type: Some(TtlType::Duration),
            ttl_config: Some(json!({"duration": TTL_SECONDS})),
            visibility: self.seen.0,
            sensitivity: self.seen.1,
            ..NewBreadcrumb::default()
        }
    }
}

fn one_line(message: &str) -> String {
    let spaced = message.trim().chars().map(|c| if c.is_control() { ' ' } else { c });
    let mut line: String = spaced.take(MAX_MESSAGE).collect();
    if message.trim().chars().count() > MAX_MESSAGE {
        line.pop();
        line.push('…');
    }
    line
}
