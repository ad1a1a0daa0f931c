//! Responses that the store writes itself, when no runner can.

use chrono::Utc;
use rcrt_breadcrumb::{CallState, ToolFailure, ToolResponse, Visibility};
use serde_json::{Map, json};
use uuid::Uuid;

use super::queued::{CallRow, lock_call};
use crate::database::failure::Result;
use crate::database::transaction::TenantTransaction;
use crate::writing;

/// Finishes a call that is locked in this transaction with a failure. Returns the response's id.
pub(super) async fn respond(tx: &mut TenantTransaction, call: &CallRow, failure: ToolFailure) -> Result<Uuid> {
    let request = call.as_request();
    let mut metadata = Map::new();
    metadata.insert("request".into(), json!(call.request));
    metadata.insert("attempt".into(), json!(call.attempt));
    metadata.insert("answered_by".into(), json!("store"));
    let code = failure.code;
    tracing::info!(
        tenant = %tx.owner_id, request = %call.request, tool = call.tool, %code, error = ?failure.message,
        attempt = call.attempt, "the call failed"
    );
    let mut response = ToolResponse::new(&request, Err(failure), 0, metadata, Utc::now()).record(&request);
    let id = Uuid::now_v7();
    // If a request is hidden, its response is hidden too.
    let is_private: Option<bool> = sqlx::query_scalar("SELECT visibility = 'private' FROM breadcrumbs WHERE id = $1")
        .bind(call.request)
        .fetch_optional(tx.connection())
        .await?;
    let asker = call.agent_id.filter(|_| is_private == Some(true));
    if asker.is_some() {
        response.visibility = Visibility::Private;
    }
    writing::insert(tx, id, response, asker).await?;
    sqlx::query(
        "WITH done AS (
            UPDATE calls SET state = 'finished', response = $2, finished_at = clock_timestamp(), error_code = $3,
                runner_id = NULL, lease_until = NULL
            WHERE request = $1
            RETURNING owner_id, tool, error_code, finished_at, queued_at)
         INSERT INTO call_outcomes (owner_id, tool, error_code, finished_at, total_us)
         SELECT owner_id, counted_name(tool), error_code, finished_at, call_us(queued_at, finished_at, NULL) FROM done",
    )
    .bind(call.request)
    .bind(id)
    .bind(code.as_str())
    .execute(tx.connection())
    .await?;
    Ok(id)
}

/// Call this before the request's record is deleted. A queued call gets its response now. The
/// runner of a claimed or running call is asked to cancel, and its response is still written.
pub(crate) async fn abandon(tx: &mut TenantTransaction, request: Uuid, reason: ToolFailure) -> Result<()> {
    let Some(call) = lock_call(tx, request).await? else { return Ok(()) };
    match call.state() {
        CallState::Queued => {
            respond(tx, &call, reason).await?;
        }
        CallState::Claimed | CallState::Running => mark_cancelled(tx, request).await?,
        CallState::Finished => {}
    }
    Ok(())
}

pub(super) async fn mark_cancelled(tx: &mut TenantTransaction, request: Uuid) -> Result<()> {
    sqlx::query("UPDATE calls SET cancel_requested = true WHERE request = $1")
        .bind(request)
        .execute(tx.connection())
        .await?;
    Ok(())
}
