//! The queue of calls, and the runners that take them.

use async_trait::async_trait;
use rcrt_breadcrumb::{
    AnsweredTerms, Call, CallQueue, Claim, ClaimRequest, ClaimTerms, Created, Lease, LeaseState, NewBreadcrumb,
    Release, ReportReply, RunnerDrain, RunnerInfo, RunnerReport, Runners, StoreError, Violations,
};
use uuid::Uuid;

use super::TenantStore;
use crate::calls::{self, runners};
use crate::database::failure::retrying;
use crate::records::NewRecord;
use crate::writing;

#[async_trait]
impl CallQueue for TenantStore {
    async fn call_queued(&self) {
        self.store.writer.queue_notifier.wait(self.owner_id, &self.queue_waiter).await;
    }

    async fn create_claimed(
        &self,
        request: NewBreadcrumb,
        idempotency_key: Option<&str>,
        terms: ClaimTerms,
    ) -> Result<(Created, Option<Claim>), StoreError> {
        Ok(self.create_as(request, idempotency_key, NewRecord::Claimed(terms)).await?)
    }

    async fn create_answered(
        &self,
        request: NewBreadcrumb,
        idempotency_key: Option<&str>,
        terms: AnsweredTerms,
    ) -> Result<Created, StoreError> {
        writing::check_response(&terms.response)?;
        Ok(self.create_as(request, idempotency_key, NewRecord::Answered(Box::new(terms))).await?.0)
    }

    async fn claim(&self, claim: &ClaimRequest) -> Result<Vec<Claim>, StoreError> {
        claim.check()?;
        for (field, tools) in claim.lists() {
            if tools.iter().any(|tool| tool.contains('\0')) {
                return Err(Violations::one(field, "contains a NUL character (U+0000)").into());
            }
        }
        retrying!(calls::claim(&self.store.database, &self.store.streams.feeds, self.owner_id, claim))
    }

    async fn start(&self, lease: Lease, max_attempts: u32) -> Result<(), StoreError> {
        Ok(calls::start(&self.store.writer, self.owner_id, lease, max_attempts).await?)
    }

    async fn heartbeat(&self, leases: &[Lease], lease_ms: u64) -> Result<Vec<LeaseState>, StoreError> {
        if !(1_000..=600_000).contains(&lease_ms) {
            return Err(Violations::one("lease_ms", "must be from 1000 to 600000").into());
        }
        if leases.is_empty() {
            return Ok(Vec::new());
        }
        retrying!(async { calls::heartbeat(self.begin_async_commit().await?, leases, lease_ms).await })
    }

    async fn complete(&self, lease: Lease, response: NewBreadcrumb) -> Result<Uuid, StoreError> {
        writing::check_response(&response)?;
        Ok(calls::complete(&self.store.writer, self.owner_id, self.actor, lease, response).await?)
    }

    async fn release(&self, lease: Lease, release: Release) -> Result<(), StoreError> {
        retrying!(async { calls::release(self.begin().await?, lease, release).await })
    }

    async fn call(&self, request: Uuid) -> Result<Call, StoreError> {
        self.refuse_hidden(request).await?;
        Ok(calls::find(&mut self.begin().await?, request).await?)
    }

    async fn cancel(&self, request: Uuid) -> Result<Call, StoreError> {
        self.refuse_hidden(request).await?;
        if self.actor().await?.writes_only_requests && !self.has_asked_for(request).await? {
            return Err(StoreError::Forbidden("an agent with the role caller can cancel only its own calls".into()));
        }
        retrying!(async { calls::cancel(self.begin().await?, self.actor.agent, request).await })
    }
}

#[async_trait]
impl Runners for TenantStore {
    async fn report_runner(&self, report: &RunnerReport) -> Result<ReportReply, StoreError> {
        report.check()?;
        self.store.applied_changes.reported(self.owner_id, report);
        retrying!(async { runners::report(self.begin_async_commit().await?, report).await })
    }

    async fn runners(&self) -> Result<Vec<RunnerInfo>, StoreError> {
        Ok(runners::list(self.begin().await?).await?)
    }

    async fn drain_runner(&self, id: Uuid, drain: RunnerDrain) -> Result<RunnerInfo, StoreError> {
        retrying!(async { runners::drain(self.begin().await?, id, drain).await })
    }

    async fn runners_behind(&self, tool: Uuid) -> Result<Vec<Uuid>, StoreError> {
        let mut behind = runners::behind(self.begin().await?, tool).await?;
        self.store.applied_changes.remove_caught_up(self.owner_id, &mut behind);
        Ok(behind.into_iter().map(|one| one.runner_id).collect())
    }
}
