//! `ListTasks`: a page of the caller's tasks.

use chrono::{DateTime, Utc};
use rcrt_a2a_types::{A2aError, Task, TaskState};
use rcrt_breadcrumb::{CallQuery, CallState, CallSummary, ErrorCode, MAX_CALLS, ResponseStatus};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::agent::A2aAgent;
use crate::error::from_store;
use crate::params::{List, present};
use crate::task::{self, Included};

/// How many pages of calls one list reads at most. A list that needs more has a next page.
const MAX_READS: usize = 4;

/// What a task must be to be listed.
struct Filter {
    query: CallQuery,
    state: Option<TaskState>,
    after: Option<DateTime<Utc>>,
}

pub(crate) async fn list(agent: &A2aAgent, list: &List) -> Result<Value, A2aError> {
    let size = list.page_size()?;
    let history = list.history()?;
    let artifacts = list.include_artifacts == Some(true);
    let filter = Filter::of(agent, list)?;
    let before = present(list.page_token.as_ref()).map(|token| {
        token.parse::<Uuid>().map_err(|_| A2aError::invalid("pageToken", "must be the nextPageToken of another page"))
    });
    let (calls, next) = filter.page(agent, before.transpose()?, size as usize).await?;
    // Counted from the first page on, so that each page says the same.
    let (all, _) = filter.page(agent, None, usize::MAX).await?;
    let mut tasks: Vec<Task> = Vec::new();
    for call in &calls {
        tasks.push(if history || artifacts {
            let details = agent.own(&call.call.request.to_string()).await?;
            task::of_details(&details, Included { history, artifacts })
        } else {
            task::of_summary(call)
        });
    }
    Ok(json!({
        "tasks": tasks,
        "nextPageToken": next.map(|next| next.to_string()).unwrap_or_default(),
        "pageSize": size,
        "totalSize": all.len(),
    }))
}

fn state_of(name: &str) -> Result<TaskState, A2aError> {
    match serde_json::from_value(name.into()) {
        Ok(TaskState::Unspecified) | Err(_) if name != "TASK_STATE_UNSPECIFIED" => {
            Err(A2aError::invalid("status", format!("is {name:.100?}; must be a state such as TASK_STATE_WORKING")))
        }
        state => Ok(state.unwrap_or_default()),
    }
}

impl Filter {
    fn of(agent: &A2aAgent, list: &List) -> Result<Self, A2aError> {
        let after = present(list.status_timestamp_after.as_ref()).map(|text| {
            DateTime::parse_from_rfc3339(text)
                .map(|time| time.to_utc())
                .map_err(|_| A2aError::invalid("statusTimestampAfter", "must be a time such as 2026-01-31T12:00:00Z"))
        });
        let session = present(list.context_id.as_ref()).map(str::to_owned);
        let agent_id = Some(agent.identity.agent_id);
        let mut query = CallQuery { agent_id, session, limit: MAX_CALLS, ..CallQuery::default() };
        let state =
            present(list.status.as_ref()).map(state_of).transpose()?.filter(|state| *state != TaskState::Unspecified);
        // The rest is decided for each call.
        match state {
            Some(TaskState::Submitted) => query.state = Some(CallState::Queued),
            Some(TaskState::Completed) => query.status = Some(ResponseStatus::Success),
            Some(TaskState::Canceled) => query.error_code = Some(ErrorCode::Cancelled),
            Some(TaskState::Failed | TaskState::Rejected) => query.status = Some(ResponseStatus::Error),
            _ => {}
        }
        Ok(Self { query, state, after: after.transpose()? })
    }

    /// The calls after this one, `most` at most, and the call after which the next page begins.
    async fn page(
        &self,
        agent: &A2aAgent,
        mut before: Option<Uuid>,
        most: usize,
    ) -> Result<(Vec<CallSummary>, Option<Uuid>), A2aError> {
        let mut found: Vec<CallSummary> = Vec::new();
        for _ in 0..MAX_READS {
            let query = CallQuery { before, ..self.query.clone() };
            let page = agent.store.list_calls(&query).await.map_err(from_store)?;
            for call in page.calls.into_iter().filter(|call| self.has(call)) {
                if found.len() == most {
                    return Ok((found, before));
                }
                before = Some(call.call.request);
                found.push(call);
            }
            before = page.next;
            if before.is_none() {
                break;
            }
        }
        Ok((found, before))
    }

    /// Calls that a tool asked for are parts of another task.
    fn has(&self, call: &CallSummary) -> bool {
        call.parent.is_none()
            && self.state.is_none_or(|state| state == task::state(call))
            && self.after.is_none_or(|after| task::changed_at(call) > after)
    }
}
