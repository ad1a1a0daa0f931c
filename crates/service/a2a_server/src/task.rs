//! A call as a task.

use chrono::{DateTime, SecondsFormat, Utc};
use rcrt_a2a_types::{Artifact, Message, Part, Role, StatusUpdate, Task, TaskState, TaskStatus};
use rcrt_breadcrumb::{CallDetails, CallState, CallSummary, ErrorCode, Event, ResponseStatus, ToolResponse};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use crate::skill::MESSAGE_FIELD;

/// Which parts of a task are included.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Included {
    pub history: bool,
    pub artifacts: bool,
}

pub(crate) const ALL: Included = Included { history: true, artifacts: true };

pub(crate) fn state(call: &CallSummary) -> TaskState {
    match (call.call.state, call.status) {
        (CallState::Queued, _) => TaskState::Submitted,
        (CallState::Claimed | CallState::Running, _) => TaskState::Working,
        (CallState::Finished, status) => ended(status, call.error_code),
    }
}

fn ended(status: Option<ResponseStatus>, code: Option<ErrorCode>) -> TaskState {
    match (status, code) {
        (Some(ResponseStatus::Success), _) => TaskState::Completed,
        (_, Some(ErrorCode::Cancelled)) => TaskState::Canceled,
        (_, Some(ErrorCode::ToolNotFound | ErrorCode::InvalidArguments | ErrorCode::PermissionDenied)) => {
            TaskState::Rejected
        }
        _ => TaskState::Failed,
    }
}

/// When the call came into its present state.
pub(crate) fn changed_at(call: &CallSummary) -> DateTime<Utc> {
    call.finished_at.or(call.started_at).or(call.claimed_at).unwrap_or(call.call.queued_at)
}

/// The conversation: a call without one has its own.
pub(crate) fn context_id(call: &CallSummary) -> String {
    call.session.clone().unwrap_or_else(|| call.call.request.to_string())
}

/// A task without history and artifacts.
pub(crate) fn of_summary(call: &CallSummary) -> Task {
    Task {
        id: call.call.request.to_string(),
        context_id: context_id(call),
        status: TaskStatus { state: state(call), message: None, timestamp: Some(time(changed_at(call))) },
        artifacts: None,
        history: None,
        metadata: Some(Map::from_iter([("skill".to_owned(), call.call.tool.clone().into())])),
    }
}

pub(crate) fn of_details(details: &CallDetails, included: Included) -> Task {
    let mut task = of_summary(&details.summary);
    task.status.message = failure(details, &task);
    if included.artifacts {
        task.artifacts = artifact(details).map(|artifact| vec![artifact]);
    }
    if included.history {
        task.history = Some(vec![first_message(details, &task)]);
    }
    task
}

/// The task of a call that has ended, as the event of its response says. Without history.
pub(crate) fn of_response(event: &Event, request: Uuid, context_id: String) -> Option<Task> {
    let response = ToolResponse::from_context(&event.context).ok()?;
    let state = ended(Some(response.status), response.error_code);
    let mut task = Task {
        id: request.to_string(),
        context_id,
        status: TaskStatus { state, message: None, timestamp: Some(time(event.updated_at)) },
        artifacts: response
            .output
            .as_ref()
            .filter(|_| state == TaskState::Completed)
            .map(|output| vec![output_of(output)]),
        history: None,
        metadata: Some(Map::from_iter([("skill".to_owned(), response.tool.into())])),
    };
    task.status.message = failure_of(&event.context, response.error_code, event.breadcrumb_id.to_string(), &task);
    Some(task)
}

/// The message of the caller: the stored one, or what the request says.
fn first_message(details: &CallDetails, task: &Task) -> Message {
    let context = details.request_record.as_ref().map(|record| &record.context);
    let stored =
        context.and_then(|context| serde_json::from_value::<Message>(context.get(MESSAGE_FIELD)?.clone()).ok());
    let mut message = stored.unwrap_or_else(|| {
        let input = context.and_then(|context| context.get("input")).cloned().unwrap_or_default();
        let data = json!({"skill": details.summary.call.tool, "input": input});
        Message { message_id: task.id.clone(), role: Role::User, parts: vec![Part::data(data)], ..Message::default() }
    });
    message.task_id = Some(task.id.clone());
    message.context_id = Some(task.context_id.clone());
    message
}

fn response(details: &CallDetails) -> Option<&Map<String, Value>> {
    details.response_record.as_ref().map(|record| &record.context)
}

/// The output of a call that succeeded.
pub(crate) fn artifact(details: &CallDetails) -> Option<Artifact> {
    response(details)?.get("output").filter(|_| state(&details.summary) == TaskState::Completed).map(output_of)
}

fn output_of(output: &Value) -> Artifact {
    let part = match output {
        Value::String(text) => Part::text(text),
        output => Part { media_type: Some("application/json".into()), ..Part::data(output.clone()) },
    };
    Artifact { artifact_id: "output".into(), name: Some("output".into()), parts: vec![part], ..Artifact::default() }
}

/// Why the call failed.
fn failure(details: &CallDetails, task: &Task) -> Option<Message> {
    let id = details.summary.call.response.map_or_else(|| task.id.clone(), |id| id.to_string());
    failure_of(response(details)?, details.summary.error_code, id, task)
}

fn failure_of(
    response: &Map<String, Value>,
    code: Option<ErrorCode>,
    message_id: String,
    task: &Task,
) -> Option<Message> {
    let error = response.get("error")?.as_str()?;
    let text = code.map_or_else(|| error.to_owned(), |code| format!("{code}: {error}"));
    let mut metadata = Map::new();
    for field in ["error_code", "is_retryable", "error_details"] {
        if let Some(value) = response.get(field) {
            metadata.insert(field.into(), value.clone());
        }
    }
    Some(Message { metadata: Some(metadata), ..from_agent(&task.id, &task.context_id, message_id, text) })
}

/// What the context of a `tool.progress.v1` says about a task; `None` if it is about another one.
pub(crate) fn progress(context: &Map<String, Value>, id: &str, context_id: &str) -> Option<StatusUpdate> {
    let text = context.get("message")?.as_str()?;
    if context.get("request")?.as_str()? != id {
        return None;
    }
    let mut message = from_agent(id, context_id, Uuid::new_v4().to_string(), text.to_owned());
    if let Some(fraction) = context.get("fraction").filter(|fraction| !fraction.is_null()) {
        message.metadata = Some(Map::from_iter([("fraction".to_owned(), fraction.clone())]));
    }
    let status = TaskStatus { state: TaskState::Working, message: Some(message), timestamp: Some(time(Utc::now())) };
    Some(StatusUpdate { task_id: id.to_owned(), context_id: context_id.to_owned(), status })
}

/// A text of this server about a task.
fn from_agent(task_id: &str, context_id: &str, message_id: String, text: String) -> Message {
    Message {
        message_id,
        task_id: Some(task_id.to_owned()),
        context_id: Some(context_id.to_owned()),
        role: Role::Agent,
        parts: vec![Part::text(text)],
        ..Message::default()
    }
}

pub(crate) fn time(at: DateTime<Utc>) -> String {
    at.to_rfc3339_opts(SecondsFormat::Millis, true)
}
