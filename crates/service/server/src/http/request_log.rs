//! What the log and the metrics record of a request: method, the route's path, status, time. Never
//! the query, which may contain a token.

use std::{any::Any, time::Instant};

use axum::{
    extract::{MatchedPath, Request},
    http::{HeaderName, HeaderValue, Method},
    middleware::Next,
    response::{IntoResponse, Response},
};
use tracing::{Instrument, field};
use uuid::Uuid;

use crate::http::metrics;
use crate::http::problem::Problem;

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The middleware around everything: gives the request a span and an id (the caller's own, if it is
/// valid).
pub async fn observe(request: Request, next: Next) -> Response {
    let began = Instant::now();
    let id = request.headers().get(&REQUEST_ID).filter(|id| is_valid_id(id)).cloned().unwrap_or_else(|| {
        HeaderValue::try_from(Uuid::new_v4().to_string()).unwrap_or(HeaderValue::from_static("none"))
    });
    let method = known(request.method());
    let path = request.extensions().get::<MatchedPath>().cloned();
    let path = path.as_ref().map_or("", MatchedPath::as_str);
    let span = tracing::info_span!(
        "request",
        id = id.to_str().unwrap_or_default(),
        method,
        path,
        status = field::Empty,
        ms = field::Empty
    );
    async {
        let mut response = next.run(request).await;
        let (status, took) = (response.status().as_u16(), began.elapsed());
        let span = tracing::Span::current();
        span.record("status", status);
        span.record("ms", took.as_millis() as u64);
        tracing::debug!("answered");
        metrics::count_request(method, path, status, took);
        response.headers_mut().insert(REQUEST_ID, id);
        response
    }
    .instrument(span.clone())
    .await
}

/// Turns a panic into a response.
#[allow(clippy::needless_pass_by_value)] // The layer requires this signature.
pub fn panicked(panic: Box<dyn Any + Send>) -> Response {
    let text = panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    tracing::error!(panic = text.unwrap_or("no text"), "a handler panicked");
    Problem::internal().into_response()
}

fn is_valid_id(id: &HeaderValue) -> bool {
    (1..=128).contains(&id.len())
        && id.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn known(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::HEAD => "HEAD",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        Method::OPTIONS => "OPTIONS",
        _ => "other",
    }
}
