//! A2A 1.0: the agent card, the binding JSON-RPC at `/a2a`, and the binding HTTP+JSON below it. The
//! crate `a2a_server` has the operations.

use std::convert::Infallible;
use std::sync::Arc;

use axum::{
    extract::rejection::QueryRejection,
    extract::{FromRequestParts, Path, Query, Request, State},
    http::{HeaderMap, HeaderName, StatusCode, Uri, header, request::Parts},
    response::sse::{Event as Message, KeepAlive, Sse},
    response::{IntoResponse, Response},
};
use futures::stream::{BoxStream, Stream, StreamExt, unfold};
use rcrt_a2a_server::{
    A2aAgent, Answer, Call, Card, CardSettings, Get, List, PushConfig, PushName, Send as SendRequest, Updates,
    card as card_of, is_notified, wake,
};
use rcrt_a2a_types::{A2aError, ErrorKind, MEDIA_TYPE, TOKEN_HEADER, VERSION, VERSION_HEADER, is_supported_version};
use rcrt_breadcrumb::{Breadcrumbs, Catalog, Identity, Profile, Role};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::{Instant, MissedTickBehavior, interval_at};
use url::form_urlencoded;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::auth::access::Caller;
use crate::http::json_body;
use crate::http::problem::Problem;
use crate::http::streams::StreamPermit;
use crate::routes::events::{UNBUFFERED, expiry, is_still_authorized, passed};
use crate::{AuthMode, ServerState};

/// The tenant whose skills everybody sees in the card.
const PUBLIC_TENANT: &str = "default";
/// The path of both bindings.
const INTERFACE: &str = "/a2a";

/// An object as the specification of A2A 1.0 describes it.
#[derive(ToSchema)]
#[schema(value_type = Object)]
#[allow(dead_code)] // Used only as a schema.
pub struct A2aObject(Value);

/// Read the agent card
///
/// How other agents reach this server (A2A 1.0), with the skills that the tenant `default` offers.
/// The skills of another tenant are in its extended card. docs/a2a.md describes how a tenant
/// chooses skills.
#[utoipa::path(get, path = "/.well-known/agent-card.json", tag = "a2a", operation_id = "agent_card",
    responses((status = 200, body = A2aObject)))]
pub async fn card(State(state): State<ServerState>, headers: HeaderMap) -> Result<Response, Problem> {
    let tenants = state.tenancy.tenants().await?;
    let (settings, catalog) = match tenants.into_iter().find(|tenant| tenant.name == PUBLIC_TENANT) {
        None => (CardSettings::default(), Catalog::default()),
        Some(tenant) => {
            let store = runtime(&state, tenant.id);
            let is_open = state.auth == AuthMode::Open;
            let settings = CardSettings::of(&*state.tenancy, tenant.id, &store, is_open).await?;
            (settings, Catalog::read(&*store).await?.unwrap_or_default().for_profile(Profile::Main))
        }
    };
    let card = card_of(&Card { settings: &settings, catalog: &catalog, url: &interface(&state, &headers) });
    Ok(([(header::CACHE_CONTROL, "max-age=60")], axum::Json(card)).into_response())
}

/// Read the agent card (with a slash)
///
/// The same: some clients add a slash to the path.
#[utoipa::path(get, path = "/.well-known/agent-card.json/", tag = "a2a", operation_id = "agent_card_folder",
    responses((status = 200, body = A2aObject)))]
pub async fn card_folder(state: State<ServerState>, headers: HeaderMap) -> Result<Response, Problem> {
    card(state, headers).await
}

/// Call a method of A2A
///
/// The binding JSON-RPC: `SendMessage`, `SendStreamingMessage`, `GetTask`, `ListTasks`,
/// `CancelTask`, `SubscribeToTask` and `GetExtendedAgentCard`. A streaming method answers with
/// server-sent events, each a JSON-RPC response. Send `A2A-Version: 1.0`: without it, 0.3 is meant,
/// which this server refuses. An error of the protocol has status 200 and a member `error`.
#[utoipa::path(post, path = "/a2a", tag = "a2a", operation_id = "a2a_rpc",
    params(("A2A-Version" = Option<String>, Header, description = "1.0")),
    request_body = A2aObject, responses((status = 200, body = A2aObject)))]
