//! One call as one HTTP exchange.

use bytes::Bytes;
use futures::{StreamExt, TryStreamExt, stream};
use rcrt_breadcrumb::{
    BodyStream, ErrorCode, FetchRequest, FetchResponse, OpError, Redirect, ToolFailure, Violation, check_numbers,
};
use rcrt_egress::{Connections, Egress, EgressContext, NetRules, Origin};
use serde_json::{Map, Value, json};
use url::Url;
use uuid::Uuid;

use super::large_responses::{LargeResponsePermit, LargeResponses, SMALL};
use super::settings::{Auth, Method, Settings};
use crate::ToolCall;

/// The headers of a request whose tool sets no others.
pub(super) const ACCEPT: &str = "application/json, */*;q=0.5";
pub(super) const CONTENT_TYPE: &str = "application/json";
/// How many bytes of an error response's body the failure quotes.
const EXCERPT: usize = 2048;

pub(super) async fn perform(
    egress: &Egress,
    large: &LargeResponses,
    settings: &Settings,
    call: &ToolCall,
    metadata: &mut Map<String, Value>,
    turn: &mut Option<LargeResponsePermit>,
) -> Result<Value, ToolFailure> {
    let (request, body) = request(settings, call.input.clone(), |name| call.secrets.handle(name))?;
    let (host, port) = settings.url.host();
    let rules = NetRules::only(host.clone(), port);
    let (tool, connections, origin) = (&call.definition.name, &Connections::default(), Some(Origin::from(call)));
    let (vault, observer) = (&call.secrets, call.request_observer());
    let ask = EgressContext { tool, rules: &rules, vault, connections, origin, observer: observer.as_ref() };
    let response = egress.fetch(ask, request, body).await.map_err(failure)?;
    metadata.insert("http_status".into(), response.status.into());
    result(response, settings.method, large, call.tool_id, turn).await
}

/// The request for this input. `secret`: the text that stands for a secret.
pub(super) fn request<'s>(
    settings: &Settings,
    input: Value,
    secret: impl Fn(&str) -> Option<&'s str>,
) -> Result<(FetchRequest, Option<BodyStream>), ToolFailure> {
    let Value::Object(mut arguments) = input else {
        return Err(ToolFailure::new(ErrorCode::InvalidArguments, "the input of an http tool must be an object"));
    };
    let mut url =
        settings.url.fill(&mut arguments).map_err(|problem| ToolFailure::new(ErrorCode::InvalidArguments, problem))?;
    let mut headers: Vec<(String, String)> =
        settings.headers.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let mut default = |name: &str, value: &str| {
        if !headers.iter().any(|(known, _)| known.eq_ignore_ascii_case(name)) {
            headers.push((name.into(), value.into()));
        }
    };
    default("accept", ACCEPT);
    let body = if settings.method.has_body() {
        default("content-type", CONTENT_TYPE);
        Some(Bytes::from(Value::Object(arguments).to_string()))
    } else {
        append_query(&mut url, &arguments);
        None
    };
    headers.extend(authorization(settings, secret)?);
    let request =
        FetchRequest { method: settings.method.as_str().into(), url: url.into(), headers, redirect: Redirect::Follow };
    Ok((request, body.map(|bytes| -> BodyStream { stream::iter([Ok(bytes)]).boxed() })))
}

/// The output that the response is, or the failure.
pub(super) async fn result(
    response: FetchResponse,
    method: Method,
    large: &LargeResponses,
    tool: Uuid,
    turn: &mut Option<LargeResponsePermit>,
) -> Result<Value, ToolFailure> {
    if (200..300).contains(&response.status) {
        answer(response, method, large, tool, turn).await
    } else {
        Err(refused(response).await)
    }
}

