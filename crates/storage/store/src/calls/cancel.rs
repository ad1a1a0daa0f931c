//! Cancelling a request.

use rcrt_breadcrumb::{Breadcrumb, BreadcrumbChanges, Call, CallState, ErrorCode, ToolFailure};
use serde_json::Value;
use uuid::Uuid;

use super::queued::{find, lock_call, unknown};
use super::store_response::{mark_cancelled, respond};
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::rows;

pub(crate) async fn cancel(mut tx: TenantTransaction, agent: Uuid, request: Uuid) -> Result<Call> {
    tx.lock(request).await?;
    let call = lock_call(&mut tx, request).await?.ok_or_else(|| unknown(request))?;
    match call.state() {
        CallState::Queued => {
            respond(&mut tx, &call, ToolFailure::new(ErrorCode::Cancelled, "the request was cancelled before it ran"))
                .await?;
        }
        CallState::Claimed | CallState::Running if !call.cancel_requested => {
            mark_cancelled(&mut tx, request).await?;
            if let Some(record) = rows::find(&mut tx, request).await? {
                mark_in_record(&mut tx, agent, &record).await?;
            }
        }
        CallState::Claimed | CallState::Running | CallState::Finished => {}
    }
    let call = find(&mut tx, request).await?;
    tx.commit().await?;
    Ok(call)
}

/// The runner sees the cancellation in the event of this change, or in the response to its next
/// heartbeat.
async fn mark_in_record(tx: &mut TenantTransaction, agent: Uuid, record: &Breadcrumb) -> Result<()> {
    let mut context = record.context.clone();
    context.insert("cancel_requested".into(), Value::Bool(true));
    let changes = BreadcrumbChanges { context: Some(context), ..BreadcrumbChanges::default() };
    match changes.applied_to(record) {
        Ok(next) => {
            rows::write_version(tx, record, &next, agent, false).await?;
        }
        // A context of maximum size has no space for the field.
        Err(violations) => {
            tracing::warn!(request = %record.id, %violations, "the cancellation reaches the runner only with its next heartbeat");
        }
    }
    Ok(())
}