pub async fn rpc(State(state): State<ServerState>, caller: Caller, request: Request) -> Result<Response, Problem> {
    let supported = version(request.headers(), request.uri());
    let url = interface(&state, request.headers());
    let body = json_body::whole(request).await?;
    let answer = match (Call::read(&body), supported) {
        (Err(refusal), _) => Answer::One(refusal),
        (Ok(call), Err(error)) => Answer::One(call.refuse(&error)),
        (Ok(call), Ok(())) => {
            let _open = state.invocations.token();
            call.run(&agent(&state, &caller), &url).await
        }
    };
    match answer {
        Answer::One(response) => Ok(axum::Json(response).into_response()),
        Answer::Stream(responses) => events(state, caller, responses),
    }
}

/// Send a message
///
/// The message becomes a call, and its task is returned when it has ended, or after five minutes as
/// it is then. With `configuration.returnImmediately` it is returned at once. A message names its
/// skill in `metadata.skill` and has the input in a data part.
#[utoipa::path(post, path = "/a2a/message:send", tag = "a2a", operation_id = "a2a_send",
    params(("A2A-Version" = Option<String>, Header, description = "1.0")),
    request_body = A2aObject, responses((status = 200, body = A2aObject, content_type = "application/a2a+json")))]
pub async fn send(asked: Asked, request: Request) -> Result<Response, Problem> {
    let body = json_body::whole(request).await?;
    let _open = asked.state.invocations.token();
    Ok(match parsed::<SendRequest>(&body) {
        Ok(send) => reply(asked.agent.send(send).await.map(|reply| json!(reply))),
        Err(error) => reply(Err(error)),
    })
}

/// Send a message and follow its task
///
/// Server-sent events: the task, then each update until it has ended.
#[utoipa::path(post, path = "/a2a/message:stream", tag = "a2a", operation_id = "a2a_stream",
    params(("A2A-Version" = Option<String>, Header, description = "1.0")),
    request_body = A2aObject, responses((status = 200, body = A2aObject, content_type = "text/event-stream")))]
pub async fn stream(asked: Asked, request: Request) -> Result<Response, Problem> {
    let body = json_body::whole(request).await?;
    match parsed::<SendRequest>(&body) {
        Ok(send) => {
            let updates = asked.agent.stream(send).await;
            asked.followed(updates)
        }
        Err(error) => Ok(reply(Err(error))),
    }
}

/// List tasks
///
/// The caller's own tasks, newest first: every call that it asked for, by whatever route.
#[utoipa::path(get, path = "/a2a/tasks", tag = "a2a", operation_id = "a2a_list_tasks",
    params(
        ("A2A-Version" = Option<String>, Header, description = "1.0"),
        ("contextId" = Option<String>, Query, description = "Only tasks of this context"),
        ("status" = Option<String>, Query, description = "A state such as TASK_STATE_WORKING"),
        ("pageSize" = Option<i64>, Query, minimum = 1, maximum = 100, description = "50 when absent"),
        ("pageToken" = Option<String>, Query, description = "The `nextPageToken` of the previous page"),
        ("historyLength" = Option<i64>, Query, minimum = 0, description = "0 or absent: without messages"),
        ("statusTimestampAfter" = Option<String>, Query, description = "Changed after this time (RFC 3339)"),
        ("includeArtifacts" = Option<bool>, Query, description = "`true`: with results"),
    ),
    responses((status = 200, body = A2aObject, content_type = "application/a2a+json")))]
pub async fn list(asked: Asked, list: Result<Query<List>, QueryRejection>) -> Response {
    match list {
        Ok(Query(list)) => reply(asked.agent.list(&list).await),
        Err(refusal) => reply(Err(A2aError::invalid("query", refusal.body_text()))),
    }
}

