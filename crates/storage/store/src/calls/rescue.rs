//! Calls whose runner was lost: the lease expired without a heartbeat.

use rcrt_breadcrumb::{CallState, ErrorCode, ToolFailure};

use super::lease::requeue;
use super::queued::{CallRow, call_columns};
use super::store_response::respond;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// Calls per transaction.
const BATCH: usize = 50;

/// Requeues or finishes calls whose lease has expired. Returns how many: at most a batch, so call
/// it again until it returns 0.
pub(crate) async fn rescue(mut tx: TenantTransaction) -> Result<usize> {
    let calls: Vec<CallRow> = sqlx::query_as(concat!(
        "SELECT ",
        call_columns!(),
        " FROM calls WHERE runner_id IS NOT NULL AND lease_until <= clock_timestamp() \
         ORDER BY queued_at LIMIT $1 FOR UPDATE SKIP LOCKED"
    ))
    .bind(BATCH as i64)
    .fetch_all(tx.connection())
    .await?;
    for call in &calls {
        let was_running = call.state() == CallState::Running;
        if was_running && call.attempt >= call.max_attempts {
            respond(&mut tx, call, ToolFailure::runner_lost(call.kind(), call.attempt.unsigned_abs())).await?;
        } else if call.cancel_requested {
            let failure = ToolFailure::new(ErrorCode::Cancelled, "the request was cancelled, and its runner was lost");
            respond(&mut tx, call, failure).await?;
        } else if call.is_overdue_in(0) {
            respond(&mut tx, call, call.deadline_failure("after its runner was lost")).await?;
        } else {
            requeue(&mut tx, call.request, call.attempt, 0, Some("runner_lost")).await?;
        }
        tracing::info!(
            tenant = %tx.owner_id, request = %call.request, tool = call.tool, attempt = call.attempt, was_running,
            "a runner lost a call"
        );
    }
    if !calls.is_empty() {
        tx.commit().await?;
    }
    Ok(calls.len())
}
