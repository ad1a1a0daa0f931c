//! Tools that ask the client for input: a form for its user, a model's completion, its roots.
//!
//! A tool takes part by declaring the optional input `input_responses` (an object), and
//! `request_state` if it needs a state. Its output is then `{"resultType": "input_required",
//! "inputRequests": {key: {method, params}}, "requestState": …}`, and it is called again with the
//! responses by key, and with its state. Clients never see these two inputs.
//!
//! The client keeps the state between both calls. It is signed, bound to the agent, the tool and
//! the other input, and expires.

use std::sync::Arc;
use std::time::Duration;

use rcrt_breadcrumb::{ErrorCode, Registration, ToolFailure, ToolResponse};
use rmcp::model::{
    ClientCapabilities, InputRequest, InputRequests, InputRequiredResult, InputResponses, JsonObject,
    RequestStateCodec, SealOptions, ServerRequest,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::Principal;
use crate::sessions;
use crate::tools::call::{self, Ran};

const RESPONSES: &str = "input_responses";
const STATE: &str = "request_state";
/// How long a client may take for its responses.
const VALID_FOR: Duration = Duration::from_hours(1);
/// How often a tool may ask in one call of an earlier revision of the protocol.
const ROUNDS: usize = 10;

/// What a client sends with a repeated call.
pub(crate) struct Answers {
    pub responses: Option<InputResponses>,
    pub state: Option<String>,
}

/// The result of a call by a client that can be asked.
pub(crate) enum Asked {
    /// The client must respond and call again.
    Client(InputRequiredResult),
    Ran(Ran),
}

/// Whether the tool can ask its caller for input.
pub(crate) fn asks(tool: &Registration) -> bool {
    declares(tool, RESPONSES)
}

fn declares(tool: &Registration, property: &str) -> bool {
    tool.parameters.get("properties").and_then(|properties| properties.get(property)).is_some()
}

/// Removes the inputs that only this server fills from the schema that clients see.
pub(crate) fn hide(schema: &mut JsonObject) {
    if let Some(properties) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        properties.remove(RESPONSES);
        properties.remove(STATE);
    }
}

/// Calls the tool, again after responses where the server itself asks the client.
pub(crate) async fn run(
    principal: &Arc<dyn Principal>,
    tool: &Registration,
    mut input: JsonObject,
    answers: Answers,
    context: &RequestContext<RoleServer>,
    can_be_task: bool,
) -> Result<Asked, ErrorData> {
    if !asks(tool) {
        return call::run(principal, tool, input, context, can_be_task).await.map(Asked::Ran);
    }
    // Only from the protocol: the tool trusts its state.
    input.remove(RESPONSES);
    input.remove(STATE);
    let codec = RequestStateCodec::try_new(principal.signing_key()).map_err(|error| {
        tracing::error!(%error, "the state of a tool cannot be signed");
        ErrorData::internal_error("the state of the tool cannot be signed", None)
    })?;
    let bound_to = binding(principal.session(), tool, &input);
    let state = answers.state.map(|sealed| codec.open_json_with::<Value>(&sealed, &bound_to)).transpose();
    let mut state = state.map_err(|error| {
        ErrorData::invalid_params(format!("requestState is not the one of the last result: {error}"), None)
    })?;
    let mut responses = answers.responses;
    for _ in 0..ROUNDS {
        let ran = call::run(principal, tool, with(&input, tool, responses, state), context, can_be_task).await?;
        let Ran::Answered(response) = &ran else { return Ok(Asked::Ran(ran)) };
        let Some(wanted) = Wanted::of(response) else { return Ok(Asked::Ran(ran)) };
        let wanted = match wanted {
            Ok(wanted) => wanted,
            Err(failure) => return Ok(Asked::Ran(Ran::Refused(failure))),
        };
        let requests = supported(wanted.requests, &context.client_capabilities().unwrap_or_default())?;
        if sessions::is_sessionless(context) {
            let options = SealOptions::new().associated_data(&bound_to).ttl(VALID_FOR);
            let sealed = wanted.state.map(|state| codec.seal_json_with(&state, &options)).transpose();
            let sealed = sealed.map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
            return Ok(Asked::Client(InputRequiredResult::new(requests, sealed)));
        }
        responses = Some(ask(requests.unwrap_or_default(), context).await?);
        state = wanted.state;
    }
    let message = format!("the tool asked for input more than {ROUNDS} times");
    Ok(Asked::Ran(Ran::Refused(ToolFailure::new(ErrorCode::ExecutionFailed, message))))
}

