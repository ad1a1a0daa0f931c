//! The log of each request through the egress gate: the log target `egress`, and the tenant's
//! egress log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use chrono::Utc;
use futures::{StreamExt, stream};
use rcrt_breadcrumb::{BodyStream, EgressOutcome, EgressRecord, MAX_EGRESS_REASON, OpError};
use reqwest::{Method, StatusCode};
use tokio::sync::mpsc;
use tokio::time::Instant;
use url::Url;
use uuid::Uuid;

use super::span;
use crate::EgressContext;
use crate::vault::Redaction;

/// The maximum number of records that wait to be written.
const MOST_WAITING: usize = 10_000;

/// Maximum characters of a host in an entry. A name is shorter, but a redacted secret in it can
/// make it longer.
const MAX_HOST: usize = 260;

/// On whose behalf a request is sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    pub owner_id: Uuid,
    /// The agent that asked for the call.
    pub agent_id: Option<Uuid>,
    pub tool_id: Option<Uuid>,
    /// The record of the tool's request, or the id of a webhook's delivery.
    pub call: Option<Uuid>,
}

/// The tenant whose log the record belongs to, and the record.
pub type Logged = (Uuid, EgressRecord);

/// Where entries are sent. The gate never waits: entries that do not fit are counted and dropped.
#[derive(Debug, Clone)]
pub struct EgressRecorder {
    records: mpsc::Sender<Logged>,
    lost: Arc<AtomicU64>,
}

impl EgressRecorder {
    /// Also returns the receiver of the records.
    pub fn new() -> (Self, mpsc::Receiver<Logged>) {
        let (records, taken) = mpsc::channel(MOST_WAITING);
        (Self { records, lost: Arc::default() }, taken)
    }

    /// How many entries were dropped since the last call.
    pub fn take_lost(&self) -> u64 {
        self.lost.swap(0, Ordering::Relaxed)
    }

    fn tell(&self, logged: Logged) {
        if self.records.try_send(logged).is_err() {
            self.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// Receives the requests of a call when they end, each redirect separately. Must not block.
pub trait RequestObserver: Send + Sync {
    fn ended(&self, request: &EgressRecord);
}

/// One request in progress. It is logged on drop: then the response was read or abandoned.
pub(super) struct EgressLogEntry {
    log: Option<(EgressRecorder, Uuid)>,
    record: EgressRecord,
    begun: Instant,
    bytes_out: Arc<AtomicU64>,
    bytes_in: Arc<AtomicU64>,
    redaction: Arc<Redaction>,
    observer: Option<Arc<dyn RequestObserver>>,
}

impl EgressLogEntry {
    /// `None` for a URL without a host and port: no request is sent.
    pub fn begin(
        log: Option<&EgressRecorder>,
        context: EgressContext<'_>,
        (method, url): (&Method, &Url),
    ) -> Option<Self> {
        let EgressContext { tool, vault, origin, observer, .. } = context;
        let (host, port) = (rcrt_breadcrumb::Host::of(url)?, url.port_or_known_default()?);
        let (redaction, observer) = (vault.outward().clone(), observer.cloned());
        let record = EgressRecord {
            at: Utc::now(),
            agent_id: origin.and_then(|origin| origin.agent_id),
            tool: tool.chars().take(200).collect(),
            tool_id: origin.and_then(|origin| origin.tool_id),
            call: origin.and_then(|origin| origin.call),
            // A tool that can read a secret can put it into a host name.
            host: redaction.text(&host.to_string()).chars().take(MAX_HOST).collect(),
            port,
            method: span::known(method.as_str()).into(),
            outcome: EgressOutcome::Failed,
            reason: None,
            status: None,
            bytes_out: 0,
            bytes_in: 0,
            duration_ms: 0,
        };
        let log = log.cloned().zip(origin.map(|origin| origin.owner_id));
        let (bytes_out, bytes_in) = <(Arc<AtomicU64>, Arc<AtomicU64>)>::default();
        Some(Self { log, record, begun: Instant::now(), bytes_out, bytes_in, redaction, observer })
    }

    /// Logs a refusal of the egress gate with its reason. Other errors can quote the path, so they
    /// are logged only as failures.
    pub fn note<T>(&mut self, result: Result<T, OpError>) -> Result<T, OpError> {
        if let Err(error) = &result
            && error.name == "PermissionDenied"
        {
            self.record.outcome = EgressOutcome::Refused;
            self.record.status = None;
            let reason = self.redaction.text(&error.message);
            let is_shown = |c: &char| !c.is_control();
            self.record.reason = Some(reason.chars().filter(is_shown).take(MAX_EGRESS_REASON).collect());
        }
        result
    }

    pub fn answered(&mut self, status: StatusCode) {
        self.record.outcome = EgressOutcome::Answered;
        self.record.status = Some(status.as_u16());
    }

    /// Counts the bytes of the request's body.
    pub fn out(&self) -> &Arc<AtomicU64> {
        &self.bytes_out
    }

    /// Counts the bytes of the response's body as they arrive.
    pub fn inward(&self) -> &Arc<AtomicU64> {
        &self.bytes_in
    }

    /// The response's body. The entry is logged when the body ends or is dropped.
    pub fn log_at_end_of(self, body: BodyStream) -> BodyStream {
        stream::unfold((body, self), |(mut body, log_entry)| async move {
            let piece = body.next().await?;
            Some((piece, (body, log_entry)))
        })
        .boxed()
    }
}

impl Drop for EgressLogEntry {
    fn drop(&mut self) {
        let record = &mut self.record;
        record.bytes_out = self.bytes_out.load(Ordering::Relaxed);
        record.bytes_in = self.bytes_in.load(Ordering::Relaxed);
        record.duration_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let (tool, host, port, method) = (&record.tool, &record.host, record.port, &record.method);
        let (outcome, status, call) =
            (record.outcome.as_str(), record.status, record.call.map(tracing::field::display));
        let (bytes_out, bytes_in, duration_ms) = (record.bytes_out, record.bytes_in, record.duration_ms);
        let reason = record.reason.as_deref();
        tracing::info!(
            target: "egress", tool, call, host, port, method, outcome, status, reason, bytes_out, bytes_in, duration_ms,
            "request"
        );
        if let Some(observer) = &self.observer {
            observer.ended(record);
        }
        if let Some((log, owner_id)) = self.log.take() {
            log.tell((owner_id, record.clone()));
        }
    }
}