/// Read or follow a task
///
/// `/a2a/tasks/{id}` is the task; `/a2a/tasks/{id}:subscribe` its updates as server-sent events.
#[utoipa::path(get, path = "/a2a/tasks/{id}", tag = "a2a", operation_id = "a2a_get_task",
    params(
        ("id" = String, Path, description = "The task's id, and :subscribe to follow it"),
        ("A2A-Version" = Option<String>, Header, description = "1.0"),
        ("historyLength" = Option<i64>, Query, minimum = 0, description = "0: without messages"),
    ),
    responses((status = 200, body = A2aObject, content_type = "application/a2a+json")))]
pub async fn get(
    asked: Asked,
    Path(id): Path<String>,
    get: Result<Query<Get>, QueryRejection>,
) -> Result<Response, Problem> {
    if let Some(id) = id.strip_suffix(":subscribe") {
        let updates = asked.agent.subscribe(id).await;
        return asked.followed(updates);
    }
    Ok(match get {
        Ok(Query(get)) => reply(asked.agent.get(&Get { id, ..get }).await.map(|task| json!(task))),
        Err(refusal) => reply(Err(A2aError::invalid("query", refusal.body_text()))),
    })
}

/// Cancel or follow a task
///
/// `/a2a/tasks/{id}:cancel` cancels the task; `/a2a/tasks/{id}:subscribe` follows it, as `GET`
/// does.
#[utoipa::path(post, path = "/a2a/tasks/{id}", tag = "a2a", operation_id = "a2a_change_task",
    params(
        ("id" = String, Path, description = "The task's id, and :cancel or :subscribe"),
        ("A2A-Version" = Option<String>, Header, description = "1.0"),
    ),
    responses((status = 200, body = A2aObject, content_type = "application/a2a+json")))]
pub async fn change(asked: Asked, Path(id): Path<String>) -> Result<Response, Problem> {
    if let Some(id) = id.strip_suffix(":cancel") {
        return Ok(reply(asked.agent.cancel(id).await.map(|task| json!(task))));
    }
    if let Some(id) = id.strip_suffix(":subscribe") {
        let updates = asked.agent.subscribe(id).await;
        return asked.followed(updates);
    }
    let why = "a POST to a task must end with :cancel or :subscribe";
    Ok(reply(Err(A2aError::new(ErrorKind::MethodNotFound, why))))
}

/// Add a push configuration to a task
///
/// The updates of the task are posted to `url` from now on, as `StreamResponse` of A2A: with
/// `token` in the header `X-A2A-Notification-Token`, and `authentication` as `Authorization`. An
/// `id` that the task already has is replaced.
#[utoipa::path(post, path = "/a2a/tasks/{id}/pushNotificationConfigs", tag = "a2a", operation_id = "a2a_create_push",
    params(("id" = String, Path), ("A2A-Version" = Option<String>, Header, description = "1.0")),
    request_body = A2aObject, responses((status = 200, body = A2aObject, content_type = "application/a2a+json")))]
pub async fn create_push(asked: Asked, Path(id): Path<String>, request: Request) -> Result<Response, Problem> {
    let body = json_body::whole(request).await?;
    Ok(match parsed::<PushConfig>(&body) {
        Ok(config) => reply(asked.agent.create_push(&PushConfig { task_id: id, ..config }).await),
        Err(error) => reply(Err(error)),
    })
}

/// List the push configurations of a task
///
/// Without their tokens and credentials.
#[utoipa::path(get, path = "/a2a/tasks/{id}/pushNotificationConfigs", tag = "a2a", operation_id = "a2a_list_push",
    params(("id" = String, Path), ("A2A-Version" = Option<String>, Header, description = "1.0")),
    responses((status = 200, body = A2aObject, content_type = "application/a2a+json")))]
pub async fn list_push(asked: Asked, Path(task_id): Path<String>) -> Response {
    reply(asked.agent.list_push(&PushName { task_id, id: String::new() }).await)
}

/// Read a push configuration of a task
///
/// Without its token and credentials.
#[utoipa::path(get, path = "/a2a/tasks/{id}/pushNotificationConfigs/{config}", tag = "a2a",
    operation_id = "a2a_get_push",
    params(("id" = String, Path), ("config" = String, Path),
        ("A2A-Version" = Option<String>, Header, description = "1.0")),
    responses((status = 200, body = A2aObject, content_type = "application/a2a+json")))]
