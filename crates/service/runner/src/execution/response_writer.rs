//! Writes the one response of a call, or releases the call.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, Utc};
use opentelemetry::context::FutureExt;
use rcrt_breadcrumb::{
    Breadcrumb, Breadcrumbs, Claim, ErrorCode, MAX_RECORD_BYTES, NewBreadcrumb, Release, Sensitivity, StoreError,
    ToolFailure, ToolRequest, ToolResponse, Visibility, object_bytes,
};
use rcrt_executors::TriggerChain;
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use uuid::Uuid;

use crate::backoff::{doubled, jittered, with_retries};
use crate::coordination::leases::LeaseGuard;
use crate::coordination::queue_hints::QueueHints;
use crate::execution::deadline::Deadline;
use crate::execution::stages::Stages;
use crate::execution::telemetry::{self, Invocation};
use crate::on_behalf_of::on_behalf_of;
use crate::registry::tool::{Candidate, Tool};

const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// How long writing a response is retried after its lease was lost.
const LOST_LEASE_GRACE: Duration = Duration::from_secs(2);

/// The most characters of an error in the log.
const MAX_LOGGED: usize = 300;

pub(crate) struct ResponseWriter {
    pub store: Arc<dyn Breadcrumbs>,
    pub runner_id: Uuid,
    pub hints: Arc<QueueHints>,
}

/// What a response needs to know about its attempt.
pub(crate) struct Attempt<'c> {
    /// From 1.
    pub number: u32,
    /// The request's record.
    pub record: &'c Breadcrumb,
    pub request: &'c ToolRequest,
    pub queued_at: DateTime<Utc>,
    pub stages: Stages,
    pub invocation: Invocation,
}

/// A response that is to be written, with what is needed to write it.
pub(crate) struct PendingResponse<'c> {
    pub attempt: Attempt<'c>,
    pub claim: &'c Claim,
    pub held: &'c LeaseGuard,
    pub deadline: Option<Deadline>,
    /// The maximum number of attempts, if the call was not started in the store. The store then
    /// counts this attempt when it gets the response.
    pub unstarted: Option<u32>,
}

impl ResponseWriter {
    /// Writes the response of a call that failed before it ran.
    pub async fn fail(&self, pending: &PendingResponse<'_>, tool: Option<&Candidate>, failure: ToolFailure) {
        let metadata = self.metadata(&pending.attempt, tool, Map::new());
        self.write(pending, tool, Err(failure), Duration::ZERO, metadata).await;
    }

    /// Finishes a call that ran: writes its response, or queues it again if a retry can succeed and
    /// attempts are left.
    pub async fn finish(
        &self,
        pending: &PendingResponse<'_>,
        tool: &Tool,
        result: Result<Value, ToolFailure>,
        elapsed: Duration,
        metadata: Map<String, Value>,
    ) {
        if let Err(failure) = &result
            && failure.is_retryable
            && failure.code != ErrorCode::Cancelled
            && pending.attempt.number < tool.definition.limits.max_attempts
            && let Some(pause) = pause_before_retry(pending)
            && self.retry(pending, failure, pause).await
        {
            pending.attempt.invocation.failed(failure.code);
            return;
        }
        let metadata = self.metadata(&pending.attempt, Some(tool), metadata);
        self.write(pending, Some(tool), result, elapsed, metadata).await;
    }

    /// The response of an attempt that succeeded before its request was written. `None` if the
    /// store would refuse it.
    pub fn speculative_response(
        &self,
        attempt: &Attempt<'_>,
        tool: &Tool,
        result: Value,
        elapsed: Duration,
        metadata: Map<String, Value>,
    ) -> Option<NewBreadcrumb> {
        let metadata = self.metadata(attempt, Some(tool), metadata);
        let response = ToolResponse::new(attempt.request, Ok(result), elapsed.as_millis() as u64, metadata, Utc::now());
        Some(record(attempt, response)).filter(|record| unstorable(record).is_none())
    }

    /// Releases a call that was not started.
    pub async fn release_unstarted(&self, held: &LeaseGuard) {
        let release = with_retries("release a call", || self.store.release(held.lease, Release::Unstarted));
        tokio::select! {
            () = held.lost.cancelled() => {}
            released = release => match released {
                Ok(()) => tracing::debug!("the call was released"),
                Err(error) => tracing::warn!(%error, "the call cannot be released; its lease will expire"),
            },
        }
    }

