//! Calls as tasks (`io.modelcontextprotocol/tasks`). A task is a call in the queue, and its id is
//! the id of the request's record. So a task survives restarts of the server, of the runner and of
//! the client.

mod parked;

use std::sync::Arc;

use chrono::{DateTime, SecondsFormat, Utc};
use rcrt_breadcrumb::{Call, CallState, ErrorCode, StoreError, ToolResponse};
use rmcp::ErrorData;
use rmcp::model::{
    CreateTaskResult, DetailedTask, GetTaskResult, InputResponses, JsonObject, Task, TaskPayload, TaskStatus,
};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::Principal;
use crate::errors;
use crate::tools::{self, result};

use parked::ParkedCall;

/// Responses to a part of what a tool asked, or that the task is cancelled.
pub(crate) const TASK_INPUT: &str = "mcp.task.input.v1";
/// How often a client should look at a task, in milliseconds.
const POLL_MS: u64 = 1_000;
/// How long a task can be read, at least, in milliseconds. Requests are kept for longer.
const TTL_MS: u64 = 3_600_000;

/// The result of a call that continues as a task.
pub(crate) fn created(id: Uuid) -> CreateTaskResult {
    let now = at(Utc::now());
    CreateTaskResult::new(task(id, TaskStatus::Working, now.clone(), now))
}

fn task(id: Uuid, status: TaskStatus, created_at: String, changed_at: String) -> Task {
    Task::new(id, status, created_at, changed_at).with_poll_interval_ms(POLL_MS).with_ttl_ms(TTL_MS)
}

fn at(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Millis, true)
}

/// `tasks/get`.
pub(crate) async fn get(principal: &Arc<dyn Principal>, task_id: &str) -> Result<GetTaskResult, ErrorData> {
    let first = first_call(principal, task_id).await?;
    let call = parked::latest_call(principal, &first).await?;
    let (payload, changed_at) = match (call.state, call.response) {
        (CallState::Finished, Some(response)) => finished(principal, &call, response).await?,
        _ => (TaskPayload::Working, at(Utc::now())),
    };
    let task = task(first.request, payload.status(), at(first.queued_at), changed_at);
    Ok(GetTaskResult::new(DetailedTask::new(task, payload)))
}

/// `tasks/update`: responses to what the tool asked. Responses to nothing are ignored.
pub(crate) async fn update(
    principal: &Arc<dyn Principal>,
    task_id: &str,
    responses: InputResponses,
) -> Result<(), ErrorData> {
    principal.check_requester().map_err(errors::of_store)?;
    let first = first_call(principal, task_id).await?;
    let call = parked::latest_call(principal, &first).await?;
    match ParkedCall::of(principal, &first, &call).await? {
        Some(parked) => parked.answer(principal, responses).await,
        None => Ok(()),
    }
}

/// `tasks/cancel`. A finished task stays as it is.
pub(crate) async fn cancel(principal: &Arc<dyn Principal>, task_id: &str) -> Result<(), ErrorData> {
    principal.check_requester().map_err(errors::of_store)?;
    let first = first_call(principal, task_id).await?;
    let call = parked::latest_call(principal, &first).await?;
    if let Some(parked) = ParkedCall::of(principal, &first, &call).await? {
        return parked.cancel(principal).await;
    }
    principal.store().cancel(call.request).await.map(|_| ()).map_err(errors::of_store)
}

/// The call with which a task began. An agent has the tasks whose requests it can read.
async fn first_call(principal: &Arc<dyn Principal>, task_id: &str) -> Result<Call, ErrorData> {
    let unknown =
        || ErrorData::invalid_params(format!("there is no task {task_id:?}"), Some(json!({"taskId": task_id})));
    let id = Uuid::try_parse(task_id).map_err(|_| unknown())?;
    match principal.store().call(id).await {
        Ok(call) => Ok(call),
        Err(StoreError::NotFound { .. }) => Err(unknown()),
        Err(error) => Err(errors::of_store(error)),
    }
}

async fn response_of(principal: &Arc<dyn Principal>, response: Uuid) -> Result<ToolResponse, ErrorData> {
    let record = principal.store().get(response).await.map_err(errors::of_store)?;
    ToolResponse::from_context(&record.context)
        .map_err(|_| ErrorData::internal_error("the response of the call is not well-formed", None))
}

/// A call that failed is a completed task whose result has `isError`, and a failed task where the
/// result of the call would have been an error of the protocol.
async fn finished(
    principal: &Arc<dyn Principal>,
    call: &Call,
    response: Uuid,
) -> Result<(TaskPayload, String), ErrorData> {
    let response = response_of(principal, response).await?;
    let changed_at = response.timestamp.clone();
    if response.error_code == Some(ErrorCode::Cancelled) {
        return Ok((TaskPayload::Cancelled, changed_at));
    }
    if let Some(error) = errors::of_failure(response.error_code, response.error.as_deref().unwrap_or_default()) {
        return Ok((TaskPayload::Failed { error: members(json!(error)) }, changed_at));
    }
    if let Some(payload) = parked::payload(principal, call, &response).await? {
        return Ok((payload, changed_at));
    }
    let result = match tools::find(&**principal, &response.tool).await {
        Ok(tool) => json!(result::of_response(&tool, &response)),
        // The tool was deleted meanwhile.
        Err(_) => json!({"content": [{"type": "text", "text": json!(response.output).to_string()}],
            "isError": response.error_code.is_some()}),
    };
    Ok((TaskPayload::Completed { result: members(result) }, changed_at))
}

fn members(value: Value) -> JsonObject {
    match value {
        Value::Object(members) => members,
        _ => JsonObject::new(),
    }
}