pub async fn get_push(asked: Asked, Path((task_id, id)): Path<(String, String)>) -> Response {
    reply(asked.agent.get_push(&PushName { task_id, id }).await)
}

/// Delete a push configuration of a task
///
/// With the notifications that are not sent yet.
#[utoipa::path(delete, path = "/a2a/tasks/{id}/pushNotificationConfigs/{config}", tag = "a2a",
    operation_id = "a2a_delete_push",
    params(("id" = String, Path), ("config" = String, Path),
        ("A2A-Version" = Option<String>, Header, description = "1.0")),
    responses((status = 200, body = A2aObject, content_type = "application/a2a+json")))]
pub async fn delete_push(asked: Asked, Path((task_id, id)): Path<(String, String)>) -> Response {
    reply(asked.agent.delete_push(&PushName { task_id, id }).await)
}

/// Read the extended agent card
///
/// The card with the skills of the caller's tenant that the caller can use.
#[utoipa::path(get, path = "/a2a/extendedAgentCard", tag = "a2a", operation_id = "a2a_extended_card",
    params(("A2A-Version" = Option<String>, Header, description = "1.0")),
    responses((status = 200, body = A2aObject, content_type = "application/a2a+json")))]
pub async fn extended_card(asked: Asked) -> Response {
    reply(asked.agent.extended_card(&asked.url).await)
}

/// Receive a push notification
///
/// From an agent that `invoke_agent` asked, with the token that it got for its task, in
/// `X-A2A-Notification-Token` or as `Authorization: Bearer`. The body is not read: a notification
/// only makes a runner ask the agent for the state of the task.
#[utoipa::path(post, path = "/a2a/push/{tenant}/{task}", tag = "a2a", operation_id = "a2a_receive_push",
    params(("tenant" = String, Path), ("task" = String, Path, description = "The record `a2a.task.v1`"),
        ("X-A2A-Notification-Token" = Option<String>, Header, description = "The token of the task")),
    responses((status = 204)))]
pub async fn receive_push(
    State(state): State<ServerState>,
    Path((tenant, task)): Path<(String, String)>,
    headers: HeaderMap,
) -> Result<StatusCode, Problem> {
    let unknown = || Problem::unauthorized("this is not the token of a task at another agent");
    let (Ok(tenant), Ok(task)) = (tenant.parse(), task.parse()) else { return Err(unknown()) };
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let bearer = || text(header::AUTHORIZATION)?.strip_prefix("Bearer ");
    let token = text(HeaderName::from_static(TOKEN_HEADER)).or_else(bearer).ok_or_else(unknown)?;
    let store = runtime(&state, tenant);
    if !is_notified(&*store, task, token).await? {
        return Err(unknown());
    }
    state.rate_limiter.take_notification(task)?;
    wake(&*store, task).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A tenant as the runtime itself sees it.
fn runtime(state: &ServerState, owner_id: Uuid) -> Arc<dyn Breadcrumbs> {
    let (agent_id, roles, profile) = (Uuid::nil(), vec![Role::Runner], Profile::Main);
    state.tenancy.acting_as(Identity { owner_id, agent_id, roles, profile })
}

/// A request of the binding HTTP+JSON, in a version that is supported.
pub struct Asked {
    state: ServerState,
    caller: Caller,
    agent: A2aAgent,
    url: String,
}

impl FromRequestParts<ServerState> for Asked {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, state: &ServerState) -> Result<Self, Response> {
        let caller = Caller::from_request_parts(parts, state).await.map_err(Problem::into_response)?;
        version(&parts.headers, &parts.uri).map_err(|error| reply(Err(error)))?;
        let url = interface(state, &parts.headers);
        Ok(Self { agent: agent(state, &caller), state: state.clone(), caller, url })
    }
}

impl Asked {
    fn followed(self, updates: Result<Updates, A2aError>) -> Result<Response, Problem> {
        match updates {
            Ok(updates) => {
                let texts = updates.map(|update| match update {
                    Ok(update) => json!(update),
                    Err(error) => error.to_http(),
                });
                events(self.state, self.caller, texts.boxed())
            }
            Err(error) => Ok(reply(Err(error))),
        }
    }
}

