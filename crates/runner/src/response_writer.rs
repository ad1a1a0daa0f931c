//! Writes the one response of a call, or releases the call.

use std::sync::Arc;
use std::time::Duration;

use breadcrumb::{
    Breadcrumb, Breadcrumbs, Claim, ErrorCode, MAX_RECORD_BYTES, NewBreadcrumb, Release, Sensitivity, StoreError,
    ToolFailure, ToolRequest, ToolResponse, Visibility,
};
use chrono::{DateTime, Utc};
use executors::TriggerChain;
use opentelemetry::context::FutureExt;
use serde_json::{Map, Value, json};
use tokio::time::sleep;
use uuid::Uuid;

use crate::backoff::{doubled, jittered, with_retries};
use crate::deadline::Deadline;
use crate::leases::LeaseGuard;
use crate::queue_hints::QueueHints;
use crate::stages::Stages;
use crate::telemetry::{self, Invocation};
use crate::tool::{Candidate, Tool};
use crate::voice::in_name_of;

const FIRST_RETRY: Duration = Duration::from_millis(500);
const LONGEST_RETRY: Duration = Duration::from_secs(30);
/// How long the store is retried about a response whose lease is lost by then.
const LOST_LEASE_GRACE: Duration = Duration::from_secs(2);

pub(crate) struct ResponseWriter {
    pub store: Arc<dyn Breadcrumbs>,
    pub runner_id: Uuid,
    pub hints: Arc<QueueHints>,
}

/// One attempt at a call, as far as its response needs it.
pub(crate) struct Attempt<'c> {
    /// From 1.
    pub number: u32,
    /// The request as it is written.
    pub record: &'c Breadcrumb,
    pub request: &'c ToolRequest,
    pub queued_at: DateTime<Utc>,
    pub stages: Stages,
    pub invocation: Invocation,
}

/// The content of the response.
pub(crate) struct PendingResponse<'c> {
    pub attempt: Attempt<'c>,
    pub claim: &'c Claim,
    pub held: &'c LeaseGuard,
    pub deadline: Option<Deadline>,
    /// The number of attempts, if the store did not get the start: then it learns of this attempt
    /// only from the response.
    pub unstarted: Option<u32>,
}

impl ResponseWriter {
    /// A call that failed before it ran.
    pub async fn fail(&self, answer: &PendingResponse<'_>, tool: Option<&Candidate>, failure: ToolFailure) {
        let metadata = self.metadata(&answer.attempt, tool, Map::new());
        self.write(answer, tool, Err(failure), Duration::ZERO, metadata).await;
    }

    /// A call that ran: answered, or queued again if a retry can succeed and attempts are left.
    pub async fn finish(
        &self,
        answer: &PendingResponse<'_>,
        tool: &Tool,
        result: Result<Value, ToolFailure>,
        elapsed: Duration,
        metadata: Map<String, Value>,
    ) {
        if let Err(failure) = &result
            && failure.is_retryable
            && failure.code != ErrorCode::Cancelled
            && answer.attempt.number < tool.definition.limits.max_attempts
            && let Some(pause) = pause_before_retry(answer)
            && self.retry(answer, failure, pause).await
        {
            answer.attempt.invocation.failed(failure.code);
            return;
        }
        let metadata = self.metadata(&answer.attempt, Some(tool), metadata);
        self.write(answer, Some(tool), result, elapsed, metadata).await;
    }

