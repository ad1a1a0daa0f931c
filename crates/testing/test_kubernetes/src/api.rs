//! The API server: pods, their logs, and secrets that can only be created. Everything else is
//! forbidden, as by the role of the chart.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Query, Request, State as Shared};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::{Next, from_fn_with_state};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use bytes::Bytes;
use futures::stream;
use serde_json::{Value, json};
use tokio::time::{Instant, timeout_at};

use crate::cluster::{NAMESPACE, State};
use crate::fault::Fault;
use crate::kubelet;
use crate::status::refusal;

type Cluster = Shared<Arc<State>>;
type Parameters = Query<HashMap<String, String>>;

pub fn router(state: Arc<State>) -> Router {
    let base = format!("/api/v1/namespaces/{NAMESPACE}");
    Router::new()
        .route(&format!("{base}/pods"), post(create_pod).get(list_pods))
        .route(&format!("{base}/pods/{{name}}"), get(read_pod).delete(delete_pod))
        .route(&format!("{base}/pods/{{name}}/log"), get(read_log))
        .route(&format!("{base}/secrets"), post(create_secret))
        .fallback(forbidden)
        .method_not_allowed_fallback(forbidden)
        .layer(from_fn_with_state(state.clone(), admitted))
        .with_state(state)
}

fn refused(body: &Value) -> Response {
    let code = StatusCode::from_u16(body["code"].as_u64().unwrap() as u16).unwrap();
    (code, Json(body.clone())).into_response()
}

/// Checks the token, and whether the server is busy.
async fn admitted(Shared(state): Cluster, headers: HeaderMap, request: Request, next: Next) -> Response {
    let sent = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    if !sent.is_some_and(|token| state.is_token(token)) {
        return refused(&refusal(401, "Unauthorized", "Unauthorized"));
    }
    if state.objects().fails(Fault::Busy) {
        let mut response = refused(&refusal(429, "TooManyRequests", "too many requests, please try again later"));
        response.headers_mut().insert(header::RETRY_AFTER, "0".parse().unwrap());
        return response;
    }
    next.run(request).await
}

async fn forbidden(Shared(state): Cluster, request: Request) -> Response {
    let asked = format!("{} {}", request.method(), request.uri().path());
    let response = refused(&refusal(403, "Forbidden", &format!("the role does not allow {asked}")));
    state.objects().forbidden.push(asked);
    response
}

async fn create_pod(Shared(state): Cluster, Json(pod): Json<Value>) -> Response {
    if state.objects().fails(Fault::Conflict) {
        let message = "Operation cannot be fulfilled on resourcequotas \"pods\": the object has been modified";
        return refused(&refusal(409, "Conflict", message));
    }
    let created = match state.change(|objects| objects.create_pod(pod, NAMESPACE)) {
        Ok(pod) => pod,
        Err(body) => return refused(&body),
    };
    tokio::spawn(kubelet::run(state.clone(), created.clone()));
    if state.objects().fails(Fault::LostResponse) {
        return refused(&refusal(500, "InternalError", "etcdserver: request timed out"));
    }
    (StatusCode::CREATED, Json(created)).into_response()
}

async fn create_secret(Shared(state): Cluster, Json(secret): Json<Value>) -> Response {
    let name = secret["metadata"]["name"].as_str().unwrap().to_owned();
    let is_new = state.change(|objects| objects.secrets.insert(name.clone(), secret.clone()).is_none());
    if is_new {
        (StatusCode::CREATED, Json(secret)).into_response()
    } else {
        refused(&refusal(409, "AlreadyExists", &format!("secrets {name:?} already exists")))
    }
}

fn no_pod(name: &str) -> Response {
    refused(&refusal(404, "NotFound", &format!("pods {name:?} not found")))
}

async fn read_pod(Shared(state): Cluster, Path(name): Path<String>) -> Response {
    let pod = state.objects().pods.get(&name).cloned();
    pod.map_or_else(|| no_pod(&name), |pod| Json(pod).into_response())
}

async fn delete_pod(Shared(state): Cluster, Path(name): Path<String>) -> Response {
    let pod = state.change(|objects| objects.delete_pod(&name));
    pod.map_or_else(|| no_pod(&name), |pod| Json(pod).into_response())
}

async fn read_log(Shared(state): Cluster, Path(name): Path<String>, Query(parameters): Parameters) -> Response {
    let container = parameters.get("container").cloned().unwrap_or_default();
    let most: usize = parameters.get("limitBytes").map_or(usize::MAX, |most| most.parse().unwrap());
    let objects = state.objects();
    if !objects.pods.contains_key(&name) {
        return no_pod(&name);
    }
    match objects.logs.get(&(name, container)) {
        Some(log) => log[..log.len().min(most)].to_vec().into_response(),
        None => refused(&refusal(400, "BadRequest", "the container is waiting to start")),
    }
}

/// Lists the pods with a label, or watches one by its name.
async fn list_pods(Shared(state): Cluster, Query(parameters): Parameters) -> Response {
    if parameters.contains_key("watch") {
        return watch(state, &parameters);
    }
    let (label, wanted) = parameters["labelSelector"].split_once('=').unwrap();
    let objects = state.objects();
    let has = |pod: &&Value| pod["metadata"]["labels"][label] == wanted;
    let mut items: Vec<Value> = objects.pods.values().filter(has).cloned().collect();
    // Pages are small here, so that there are several. The next one begins after this name.
    if let Some(after) = parameters.get("continue") {
        items.retain(|pod| pod["metadata"]["name"].as_str() > Some(after.as_str()));
    }
    let next = items.get(2).map_or(json!(""), |_| items[1]["metadata"]["name"].clone());
    items.truncate(2);
    Json(json!({"kind": "PodList", "metadata": {"continue": next}, "items": items})).into_response()
}

fn watch(state: Arc<State>, parameters: &HashMap<String, String>) -> Response {
    let name = parameters["fieldSelector"].strip_prefix("metadata.name=").unwrap().to_owned();
    let version: u64 = parameters["resourceVersion"].parse().unwrap();
    let end = Instant::now() + Duration::from_secs(parameters["timeoutSeconds"].parse().unwrap());
    if state.objects().fails(Fault::OldVersion) {
        let line = json!({"type": "ERROR", "object": refusal(410, "Expired", "too old resource version")});
        return format!("{line}\n").into_response();
    }
    let cut = state.objects().fails(Fault::CutWatch);
    let lines = stream::unfold(version, move |version| {
        let (state, name) = (state.clone(), name.clone());
        async move {
            let next = state.until(|objects| {
                let of_pod = |change: &&crate::objects::Change| {
                    change.0 > version && change.2["metadata"]["name"] == name.as_str()
                };
                objects.changes.iter().find(of_pod).cloned()
            });
            let (version, kind, pod) = timeout_at(end, next).await.ok()?;
            let mut line = format!("{}\n", json!({"type": kind, "object": pod}));
            if cut {
                line.truncate(line.len() / 2);
            }
            // After a line that was cut, nothing more comes.
            let then = if cut { u64::MAX } else { version };
            Some((Ok::<Bytes, Infallible>(line.into()), then))
        }
    });
    let lines: futures::stream::BoxStream<'static, _> =
        if cut { Box::pin(futures::StreamExt::take(lines, 1)) } else { Box::pin(lines) };
    Body::from_stream(lines).into_response()
}