fn agent(state: &ServerState, caller: &Caller) -> A2aAgent {
    A2aAgent {
        identity: caller.identity.clone(),
        store: caller.store.clone(),
        tenant: state.tenant_store(caller),
        tenancy: state.tenancy.clone(),
        is_open: state.auth == AuthMode::Open,
        allowed_private: state.allowed_private.clone(),
        stop: state.shutdown.clone(),
    }
}

/// Refuses a version that this server does not speak. The header can be a query parameter, too.
fn version(headers: &HeaderMap, uri: &Uri) -> Result<(), A2aError> {
    let in_query = || {
        let mut pairs = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
        pairs.find(|(name, _)| name.eq_ignore_ascii_case(VERSION_HEADER)).map(|(_, value)| value.into_owned())
    };
    let in_header = headers.get(VERSION_HEADER).map(|value| value.to_str().unwrap_or_default().to_owned());
    match in_header.or_else(in_query).filter(|version| !version.is_empty()) {
        Some(version) if is_supported_version(version.trim()) => Ok(()),
        given => {
            let given = given.map_or_else(|| "missing, which means 0.3".to_owned(), |given| format!("{given:.20?}"));
            let why = format!("A2A-Version is {given}; this server speaks {VERSION}");
            Err(A2aError::new(ErrorKind::VersionNotSupported, why))
        }
    }
}

/// The URL of both bindings, as the client reaches it.
fn interface(state: &ServerState, headers: &HeaderMap) -> String {
    let host = || headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or("localhost").to_owned();
    let base = state.public_url.as_ref().map_or_else(|| format!("http://{}", host()), |url| url.as_str().to_owned());
    format!("{base}{INTERFACE}")
}

fn parsed<T: DeserializeOwned>(body: &[u8]) -> Result<T, A2aError> {
    json_body::parse(body).map_err(|problem| {
        let kind = if problem.code() == "malformed_json" { ErrorKind::Parse } else { ErrorKind::InvalidParams };
        let violations = problem.violations().iter().map(|one| (one.field.clone(), one.message.clone())).collect();
        A2aError { kind, message: problem.detail().to_owned(), violations }
    })
}

fn reply(done: Result<Value, A2aError>) -> Response {
    let (status, body) = match done {
        Ok(body) => (StatusCode::OK, body),
        Err(error) => {
            let status = StatusCode::from_u16(error.kind.http_status());
            (status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR), error.to_http())
        }
    };
    (status, [(header::CONTENT_TYPE, MEDIA_TYPE)], body.to_string()).into_response()
}

/// Sends each value as a server-sent event, until the caller's rights end.
fn events(state: ServerState, caller: Caller, values: BoxStream<'static, Value>) -> Result<Response, Problem> {
    let identity = &caller.identity;
    let permit = state.streams.acquire(&state.stream_options, identity.owner_id, identity.agent_id)?;
    let every = state.stream_options.ping_every;
    let messages = while_authorized(state, caller, values, permit)
        .map(|value| Ok::<_, Infallible>(Message::default().data(value.to_string())));
    let sse = Sse::new(messages).keep_alive(KeepAlive::new().interval(every));
    Ok(([UNBUFFERED], sse).into_response())
}

/// Ends the stream when the token expires, or the caller's rights are no longer those that it
/// began with.
fn while_authorized(
    state: ServerState,
    caller: Caller,
    values: BoxStream<'static, Value>,
    permit: StreamPermit,
) -> impl Stream<Item = Value> + Send + 'static {
    let ends = expiry(&state, &caller);
    let every = state.stream_options.ping_every;
    let mut checks = interval_at(Instant::now() + every, every);
    checks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let changes = state.agent_cache.changes();
    unfold((values, checks, changes, state, caller, permit), move |mut of| async move {
        loop {
            tokio::select! {
                value = of.0.next() => return Some((value?, of)),
                () = passed(ends) => return None,
                _ = of.1.tick() => {}
                Ok(()) = of.2.changed() => {}
            }
            if !is_still_authorized(&of.3, &of.4).await {
                return None;
            }
        }
    })
}
