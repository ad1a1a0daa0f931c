//! A call: an ordinary request in the queue, and its response. Progress is passed on, and a caller
//! that leaves cancels it.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Registration, ToolFailure, ToolRequest, ToolResponse, Traceparent};
use rcrt_pending_call::{CallObserver, PendingCall};
use rmcp::model::{CallToolRequestParams, CallToolResponse, JsonObject, ProgressNotificationParam, ProgressToken};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::{Instant, sleep_until};
use uuid::Uuid;

use super::result;
use crate::Principal;
use crate::errors;
use crate::input_required::{self, Answers};
use crate::{sessions, tasks};

/// A call that takes longer becomes a task, if the client can follow one.
const TASK_AFTER: Duration = Duration::from_millis(500);

/// What became of a call.
pub(crate) enum Ran {
    Answered(Box<ToolResponse>),
    /// No request was written.
    Refused(ToolFailure),
    /// The call continues without its caller. Its id is the request's record.
    Continues(Uuid),
}

impl Ran {
    /// The output, for a request that is not a call. An error if the tool gave none.
    pub fn output(self, tool: &str) -> Result<Value, ErrorData> {
        let (code, message) = match self {
            Self::Answered(response) if response.error_code.is_none() => {
                return Ok(response.output.unwrap_or_default());
            }
            Self::Answered(response) => (response.error_code, response.error.unwrap_or_default()),
            Self::Refused(failure) => (Some(failure.code), failure.message),
            Self::Continues(_) => (None, "it continues without its caller".into()),
        };
        let data = json!({"error_code": code.map(ErrorCode::as_str)});
        Err(ErrorData::internal_error(format!("the tool {tool} failed: {message}"), Some(data)))
    }
}

/// `tools/call`.
pub(crate) async fn call(
    principal: &Arc<dyn Principal>,
    tool: &Registration,
    params: CallToolRequestParams,
    context: &RequestContext<RoleServer>,
) -> Result<CallToolResponse, ErrorData> {
    let answers = Answers { responses: params.input_responses, state: params.request_state };
    let input = params.arguments.unwrap_or_default();
    let can_be_task = sessions::is_sessionless(context)
        && context.client_capabilities().is_some_and(|capabilities| capabilities.supports_tasks());
    let asked = input_required::run(principal, tool, input, answers, context, can_be_task).await?;
    Ok(match asked {
        input_required::Asked::Client(request) => request.into(),
        input_required::Asked::Ran(Ran::Continues(id)) => tasks::created(id).into(),
        input_required::Asked::Ran(Ran::Refused(failure)) => result::of_failure(tool, &failure).into(),
        input_required::Asked::Ran(Ran::Answered(response)) => {
            let message = response.error.as_deref().unwrap_or_default();
            match errors::of_failure(response.error_code, message) {
                Some(error) => return Err(error),
                None => result::of_response(tool, &response).into(),
            }
        }
    })
}

/// Writes the request and waits for its response.
pub(crate) async fn run(
    principal: &Arc<dyn Principal>,
    tool: &Registration,
    input: JsonObject,
    context: &RequestContext<RoleServer>,
    can_be_task: bool,
) -> Result<Ran, ErrorData> {
    let mut record = ToolRequest::record(&tool.name, Value::Object(input), None, None);
    record.context.insert("session".into(), principal.session().into());
    if let Some(trace) = context.meta.get_traceparent().and_then(|text| text.parse::<Traceparent>().ok()) {
        record.context.insert("traceparent".into(), trace.to_string().into());
    }
    let sent = match principal.check_requester() {
        Ok(()) => rcrt_pending_call::send_once(&**principal.store(), record).await,
        Err(error) => Err(error),
    };
    let pending = match sent {
        Ok(pending) => pending,
        Err(error) => {
            return errors::refused_call(&error).map(Ran::Refused).ok_or_else(|| errors::of_store(error));
        }
    };
    wait(principal, &pending, context, can_be_task).await
}

async fn wait(
    principal: &Arc<dyn Principal>,
    pending: &PendingCall,
    context: &RequestContext<RoleServer>,
    can_be_task: bool,
) -> Result<Ran, ErrorData> {
    let (reported, mut reports) = watch::channel(None);
    let observer = Reports(reported);
    let response = rcrt_pending_call::response(&**principal.store(), pending, &observer);
    tokio::pin!(response);
    let mut progress = context.meta.get_progress_token().map(Progress::new);
    let task_at = Instant::now() + TASK_AFTER;
    loop {
        tokio::select! {
            biased;
            () = context.ct.cancelled() => {
                // When the service stops, the call continues and its response is stored.
                if !principal.is_stopping()
                    && let Err(error) = principal.store().cancel(pending.request).await
                {
                    tracing::warn!(request = %pending.request, %error, "a call of an MCP client cannot be cancelled");
                }
                return Err(ErrorData::internal_error("the call was cancelled", None));
            }
            Ok(()) = reports.changed() => {
                let report: Option<Report> = reports.borrow_and_update().clone();
                if let (Some(progress), Some(report)) = (&mut progress, report) {
                    // A client that left is noticed by the cancellation.
                    let _ = context.peer.notify_progress(progress.next(report)).await;
                }
            }
            answer = &mut response => {
                let answer = answer.map_err(errors::of_store)?;
                let response = ToolResponse::from_context(&answer.context).map_err(|error| {
                    tracing::error!(%error, "a response is not well-formed");
                    ErrorData::internal_error("the response of the call is not well-formed", None)
                })?;
                return Ok(Ran::Answered(Box::new(response)));
            }
            () = sleep_until(task_at), if can_be_task => return Ok(Ran::Continues(pending.request)),
        }
    }
}

/// What a tool reported last.
#[derive(Clone)]
struct Report {
    fraction: Option<f64>,
    message: String,
}

/// A report that a newer one has replaced is not sent.
struct Reports(watch::Sender<Option<Report>>);

impl CallObserver for Reports {
    fn progress(&self, fraction: Option<f64>, message: &str) {
        self.0.send_replace(Some(Report { fraction, message: message.to_owned() }));
    }
}

/// The protocol requires that the number grows with each notification. A tool can report the same
/// fraction twice, or none.
struct Progress {
    token: ProgressToken,
    last: Option<f64>,
}

impl Progress {
    fn new(token: ProgressToken) -> Self {
        Self { token, last: None }
    }

    fn next(&mut self, report: Report) -> ProgressNotificationParam {
        let least = self.last.map_or(0.0, |last| last + 0.001);
        let progress = report.fraction.map_or(least, |fraction| (fraction * 100.0).max(least));
        self.last = Some(progress);
        let mut sent = ProgressNotificationParam::new(self.token.clone(), progress);
        if report.fraction.is_some() {
            sent = sent.with_total(100.0_f64.max(progress));
        }
        if report.message.is_empty() { sent } else { sent.with_message(report.message) }
    }
}

#[cfg(test)]
mod tests {
    use rmcp::model::NumberOrString;

    use super::*;

    #[test]
    fn progress_grows_whatever_the_tool_reports() {
        let mut progress = Progress::new(ProgressToken(NumberOrString::Number(1)));
        let mut last = -1.0;
        for fraction in [Some(0.0), None, Some(0.5), Some(0.5), Some(0.2), Some(1.0), Some(1.0)] {
            let sent = progress.next(Report { fraction, message: "m".into() });
            assert!(sent.progress > last && sent.total.is_none_or(|total| total >= sent.progress), "{sent:?}");
            last = sent.progress;
        }
    }
}
