//! A call in one round trip: writes an ordinary request and waits for its response.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use rcrt_breadcrumb::{
    Created, ErrorCode, EventContext, ModelCall, NewBreadcrumb, StoreError, ToolFailure, ToolFormat, ToolRequest,
    ToolResponse, Violations,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::time::timeout;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::ServerState;
use crate::auth::access::Caller;
use crate::http::headers::{carry_traceparent, idempotency_key};
use crate::http::json_body::RawBody;
use crate::http::path::PathTool;
use crate::http::prefer::{PREFERENCE_APPLIED, Preferences};
use crate::http::problem::Problem;
use crate::http::query::Query;
use crate::response_waiters::Listener;
use crate::routes::breadcrumbs::REPLAYED;
use crate::routes::model_schemas::{InvocationInFormat, ResponseInFormat};

#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct Invocation {
    /// The input of the tool; `{}` when absent.
    #[serde(default = "nothing")]
    #[schema(value_type = Object)]
    input: Value,
    /// The workspace of the request and its response: the tag `workspace:…`, or the name after the
    /// colon.
    workspace: Option<String>,
    /// The conversation. A large result is stored in its working memory, in parts.
    session: Option<String>,
    /// The model that will read the response. It decides how long a result can be.
    model: Option<String>,
    /// How many characters of a result the caller accepts at once.
    max_result_chars: Option<u64>,
    /// Milliseconds from now until the request gets the response `Timeout`.
    deadline_ms: Option<u64>,
    /// The version of the tool's record that must run, as `metadata.tool_version` of a response.
    version: Option<i64>,
    /// The definition that must run, as `metadata.definition_hash` of a response.
    definition_hash: Option<String>,
    /// Streams the console lines as `tool.log.v1` records while the tool runs, and adds `debug` to
    /// the response's metadata: a timeline, and what the call used.
    debug: Option<bool>,
    /// The caller's own id for the request; the response has the tag `request:<requestId>`.
    #[serde(rename = "requestId")]
    request_id: Option<String>,
}

fn nothing() -> Value {
    Value::Object(Map::new())
}

/// The request is written, and its response will follow.
#[derive(Clone, Serialize, ToSchema)]
pub struct Accepted {
    /// The request's record.
    request: Uuid,
    /// The response will have the tag `request:<request_id>`.
    request_id: String,
    /// `POST` to this path cancels the call. With `--public-url` it is the whole URL.
    #[schema(example = "/calls/01a201fa-109b-73c0-a375-6505dc506815/cancel")]
    pub cancel: String,
}