/// What a state is valid for.
fn binding(session: &str, tool: &Registration, input: &JsonObject) -> Vec<u8> {
    let mut hash = Sha256::new();
    for part in [session, &tool.name, &Value::Object(input.clone()).to_string()] {
        hash.update(part.len().to_le_bytes());
        hash.update(part);
    }
    hash.finalize().to_vec()
}

/// The input of the next round. Responses that are not objects are left out, so the tool asks
/// again.
pub(crate) fn with(
    input: &JsonObject,
    tool: &Registration,
    responses: Option<InputResponses>,
    state: Option<Value>,
) -> JsonObject {
    let mut input = input.clone();
    if let Some(responses) = responses {
        let valid = responses.into_iter().filter(|(_, response)| response.is_object());
        input.insert(RESPONSES.into(), Value::Object(valid.collect()));
    }
    if let Some(state) = state.filter(|_| declares(tool, STATE)) {
        input.insert(STATE.into(), state);
    }
    input
}

/// What a tool asks for.
pub(crate) struct Wanted {
    pub requests: Option<InputRequests>,
    pub state: Option<Value>,
}

impl Wanted {
    /// `None` if the response asks for nothing.
    pub fn of(response: &ToolResponse) -> Option<Result<Self, ToolFailure>> {
        let output = response.output.as_ref().filter(|output| output["resultType"] == "input_required")?;
        let requests = output.get("inputRequests").filter(|requests| !requests.is_null());
        let read = requests.map(|requests| serde_json::from_value::<InputRequests>(requests.clone())).transpose();
        let state = output.get("requestState").filter(|state| !state.is_null()).cloned();
        Some(match read {
            Ok(requests) if requests.is_some() || state.is_some() => Ok(Self { requests, state }),
            Ok(_) => Err(invalid("has neither inputRequests nor requestState")),
            Err(error) => Err(invalid(&format!("has an invalid inputRequests: {error}"))),
        })
    }
}

fn invalid(why: &str) -> ToolFailure {
    ToolFailure::new(ErrorCode::InvalidOutput, format!("the tool asks for input, but its output {why}"))
}

/// The requests that the client can answer. If it can answer none of them, the error names what it
/// lacks.
fn supported(requests: Option<InputRequests>, client: &ClientCapabilities) -> Result<Option<InputRequests>, ErrorData> {
    let Some(requests) = requests.filter(|requests| !requests.is_empty()) else { return Ok(None) };
    let mut lacking = JsonObject::new();
    let mut kept = InputRequests::new();
    for (key, request) in requests {
        let (name, has) = match &request {
            InputRequest::CreateMessage(_) => ("sampling", client.sampling.is_some()),
            InputRequest::ListRoots(_) => ("roots", client.roots.is_some()),
            _ => ("elicitation", client.elicitation.is_some()),
        };
        if has {
            kept.insert(key, request);
        } else {
            lacking.insert(name.into(), Value::Object(JsonObject::new()));
        }
    }
    if kept.is_empty() {
        let required = serde_json::from_value(Value::Object(lacking)).unwrap_or_default();
        return Err(ErrorData::missing_required_client_capability(required));
    }
    Ok(Some(kept))
}

/// Asks a client of an earlier revision, one request after the other.
async fn ask(requests: InputRequests, context: &RequestContext<RoleServer>) -> Result<InputResponses, ErrorData> {
    let mut responses = InputResponses::new();
    for (key, request) in requests {
        let request = match request {
            InputRequest::CreateMessage(request) => ServerRequest::CreateMessageRequest(request),
            InputRequest::ListRoots(request) => ServerRequest::ListRootsRequest(request),
            InputRequest::Elicitation(request) => ServerRequest::ElicitRequest(request),
            _ => continue,
        };
        let answer = tokio::select! {
            () = context.ct.cancelled() => return Err(ErrorData::internal_error("the call was cancelled", None)),
            answer = context.peer.send_request(request) => answer,
        };
        let answer = answer.map_err(|error| {
            ErrorData::internal_error(format!("the client did not answer the request of the tool: {error}"), None)
        })?;
        responses.insert(key, serde_json::to_value(answer).unwrap_or_default());
    }
    Ok(responses)
}
