//! The traits [`CallQueue`] and [`Runners`].

use async_trait::async_trait;
use uuid::Uuid;

use crate::{
    AnsweredTerms, Call, Claim, ClaimRequest, ClaimTerms, Created, Lease, LeaseState, NewBreadcrumb, Records, Release,
    ReportReply, RunnerDrain, RunnerInfo, RunnerReport, StoreError,
};

/// The queue of calls.
#[async_trait]
pub trait CallQueue: Records {
    /// Waits until a call is queued through this process, so that a runner in the same process need
    /// not wait for the event. The first wait on a value returns at once; each later one returns
    /// when a call was queued after the previous wait.
    ///
    /// This is a hint, sent right after the commit. Another runner may already have claimed the
    /// call. A call that is queued by another process, or returned to the queue, sends no hint. If
    /// the store cannot send hints, this never returns.
    async fn call_queued(&self) {
        std::future::pending::<()>().await;
    }

    /// Like [`Records::create`] of a `tool.request.v1`, and claims its call in the same statement.
    /// The lease begins with the write. The claim is `None` if the call is not the runner's: the
    /// write was a replay, or the store cannot do this and queued the call.
    ///
    /// After [`StoreError::Unavailable`] the request may have been written, under the id that the
    /// terms name. Only for dispatchers in the process of the store; HTTP has no such route.
    async fn create_claimed(
        &self,
        request: NewBreadcrumb,
        idempotency_key: Option<&str>,
        _terms: ClaimTerms,
    ) -> Result<(Created, Option<Claim>), StoreError> {
        Ok((self.create(request, idempotency_key).await?, None))
    }

    /// Like [`Records::create`] of a `tool.request.v1`, and writes its response in the same
    /// statement. The call is finished from the start.
    ///
    /// If the response cannot be written, the result is an error, and nothing is written. A store
    /// that cannot do this always returns one.
    async fn create_answered(
        &self,
        _request: NewBreadcrumb,
        _idempotency_key: Option<&str>,
        _terms: AnsweredTerms,
    ) -> Result<Created, StoreError> {
        Err(StoreError::Internal("this store cannot write a request with its response".into()))
    }

    /// Claims up to `limit` queued calls for a runner, oldest first.
    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError>;

    /// Marks a claimed call as running. From then on, the call is repeated only if attempts are
    /// left: `max_attempts` is the tool's limit.
    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError>;

    /// Extends leases so that they last `lease_ms` from now. Returns the status of each lease, in
    /// the order given.
    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<LeaseState>, StoreError>;

    /// Writes the response and finishes the call, in one transaction. Returns the id of the
    /// response record.
    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError>;

    /// Returns a call to the queue.
    async fn release(&self, lease: Lease, release: Release) -> Result<(), StoreError>;

    /// Returns the state of a request's call.
    async fn call(&self, request: Uuid) -> Result<Call, StoreError>;

    /// Cancels a request. A queued call gets the response `Cancelled` at once. If the call is
    /// claimed or running, its runner is notified through the request's record, where
    /// `context.cancel_requested` becomes true. Cancelling a finished call changes nothing.
    async fn cancel(&self, request: Uuid) -> Result<Call, StoreError>;
}

/// The live runners of the tenant. A write of a tool waits for them, so that the next call uses the
/// new version.
#[async_trait]
pub trait Runners: Send + Sync + 'static {
    /// Reports that a runner is live. For runners.
    async fn report_runner(&self, report: &RunnerReport) -> Result<ReportReply, StoreError>;

    /// The live runners with their load, for curators. A store without runners returns none.
    async fn runners(&self) -> Result<Vec<RunnerInfo>, StoreError> {
        Ok(Vec::new())
    }

    /// Asks a live runner to take no more calls, or to take calls again. It follows with its next
    /// report. For curators. [`StoreError::NotFound`] if no such runner is live.
    async fn drain_runner(&self, id: Uuid, _drain: RunnerDrain) -> Result<RunnerInfo, StoreError> {
        Err(StoreError::NotFound { what: "runner", id })
    }

    /// The live runners that do not yet use the newest version of this tool. A store whose writes
    /// are waited for elsewhere returns none.
    async fn runners_behind(&self, _tool: Uuid) -> Result<Vec<Uuid>, StoreError> {
        Ok(Vec::new())
    }
}