    /// True if nothing is left to do.
    async fn retry(&self, pending: &PendingResponse<'_>, failure: &ToolFailure, delay: Duration) -> bool {
        let again = Release::Retry { after_ms: delay.as_millis() as u64 };
        let released = tokio::select! {
            () = pending.held.lost.cancelled() => return true,
            released = with_retries("queue a call again", || self.store.release(pending.held.lease, again)) => released,
        };
        match released {
            Ok(()) => {
                tracing::info!(code = %failure.code, delay_ms = delay.as_millis() as u64, "the attempt failed; it will be tried again");
                self.hints.after(delay);
                true
            }
            Err(StoreError::LeaseLost { .. }) => true,
            Err(error) => {
                tracing::warn!(%error, "the call cannot be queued again; its failure is the response");
                false
            }
        }
    }

    fn metadata(
        &self,
        attempt: &Attempt<'_>,
        tool: Option<&Candidate>,
        from_executor: Map<String, Value>,
    ) -> Map<String, Value> {
        let mut metadata = Map::with_capacity(from_executor.len() + 12);
        metadata.extend(from_executor);
        metadata.insert("attempt".into(), attempt.number.into());
        // The record's id identifies the request. The `request_id` that the caller chose need not
        // be unique.
        metadata.insert("request".into(), attempt.request.id.to_string().into());
        metadata.insert("runner_id".into(), self.runner_id.to_string().into());
        if let Some(tool) = tool {
            metadata.insert("tool_id".into(), tool.id.to_string().into());
            metadata.insert("tool_version".into(), tool.version.into());
            metadata.insert("definition_hash".into(), tool.definition_hash.as_str().into());
            metadata.insert("tool_schema_name".into(), tool.schema_name().into());
            if let Some(deprecation) = &tool.definition.deprecated {
                metadata.insert("deprecated".into(), json!(deprecation));
            }
        }
        // Before the whole time, which is never shorter than its parts.
        metadata.insert("stages".into(), attempt.stages.metadata());
        let waited = (Utc::now() - attempt.queued_at).num_milliseconds().max(0);
        metadata.insert("since_queued_ms".into(), waited.into());
        if let Some(trace) = attempt.invocation.trace_id() {
            metadata.insert("trace_id".into(), trace.into());
        }
        metadata
    }

    async fn write(
        &self,
        pending: &PendingResponse<'_>,
        tool: Option<&Candidate>,
        result: Result<Value, ToolFailure>,
        elapsed: Duration,
        metadata: Map<String, Value>,
    ) {
        let mut response =
            ToolResponse::new(pending.attempt.request, result, elapsed.as_millis() as u64, metadata, Utc::now());
        let mut record = record(&pending.attempt, response.clone());
        if let Some(failure) = unstorable(&record) {
            response = failed(&pending.attempt, failure, &response);
            record = self::record(&pending.attempt, response.clone());
        }
        let writing = pending.attempt.invocation.stage("write");
        match self.complete(pending, &record).with_context(writing.clone()).await {
            Ok(()) => {}
            Err(error @ (StoreError::Invalid(_) | StoreError::TooLarge { .. })) => {
                tracing::error!(%error, "the store refused a response that passed the checks here");
                let failure = ToolFailure::new(ErrorCode::InvalidOutput, "the output cannot be stored");
                response = failed(&pending.attempt, failure, &response);
                let record = self::record(&pending.attempt, response.clone());
                if let Err(error) = self.complete(pending, &record).with_context(writing).await {
                    return self.response_not_written(pending, &error).await;
                }
            }
            Err(StoreError::LeaseLost { .. }) => {
                tracing::warn!("the lease was lost; the response is not written");
                return;
            }
            Err(error) => return self.response_not_written(pending, &error).await,
        }
        tracing::debug!(status = ?response.status, code = ?response.error_code, took_ms = response.execution_time_ms, "the response is written");
        if let Some(code) = response.error_code {
            log_failure(&pending.attempt, code, &response);
            pending.attempt.invocation.failed(code);
        }
        telemetry::answered(tool.map(Candidate::name), response.status, elapsed);
    }

    /// The store responds to the call when its lease expires. Without a counted attempt it would
    /// queue the call again each time.
    async fn response_not_written(&self, pending: &PendingResponse<'_>, error: &StoreError) {
        tracing::error!(%error, "a response cannot be written; the lease will expire");
        if let Some(max_attempts) = pending.unstarted
            && let Err(error) = self.store.start(pending.held.lease, max_attempts).await
        {
            tracing::warn!(%error, "the attempt cannot be counted");
        }
    }