/// Call a tool and wait for its response
///
/// Writes a `tool.request.v1` and waits for the `tool.response.v1`. The body is the context of that
/// record, with status 200 also if the tool failed (`status` says so). `Prefer: wait=<seconds>`
/// sets how long to wait (30 when absent, at most 60). With `Prefer: respond-async` the server does
/// not wait. If the time is up or the server is about to stop, the status is 202. The request is
/// then still in the queue or running: `Location` is the path of its state, a `POST` to the path in
/// `cancel` cancels it, and the same call with the same `Idempotency-Key` waits again.
///
/// With `?format=openai`, `openai-responses`, `anthropic` or `mcp` the body is a model's call of
/// the tool (one of the `tool_calls` of a message; a `function_call` item; a `tool_use` block; the
/// params of `tools/call`), and the body of a 200 is the message that the model expects, also for a
/// failure (a `tool` message; a `function_call_output` item; a `tool_result` block; the result of
/// `tools/call`). `openai` also takes a `function_call` item. Arguments that are not valid JSON, or
/// have an integer beyond 64 bits, are such a failure: no request is written. The other fields of
/// the usual body are then parameters of the query. The body of a 202 is not a message in any
/// format: the same call with the same `Idempotency-Key` gets the message later.
#[utoipa::path(
    post, path = "/tools/{name}/invoke", tag = "tools", operation_id = "invoke_tool",
    params(
        ("name" = String, Path, min_length = 1, max_length = 200, pattern = "\\S", description = "The tool's name, or its name in a format of GET /tools"),
        ("format" = inline(Option<ToolFormat>), Query, description = "rcrt when absent"),
        ("workspace" = Option<String>, Query, description = "With a model's format: as in the usual body"),
        ("session" = Option<String>, Query, description = "The same"),
        ("model" = Option<String>, Query, description = "The same"),
        ("max_result_chars" = Option<u64>, Query, description = "The same"),
        ("deadline_ms" = Option<u64>, Query, description = "The same"),
        ("version" = Option<i64>, Query, description = "The same"),
        ("definition_hash" = Option<String>, Query, description = "The same"),
        ("debug" = Option<bool>, Query, description = "The same"),
        ("requestId" = Option<String>, Query, description = "The same"),
        ("Prefer" = Option<String>, Header, description = "wait=<seconds>, respond-async (RFC 7240)"),
        ("Idempotency-Key" = Option<String>, Header, min_length = 1, max_length = 255, description = "1 to 255 characters, of your choice"),
        ("traceparent" = Option<String>, Header, description = "The caller's trace context"),
    ),
    request_body = InvocationInFormat,
    responses(
        (status = 200, description = "Answered", body = ResponseInFormat, headers(
            ("Preference-Applied" = String, description = "The preferences that were applied"),
            ("Idempotency-Replayed" = String, description = "`true` when the request already existed"),
        )),
        (status = 202, description = "No response yet", body = Accepted, headers(
            ("Location" = String, description = "The path of the request's state"),
            ("Preference-Applied" = String, description = "The preferences that were applied"),
            ("Idempotency-Replayed" = String, description = "`true` when the request already existed"),
        )),
    )
)]
pub async fn invoke(
    State(state): State<ServerState>,
    caller: Caller,
    PathTool(name): PathTool,
    headers: HeaderMap,
    mut query: Query,
    body: RawBody,
) -> Result<Response, Problem> {
    let format = query.take_as("format", ToolFormat::NAMES, ToolFormat::Rcrt);
    let (mut invocation, model_call) = if format == ToolFormat::Rcrt {
        query.finish()?;
        (body.parse_strictly::<Invocation>()?, None)
    } else {
        let invocation = Invocation::from_query(query)?;
        (invocation, Some(ModelCall::read(format, &body.parse()?)?))
    };
    let tool = resolve_tool_name(&state, &caller, name).await?;
    if let Some(call) = &model_call {
        if resolve_tool_name(&state, &caller, call.name.clone()).await? != tool {
            let message = format!("is {:?}, but the path names {tool:?}", call.name);
            return Err(Problem::invalid(call.name_field, message));
        }
        match &call.input {
            Ok(input) => invocation.input = input.clone(),
            Err(why) => {
                let failure = ToolFailure::new(ErrorCode::InvalidArguments, why.as_str());
                return Ok(Json(call.failure(&failure)).into_response());
            }
        }
    }
    let own_id = invocation.request_id.clone();
    let mut record = invocation.record(&tool);
    carry_traceparent(&headers, &mut record);
    record.check().map_err(as_fields)?;
    call(&state, &caller, record, own_id, &headers, model_call.as_ref()).await
}

/// Writes the request and waits for its response, as the headers say.
pub(crate) async fn call(
    state: &ServerState,
    caller: &Caller,
    record: NewBreadcrumb,
    own_id: Option<String>,
    headers: &HeaderMap,
    model_call: Option<&ModelCall>,
) -> Result<Response, Problem> {
    let key = idempotency_key(headers)?;
    let preferences = Preferences::read(headers);
    let wait = preferences.wait();
    let _open = state.invocations.token();
    // Before the request is written, so that its response cannot be missed.
    let listener = if wait.is_zero() { None } else { Some(state.listen(caller).await?) };
    let created = caller.store.create(record, key).await?;
    let request_id = own_id.unwrap_or_else(|| created.id.to_string());
    let answer = match listener {
        None => None,
        Some(listener) => tokio::select! {
            () = state.shutdown.cancelled() => None,
            answer = timeout(wait, state.answer(caller, listener, &created, &request_id)) => answer.ok().flatten(),
        },
    };
    let mut response = match answer {
        Some(context) => answered(context, model_call)?,
        None => accepted(&created, request_id)?,
    };
    if let Some(applied) = preferences.applied() {
        response.headers_mut().insert(PREFERENCE_APPLIED, applied);
    }
    if created.replayed {
        response.headers_mut().insert(REPLAYED, HeaderValue::from_static("true"));
    }
    Ok(response)
}

