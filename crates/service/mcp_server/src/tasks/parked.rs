//! A task whose tool asked the client for input. The call that asked is finished; the next one has
//! the same input and the responses. Responses that do not complete what was asked wait in a
//! record.

use std::collections::BTreeSet;
use std::sync::Arc;

use rcrt_breadcrumb::{
    BreadcrumbQuery, Call, NewBreadcrumb, Selector, StoreError, ToolRequest, ToolResponse, TtlType, schema_names,
};
use rmcp::ErrorData;
use rmcp::model::{InputRequests, InputResponses, TaskPayload};
use serde_json::{Map, Value, json};

use super::{TASK_INPUT, response_of};
use crate::Principal;
use crate::errors;
use crate::input_required::{self, Wanted};
use crate::tools;

/// How long such a record is kept, in seconds.
const KEPT: u64 = 24 * 3600;
/// The rounds of one task, and the records of responses in one.
const MOST: u32 = 100;

fn tag(task: &Call) -> String {
    format!("mcp-task:{}", task.request)
}

/// The call that continues the task now.
pub(super) async fn latest_call(principal: &Arc<dyn Principal>, first: &Call) -> Result<Call, ErrorData> {
    let selector = Selector {
        all_tags: vec![tag(first)],
        schema_name: Some(schema_names::TOOL_REQUEST.into()),
        ..Selector::default()
    };
    let query = BreadcrumbQuery { selector, limit: MOST, ..BreadcrumbQuery::default() };
    let later = principal.store().list(&query).await.map_err(errors::of_store)?;
    // Ids are ordered by creation time.
    match later.iter().map(|item| item.id).max() {
        Some(latest) => principal.store().call(latest).await.map_err(errors::of_store),
        None => Ok(first.clone()),
    }
}

/// What the task waits for, if this response asks for something.
pub(super) async fn payload(
    principal: &Arc<dyn Principal>,
    call: &Call,
    response: &ToolResponse,
) -> Result<Option<TaskPayload>, ErrorData> {
    let Some(wanted) = wanted(principal, response).await? else { return Ok(None) };
    let given = Given::to(principal, call).await?;
    if given.is_cancelled {
        return Ok(Some(TaskPayload::Cancelled));
    }
    let mut input_requests = wanted.requests.unwrap_or_default();
    input_requests.retain(|key, _| !given.responses.contains_key(key));
    Ok(Some(TaskPayload::InputRequired { input_requests }))
}

async fn wanted(principal: &Arc<dyn Principal>, response: &ToolResponse) -> Result<Option<Wanted>, ErrorData> {
    let Some(Ok(wanted)) = Wanted::of(response) else { return Ok(None) };
    let tool = tools::find(&**principal, &response.tool).await?;
    Ok(input_required::asks(&tool).then_some(wanted))
}

/// The responses so far to what a call asked.
#[derive(Default)]
struct Given {
    responses: InputResponses,
    is_cancelled: bool,
}

impl Given {
    async fn to(principal: &Arc<dyn Principal>, call: &Call) -> Result<Self, ErrorData> {
        let selector = Selector {
            all_tags: vec![format!("mcp-asked-by:{}", call.request)],
            schema_name: Some(TASK_INPUT.into()),
            ..Selector::default()
        };
        let query = BreadcrumbQuery { selector, limit: MOST, offset: 0, include_context: true };
        let items = principal.store().list(&query).await.map_err(errors::of_store)?;
        let mut given = Self::default();
        for mut context in items.into_iter().filter_map(|item| item.context) {
            given.is_cancelled |= context.get("cancelled") == Some(&json!(true));
            if let Some(Value::Object(responses)) = context.remove("responses") {
                given.responses.extend(responses);
            }
        }
        Ok(given)
    }
}

/// A call that asked for input.
pub(super) struct ParkedCall {
    tag: String,
    call: Call,
    wanted: Wanted,
    given: Given,
}

impl ParkedCall {
    /// `None` if the task waits for nothing.
    pub async fn of(principal: &Arc<dyn Principal>, first: &Call, call: &Call) -> Result<Option<Self>, ErrorData> {
        let Some(response) = call.response else { return Ok(None) };
        let response = response_of(principal, response).await?;
        let Some(wanted) = wanted(principal, &response).await? else { return Ok(None) };
        let given = Given::to(principal, call).await?;
        Ok((!given.is_cancelled).then(|| Self { tag: tag(first), call: call.clone(), wanted, given }))
    }

    /// Takes responses, and continues the task once all are there.
    pub async fn answer(mut self, principal: &Arc<dyn Principal>, responses: InputResponses) -> Result<(), ErrorData> {
        let asked: BTreeSet<String> =
            self.wanted.requests.as_ref().map(InputRequests::keys).into_iter().flatten().cloned().collect();
        let new: InputResponses = responses.into_iter().filter(|(key, _)| asked.contains(key)).collect();
        self.given.responses.extend(new.clone());
        if asked.iter().all(|key| self.given.responses.contains_key(key)) {
            return self.continued(principal).await;
        }
        let kept = Map::from_iter([("responses".to_owned(), json!(new))]);
        self.note(principal, kept).await
    }

    pub async fn cancel(self, principal: &Arc<dyn Principal>) -> Result<(), ErrorData> {
        self.note(principal, Map::from_iter([("cancelled".to_owned(), json!(true))])).await
    }

    /// Writes the next request. Two clients that respond at once continue the task once.
    async fn continued(self, principal: &Arc<dyn Principal>) -> Result<(), ErrorData> {
        let tool = tools::find(&**principal, &self.call.tool).await?;
        let asked_by = principal.store().get(self.call.request).await.map_err(errors::of_store)?;
        let input = match ToolRequest::input_of(&asked_by) {
            Value::Object(input) => input,
            _ => Map::new(),
        };
        let input = input_required::with(&input, &tool, Some(self.given.responses), self.wanted.state);
        let mut record = ToolRequest::record(&self.call.tool, Value::Object(input), None, None);
        record.tags.push(self.tag);
        for carried in ["session", "traceparent"] {
            if let Some(value) = asked_by.context.get(carried) {
                record.context.insert(carried.into(), value.clone());
            }
        }
        let key = format!("mcp-task:{}", self.call.request);
        match principal.store().create(record, Some(&key)).await {
            Ok(_) | Err(StoreError::IdempotencyMismatch) => Ok(()),
            Err(error) => Err(errors::of_store(error)),
        }
    }

    async fn note(self, principal: &Arc<dyn Principal>, context: Map<String, Value>) -> Result<(), ErrorData> {
        let record = NewBreadcrumb {
            title: format!("Input for {}", self.call.tool.chars().take(200).collect::<String>()),
            context,
            tags: vec![self.tag, format!("mcp-asked-by:{}", self.call.request)],
            schema_name: Some(TASK_INPUT.into()),
            ttl_type: Some(TtlType::Duration),
            ttl_config: Some(json!({"duration": KEPT})),
            ..NewBreadcrumb::default()
        };
        match principal.store().create(record, None).await {
            Ok(_) => Ok(()),
            Err(StoreError::Forbidden(_)) => Err(ErrorData::invalid_request(
                "an agent with only the role caller must send all responses of a task in one tasks/update, and cannot \
                 cancel a task that waits for input",
                None,
            )),
            Err(error) => Err(errors::of_store(error)),
        }
    }
}