    /// Retries while the lease is held.
    async fn complete(&self, pending: &PendingResponse<'_>, record: &NewBreadcrumb) -> Result<(), StoreError> {
        let lease = pending.held.lease;
        // A private response belongs to the agent that made the request.
        let asker = pending.claim.request.created_by.filter(|_| record.visibility == Visibility::Private);
        let store = on_behalf_of(&self.store, asker)?;
        tokio::select! {
            biased;
            done = with_retries("write a response", || store.complete(lease, record.clone())) => done.map(|_| ()),
            // A written response also ends the lease: then the result of `complete` is more
            // precise.
            () = async { pending.held.lost.cancelled().await; sleep(LOST_LEASE_GRACE).await } => {
                Err(StoreError::LeaseLost { request: lease.request })
            }
        }
    }
}

/// The one line of a failed call. Tools choose the message, which may be of a secret request.
fn log_failure(attempt: &Attempt<'_>, code: ErrorCode, response: &ToolResponse) {
    let is_secret = attempt.record.sensitivity == Sensitivity::Secret;
    let logged = |text: Option<&str>| -> String {
        text.filter(|_| !is_secret).unwrap_or_default().chars().take(MAX_LOGGED).collect()
    };
    let error = logged(response.error.as_deref());
    let cause = logged(response.error_details.as_ref().and_then(|details| details.get("cause")?.as_str()));
    tracing::info!(
        request = %attempt.request.id, tool = attempt.request.tool, %code, ?error,
        cause = (!cause.is_empty()).then(|| tracing::field::debug(&cause)), attempt = attempt.number,
        took_ms = response.execution_time_ms, "the call failed"
    );
}

/// `None` if the request's deadline passes first. The response is then this failure and not a
/// timeout.
fn pause_before_retry(pending: &PendingResponse<'_>) -> Option<Duration> {
    let pause = jittered(doubled(FIRST_RETRY, pending.attempt.number.saturating_sub(1), LONGEST_RETRY));
    pending.deadline.is_none_or(|deadline| deadline.outlasts(pause)).then_some(pause)
}

fn record(attempt: &Attempt<'_>, response: ToolResponse) -> NewBreadcrumb {
    let mut record = response.record(attempt.request);
    let request = attempt.record;
    record.visibility = inherited(request);
    if request.sensitivity == Sensitivity::Secret {
        record.sensitivity = Sensitivity::Secret;
    }
    let chain = TriggerChain::of_call(request.id, &request.tags);
    if !chain.is_empty() {
        chain.mark(&mut record.tags, 1);
    }
    record
}

/// The response has the visibility of its request.
pub(crate) fn inherited(request: &Breadcrumb) -> Visibility {
    if request.visibility == Visibility::Private { Visibility::Private } else { Visibility::default() }
}

/// Why the store would refuse this response.
fn unstorable(record: &NewBreadcrumb) -> Option<ToolFailure> {
    let violations = record.check().err()?;
    let size = object_bytes(&record.context);
    if size > MAX_RECORD_BYTES {
        let message = format!("the result is {size} bytes of JSON; at most {MAX_RECORD_BYTES} fit into a response");
        let details = json!({"size_bytes": size, "limit_bytes": MAX_RECORD_BYTES});
        return Some(ToolFailure::new(ErrorCode::ResourceExhausted, message).with_details(details));
    }
    let message = format!("the output cannot be stored: {violations}");
    Some(ToolFailure::new(ErrorCode::InvalidOutput, message).with_details(json!({"violations": violations.0})))
}

/// The same response with a failure in place of its result. Metadata of executors is dropped, since
/// it may be what the store refused.
fn failed(attempt: &Attempt<'_>, failure: ToolFailure, before: &ToolResponse) -> ToolResponse {
    let ours = [
        "attempt",
        "request",
        "runner_id",
        "tool_id",
        "tool_version",
        "definition_hash",
        "tool_schema_name",
        "deprecated",
        "debug",
        "since_queued_ms",
        "stages",
        "trace_id",
    ];
    let metadata: Map<String, Value> = before
        .metadata
        .iter()
        .filter(|(key, _)| ours.contains(&key.as_str()))
        .map(|(k, v)| (k.clone(), v.clone()))
        .collect();
    ToolResponse::new(attempt.request, Err(failure), before.execution_time_ms, metadata, Utc::now())
}