/// The response as the caller asked for it.
fn answered(context: EventContext, model_call: Option<&ModelCall>) -> Result<Response, Problem> {
    let Some(call) = model_call else { return Ok(Json(context).into_response()) };
    let response = ToolResponse::from_context(&context).map_err(|error| {
        tracing::error!(%error, "a response is not well-formed");
        Problem::internal()
    })?;
    Ok(Json(call.message(&response)).into_response())
}

fn accepted(created: &Created, request_id: String) -> Result<Response, Problem> {
    let location = HeaderValue::try_from(format!("/calls/{}", created.id)).map_err(|_| Problem::internal())?;
    let cancel = format!("/calls/{}/cancel", created.id);
    let accepted = Accepted { request: created.id, request_id, cancel };
    let mut response = (StatusCode::ACCEPTED, [(header::LOCATION, location)], Json(&accepted)).into_response();
    // The middleware of the public URL makes its link public.
    response.extensions_mut().insert(accepted);
    Ok(response)
}

impl ServerState {
    /// With the rights of a runner, which sees all responses: one stream serves all waiters.
    async fn listen(&self, caller: &Caller) -> Result<Listener, StoreError> {
        self.response_waiters.listen(caller.identity.owner_id, &self.tenant_store(caller)).await
    }

    /// `None` if the store fails: the request is written in any case.
    async fn answer(
        &self,
        caller: &Caller,
        listener: Listener,
        created: &Created,
        request_id: &str,
    ) -> Option<EventContext> {
        let answer = self
            .response_waiters
            .answer(listener, caller.identity.owner_id, &self.tenant_store(caller), created, request_id)
            .await;
        let log_error =
            |error: &_| tracing::warn!(request = %created.id, %error, "waiting for a caller's response failed");
        answer.inspect_err(log_error).ok()
    }
}

impl Invocation {
    /// The fields beside a model's call, whose own input follows.
    fn from_query(mut query: Query) -> Result<Self, Problem> {
        const NUMBER: &str = "a whole number";
        let invocation = Self {
            input: nothing(),
            workspace: query.take_text("workspace"),
            session: query.take_text("session"),
            model: query.take_text("model"),
            max_result_chars: query.take_optional("max_result_chars", NUMBER),
            deadline_ms: query.take_optional("deadline_ms", NUMBER),
            version: query.take_optional("version", NUMBER),
            definition_hash: query.take_text("definition_hash"),
            debug: query.take_optional("debug", "true or false"),
            request_id: query.take_text("requestId"),
        };
        query.finish()?;
        Ok(invocation)
    }

    fn record(self, tool: &str) -> NewBreadcrumb {
        let workspace = self.workspace.map(|name| match name.strip_prefix("workspace:") {
            Some(_) => name,
            None => format!("workspace:{name}"),
        });
        let mut record = ToolRequest::record(tool, self.input, self.request_id.as_deref(), workspace.as_deref());
        let fields: [(&str, Option<Value>); 7] = [
            ("session", self.session.map(Value::from)),
            ("model", self.model.map(Value::from)),
            ("max_result_chars", self.max_result_chars.map(Value::from)),
            ("deadline_ms", self.deadline_ms.map(Value::from)),
            ("version", self.version.map(Value::from)),
            ("definition_hash", self.definition_hash.map(Value::from)),
            ("debug", self.debug.map(Value::from)),
        ];
        for (field, value) in fields {
            if let Some(value) = value {
                record.context.insert(field.into(), value);
            }
        }
        record
    }
}

/// Returns the tool's own name. A name that a format made ends with 8 hexadecimal digits; only such
/// a name needs the catalog.
async fn resolve_tool_name(state: &ServerState, caller: &Caller, name: String) -> Result<String, Problem> {
    let is_made = name
        .rsplit_once('_')
        .is_some_and(|(_, end)| end.len() == 8 && end.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f')));
    if !is_made {
        return Ok(name);
    }
    let catalog = state.allowed_catalog(caller).await?;
    Ok(catalog.find_by_any_name(&name).map_or(name, |tool| tool.name.clone()))
}

/// Renames the fields of a violation from the record's names to those of the body.
fn as_fields(mut found: Violations) -> Violations {
    for violation in &mut found.0 {
        let field = violation.field.as_str();
        violation.field = if field == "context.tool" {
            "name".into()
        } else if field.starts_with("tags[") {
            "workspace".into()
        } else {
            field.strip_prefix("context.").unwrap_or(field).to_owned()
        };
    }
    found
}