fn authorization<'s>(
    settings: &Settings,
    secret: impl Fn(&str) -> Option<&'s str>,
) -> Result<Option<(String, String)>, ToolFailure> {
    let Some(auth) = &settings.auth else { return Ok(None) };
    let Some(handle) = secret(auth.secret()) else {
        let message = format!("the secret {:?} is not available", auth.secret());
        return Err(ToolFailure::new(ErrorCode::ExecutionFailed, message));
    };
    Ok(Some(match auth {
        Auth::Bearer { .. } => ("authorization".into(), format!("Bearer {handle}")),
        Auth::ApiKey { header, .. } => (header.clone(), handle.to_owned()),
    }))
}

/// Repeats the name for each element of a list, omits null, and writes objects as JSON text.
fn append_query(url: &mut Url, arguments: &Map<String, Value>) {
    let pairs: Vec<(&str, String)> = arguments
        .iter()
        .flat_map(|(name, value)| match value {
            Value::Array(items) => items.iter().map(|item| (name.as_str(), text(item))).collect(),
            Value::Null => Vec::new(),
            other => vec![(name.as_str(), text(other))],
        })
        .collect();
    if !pairs.is_empty() {
        url.query_pairs_mut().extend_pairs(pairs);
    }
}

fn text(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// JSON as its value, anything else as text, an empty body as null. The permit of a large response
/// outlives this function, because the result is as large.
async fn answer(
    mut response: FetchResponse,
    method: Method,
    large: &LargeResponses,
    tool: Uuid,
    turn: &mut Option<LargeResponsePermit>,
) -> Result<Value, ToolFailure> {
    let is_json = content_type(&response).is_some_and(|kind| kind == "application/json" || kind.ends_with("+json"));
    let mut bytes = Vec::new();
    while let Some(piece) = response.body.try_next().await.map_err(failure)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > SMALL && turn.is_none() {
            *turn = large.turn(tool).await;
        }
    }
    if bytes.is_empty() || method == Method::Head {
        return Ok(Value::Null);
    }
    if is_json {
        let value = serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("the response declares JSON but is not valid JSON: {error}");
            ToolFailure::new(ErrorCode::ExecutionFailed, message)
        })?;
        return match check_numbers(&bytes) {
            Ok(()) => Ok(value),
            Err(Violation { field, .. }) => {
                let location = if field.is_empty() { "as its value".into() } else { format!("at {field}") };
                let message = format!(
                    "the response has a number of more than 64 bits {location}, which a result cannot hold; the service must \
                     send it as a string"
                );
                Err(ToolFailure::new(ErrorCode::ExecutionFailed, message).with_details(json!({"field": field})))
            }
        };
    }
    Ok(Value::String(String::from_utf8_lossy(&bytes).into_owned()))
}

fn content_type(response: &FetchResponse) -> Option<String> {
    let (_, value) = response.headers.iter().find(|(name, _)| name == "content-type")?;
    Some(value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase())
}

async fn refused(mut response: FetchResponse) -> ToolFailure {
    let mut excerpt = Vec::new();
    while excerpt.len() < EXCERPT
        && let Ok(Some(piece)) = response.body.try_next().await
    {
        excerpt.extend_from_slice(&piece);
    }
    excerpt.truncate(EXCERPT);
    let status = response.status;
    let message = format!("the service responded with {status} {}", response.status_text);
    ToolFailure::new(ErrorCode::ExecutionFailed, message.trim_end())
        .with_details(
            json!({"http_status": status, "body": String::from_utf8_lossy(&excerpt).replace('\0', "\u{fffd}")}),
        )
        .retryable(matches!(status, 408 | 429 | 500..))
}

/// The egress gate's refusals are caused by the tool and not retryable; a network error may be
/// temporary.
pub(super) fn failure(error: OpError) -> ToolFailure {
    match error.name.as_str() {
        "PermissionDenied" => ToolFailure::new(ErrorCode::PermissionDenied, error.message),
        "ResourceExhausted" => ToolFailure::new(ErrorCode::ResourceExhausted, error.message),
        _ => ToolFailure::new(ErrorCode::ExecutionFailed, error.message).retryable(true),
    }
}
