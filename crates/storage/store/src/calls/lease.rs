//! What the holder of a lease can do: start, extend, respond, release.

use std::collections::HashMap;
use std::sync::Arc;

use rcrt_breadcrumb::{
    CallState, ErrorCode, Lease, LeaseState, LeaseStatus, NewBreadcrumb, Release, StoreError, ToolFailure, Violations,
};
use uuid::Uuid;

use super::deadlines::NOT_RUN;
use super::queued::{CallRow, call_columns};
use super::store_response::respond;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::rights::actor::Actor;
use crate::writing::{PreparedRecord, WriteOp, WriteOutcome, Writer};

/// The longest delay of a retry: one day.
const MAX_RETRY_MS: u64 = 86_400_000;

fn lost(lease: Lease) -> StoreError {
    StoreError::LeaseLost { request: lease.request }
}

/// A repeated start under the same lease counts once: the caller might not have received the first
/// result.
pub(crate) async fn start(writer: &Arc<Writer>, owner_id: Uuid, lease: Lease, max_attempts: u32) -> Result<()> {
    let max_attempts = max_attempts.clamp(1, 10).cast_signed();
    match writer.write(owner_id, WriteOp::Start { lease, max_attempts }).await? {
        WriteOutcome::Written(_) => Ok(()),
        WriteOutcome::Refused => Err(lost(lease).into()),
    }
}

/// Calls are locked in the order of their requests, as everywhere, so that there is no deadlock.
pub(crate) async fn heartbeat(mut tx: TenantTransaction, leases: &[Lease], lease_ms: u64) -> Result<Vec<LeaseState>> {
    let (requests, fences): (Vec<Uuid>, Vec<i64>) = leases.iter().map(|lease| (lease.request, lease.fence)).unzip();
    let held: Vec<(Uuid, i64, bool)> = sqlx::query_as(
        // No condition on the runner: a leased call has one, and the index on runners would make
        // this read every call that is claimed or running.
        "UPDATE calls c SET lease_until = clock_timestamp() + $3 * interval '1 millisecond'
         FROM (SELECT * FROM unnest($1::uuid[], $2::bigint[]) AS g (request, fence) ORDER BY g.request) given
         WHERE c.request = given.request AND c.fence = given.fence AND c.lease_until > clock_timestamp()
         RETURNING c.request, c.fence, c.cancel_requested",
    )
    .bind(requests)
    .bind(fences)
    .bind(lease_ms as f64)
    .fetch_all(tx.connection())
    .await?;
    tx.commit().await?;
    let held: HashMap<Lease, bool> =
        held.into_iter().map(|(request, fence, cancel)| (Lease { request, fence }, cancel)).collect();
    Ok(leases
        .iter()
        .map(|lease| LeaseState {
            lease: *lease,
            status: match held.get(lease) {
                Some(true) => LeaseStatus::CancelRequested,
                Some(false) => LeaseStatus::Held,
                None => LeaseStatus::Lost,
            },
        })
        .collect())
}

/// The caller has validated the response. Without a valid lease nothing is written.
pub(crate) async fn complete(
    writer: &Arc<Writer>,
    owner_id: Uuid,
    actor: Actor,
    lease: Lease,
    response: NewBreadcrumb,
) -> Result<Uuid> {
    let id = Uuid::now_v7();
    let creator = actor.creator_of(&response);
    let failed = response.context.get("status").is_some_and(|status| status == "error");
    let is_attempt = !failed && !response.context.contains_key("error_code");
    let response = PreparedRecord::new(id, response, Some(creator));
    match writer.write(owner_id, WriteOp::Complete { lease, response, is_attempt }).await? {
        WriteOutcome::Written(_) => Ok(id),
        WriteOutcome::Refused => Err(lost(lease).into()),
    }
}

pub(crate) async fn release(mut tx: TenantTransaction, lease: Lease, release: Release) -> Result<()> {
    let call: Option<CallRow> = sqlx::query_as(concat!(
        "SELECT ",
        call_columns!(),
        " FROM calls WHERE request = $1 AND fence = $2 AND state IN ('claimed', 'running') \
         AND lease_until > clock_timestamp() FOR UPDATE"
    ))
    .bind(lease.request)
    .bind(lease.fence)
    .fetch_optional(tx.connection())
    .await?;
    let mut call = call.ok_or_else(|| lost(lease))?;
    let refuse = |message: &str| Err(StoreError::Invalid(Violations::one("release", message)).into());
    let after_ms = match release {
        // A runner that got the call when it was written may find that it cannot run it.
        Release::Unstarted if call.state() == CallState::Running && !call.was_claimed_at_write(lease) => {
            return refuse("is unstarted, but the call was started: complete it, or release it for a retry");
        }
        Release::Unstarted => 0,
        Release::Retry { .. } if call.attempt >= call.max_attempts => {
            return refuse("is for a retry, but no attempt is left: complete the call");
        }
        Release::Retry { after_ms } => after_ms.min(MAX_RETRY_MS),
    };
    if matches!(release, Release::Unstarted) {
        // A call that was assigned when it was written was already counted as started.
        call.attempt -= i32::from(call.state() == CallState::Running);
    }
    if call.cancel_requested {
        let again = if call.attempt > 0 { " again" } else { "" };
        let failure = ToolFailure::new(ErrorCode::Cancelled, format!("the request was cancelled before it ran{again}"));
        respond(&mut tx, &call, failure).await?;
    } else if call.is_overdue_in(after_ms) {
        let failure =
            call.deadline_failure(if call.attempt > 0 { "before the tool could be retried" } else { NOT_RUN });
        respond(&mut tx, &call, failure).await?;
    } else {
        let outcome = matches!(release, Release::Retry { .. }).then_some("retry");
        requeue(&mut tx, lease.request, call.attempt, after_ms, outcome).await?;
    }
    tx.commit().await
}

/// Returns a claimed or running call to its former place in the queue. `attempt`: how many attempts
/// were started. `outcome`: why the attempt that was running ended, if it counts.
pub(super) async fn requeue(
    tx: &mut TenantTransaction,
    request: Uuid,
    attempt: i32,
    after_ms: u64,
    outcome: Option<&str>,
) -> Result<()> {
    sqlx::query(
        "UPDATE calls SET state = 'queued', runner_id = NULL, lease_until = NULL, attempt = $3, started_at = NULL,
            past_attempts = CASE WHEN $4::text IS NOT NULL AND state = 'running' THEN
                coalesce(past_attempts, '[]') || jsonb_build_object('attempt', attempt, 'runner_id', runner_id,
                    'started_at', started_at, 'ended_at', clock_timestamp(), 'outcome', $4::text)
                ELSE past_attempts END,
            run_after = CASE WHEN $2 > 0 THEN clock_timestamp() + $2 * interval '1 millisecond' END
         WHERE request = $1",
    )
    .bind(request)
    .bind(after_ms as f64)
    .bind(attempt)
    .bind(outcome)
    .execute(tx.connection())
    .await?;
    Ok(())
}
