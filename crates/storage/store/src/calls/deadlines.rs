//! Requests that are still queued after their deadline.

use super::queued::{CallRow, call_columns};
use super::store_response::respond;
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;

/// Calls per transaction.
const BATCH: usize = 50;

/// When the deadline of a request passed that never ran.
pub(super) const NOT_RUN: &str = "before the tool ran";

/// Responds with `Timeout` to queued requests that are past their deadline. Returns how many: at
/// most a batch, so call it again until it returns 0. The runner of a running call enforces its
/// deadline.
pub(crate) async fn time_out_overdue(mut tx: TenantTransaction) -> Result<usize> {
    let calls: Vec<CallRow> = sqlx::query_as(concat!(
        "SELECT ",
        call_columns!(),
        " FROM calls WHERE runner_id IS NULL AND response IS NULL AND deadline_at <= clock_timestamp() \
         ORDER BY deadline_at LIMIT $1 FOR UPDATE SKIP LOCKED"
    ))
    .bind(BATCH as i64)
    .fetch_all(tx.connection())
    .await?;
    for call in &calls {
        let when = if call.attempt > 0 { "while it waited for a retry" } else { NOT_RUN };
        respond(&mut tx, call, call.deadline_failure(when)).await?;
    }
    if !calls.is_empty() {
        tx.commit().await?;
    }
    Ok(calls.len())
}