    /// The response of an attempt that ended well before its request was written; `None` where the store would not take it.
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
        Some(record(attempt, &response)).filter(|record| unstorable(record).is_none())
    }

    /// Releases a call that was not started.
    pub async fn give_back(&self, held: &LeaseGuard) {
        let release = with_retries("give a call back", || self.store.release(held.lease, Release::Unstarted));
        tokio::select! {
            () = held.lost.cancelled() => {}
            released = release => match released {
                Ok(()) => tracing::debug!("the call was given back"),
                Err(error) => tracing::warn!(%error, "the call cannot be given back; its lease will end"),
            },
        }
    }

    /// True when nothing is left to do here.
    async fn retry(&self, answer: &PendingResponse<'_>, failure: &ToolFailure, delay: Duration) -> bool {
        let again = Release::Retry { after_ms: delay.as_millis() as u64 };
        let released = tokio::select! {
            () = answer.held.lost.cancelled() => return true,
            released = with_retries("queue a call again", || self.store.release(answer.held.lease, again)) => released,
        };
        match released {
            Ok(()) => {
                tracing::info!(code = %failure.code, delay_ms = delay.as_millis() as u64, "the attempt failed; it will be tried again");
                self.hints.after(delay);
                true
            }
            Err(StoreError::LeaseLost { .. }) => true,
            Err(error) => {
                tracing::warn!(%error, "the call cannot be queued again; it is answered");
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
        let mut metadata = from_executor;
        metadata.insert("attempt".into(), attempt.number.into());
        // The id by which readers of the response know it: the request's own id may also be another
        // request's.
        metadata.insert("request".into(), attempt.request.id.to_string().into());
        metadata.insert("runner_id".into(), self.runner_id.to_string().into());
        if let Some(tool) = tool {
            metadata.insert("tool_id".into(), tool.id.to_string().into());
            metadata.insert("tool_version".into(), tool.version.into());
            metadata.insert("tool_schema_name".into(), tool.schema_name().into());
        }
        let waited = (Utc::now() - attempt.queued_at).num_milliseconds().max(0);
        metadata.insert("since_queued_ms".into(), waited.into());
        metadata.insert("stages".into(), attempt.stages.metadata());
        if let Some(trace) = attempt.invocation.trace_id() {
            metadata.insert("trace_id".into(), trace.into());
        }
        metadata
    }

    async fn write(
        &self,
        answer: &PendingResponse<'_>,
        tool: Option<&Candidate>,
        result: Result<Value, ToolFailure>,
        elapsed: Duration,
        metadata: Map<String, Value>,
    ) {
        let mut response =
            ToolResponse::new(answer.attempt.request, result, elapsed.as_millis() as u64, metadata, Utc::now());
        let mut record = record(&answer.attempt, &response);
        if let Some(failure) = unstorable(&record) {
            response = failed(&answer.attempt, failure, &response);
            record = self::record(&answer.attempt, &response);
        }
        let writing = answer.attempt.invocation.stage("write");
        match self.complete(answer, &record).with_context(writing.clone()).await {
            Ok(()) => {}
            Err(error @ (StoreError::Invalid(_) | StoreError::TooLarge { .. })) => {
                tracing::error!(%error, "the store refused a response that looked good here");
                let failure = ToolFailure::new(ErrorCode::InvalidOutput, "the output cannot be stored");
                response = failed(&answer.attempt, failure, &response);
                let record = self::record(&answer.attempt, &response);
                if let Err(error) = self.complete(answer, &record).with_context(writing).await {
                    return self.response_not_written(answer, &error).await;
                }
            }
            Err(StoreError::LeaseLost { .. }) => {
                tracing::warn!("the lease was lost; the response is not written");
                return;
            }
            Err(error) => return self.response_not_written(answer, &error).await,
        }
        tracing::debug!(status = ?response.status, code = ?response.error_code, took_ms = response.execution_time_ms, "answered");
        if let Some(code) = response.error_code {
            answer.attempt.invocation.failed(code);
        }
        telemetry::answered(tool.map(Candidate::name), response.status, elapsed);
    }

    /// The store responds to the call when its lease ends. If it knows of no attempt yet, it would
    /// hand the call out again and again.
    async fn response_not_written(&self, answer: &PendingResponse<'_>, error: &StoreError) {
        tracing::error!(%error, "a response cannot be written; the lease will end");
        if let Some(max_attempts) = answer.unstarted
            && let Err(error) = self.store.start(answer.held.lease, max_attempts).await
        {
            tracing::warn!(%error, "the attempt cannot be counted");
        }
    }

    /// Tries as long as the lease is kept.
    async fn complete(&self, answer: &PendingResponse<'_>, record: &NewBreadcrumb) -> Result<(), StoreError> {
        let lease = answer.held.lease;
        // A private response belongs to the agent that asked.
        let asker = answer.claim.request.created_by.filter(|_| record.visibility == Visibility::Private);
        let store = in_name_of(&self.store, asker)?;
        tokio::select! {
            biased;
            done = with_retries("write a response", || store.complete(lease, record.clone())) => done.map(|_| ()),
            // The lease also ends with the response itself: then the store's own response is the
            // better one.
            () = async { answer.held.lost.cancelled().await; sleep(LOST_LEASE_GRACE).await } => {
                Err(StoreError::LeaseLost { request: lease.request })
            }
        }
    }
}

/// `None` if the request's deadline passes first: then the failure is the response, not the
/// timeout.
fn pause_before_retry(answer: &PendingResponse<'_>) -> Option<Duration> {
    let pause = jittered(doubled(FIRST_RETRY, answer.attempt.number.saturating_sub(1), LONGEST_RETRY));
    answer.deadline.is_none_or(|deadline| deadline.outlasts(pause)).then_some(pause)
}

fn record(attempt: &Attempt<'_>, response: &ToolResponse) -> NewBreadcrumb {
    let mut record = response.record(attempt.request);
    let request = attempt.record;
    record.visibility = inherited(request);
    if request.sensitivity == Sensitivity::Secret {
        record.sensitivity = Sensitivity::Secret;
    }
    let chain = TriggerChain::of_request(&request.tags);
    if !chain.is_empty() {
        chain.mark(&mut record.tags, 1);
    }
    record
}

/// The response is visible to those who see the request.
pub(crate) fn inherited(request: &Breadcrumb) -> Visibility {
    if request.visibility == Visibility::Private { Visibility::Private } else { Visibility::default() }
}

/// Why the store would not take this response.
fn unstorable(record: &NewBreadcrumb) -> Option<ToolFailure> {
    let violations = record.check().err()?;
    let size = serde_json::to_string(&record.context).map_or(0, |text| text.len());
    if size > MAX_RECORD_BYTES {
        let message = format!("the result is {size} bytes of JSON; at most {MAX_RECORD_BYTES} fit into a response");
        let details = json!({"size_bytes": size, "limit_bytes": MAX_RECORD_BYTES});
        return Some(ToolFailure::new(ErrorCode::ResourceExhausted, message).with_details(details));
    }
    let message = format!("the output cannot be stored: {violations}");
    Some(ToolFailure::new(ErrorCode::InvalidOutput, message).with_details(json!({"violations": violations.0})))
}

/// The same response with a failure in place of its result; what executors added may be what is wrong.
fn failed(attempt: &Attempt<'_>, failure: ToolFailure, before: &ToolResponse) -> ToolResponse {
    let ours = [
        "attempt",
        "request",
        "runner_id",
        "tool_id",
        "tool_version",
        "tool_schema_name",
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
