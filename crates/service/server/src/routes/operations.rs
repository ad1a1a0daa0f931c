//! For operators and newcomers: health, metrics, the API description and its page.

use axum::{
    Json,
    extract::State,
    http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header},
    response::{IntoResponse, Response},
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::ServerState;
use crate::auth::access::{bearer, is_operator_token};
use crate::http::metrics::{self, Audience};
use crate::http::problem::Problem;
use crate::openapi;
use crate::routes::replies::Reply;

pub const HEALTHY: Health = Health { status: "ok", version: env!("CARGO_PKG_VERSION") };

#[derive(Serialize, ToSchema)]
pub struct Health {
    /// `ok`; anything else is a problem document with status 503.
    status: &'static str,
    /// The server's version.
    version: &'static str,
}

/// Is the server ready?
///
/// `ok` if its database responds. The result is at most one second old: with any number of callers,
/// there is one query per second. A server that is about to stop responds with `draining`.
#[utoipa::path(get, path = "/health", tag = "operations", operation_id = "health",
    responses((status = 200, body = Health)))]
pub async fn health(State(state): State<ServerState>) -> Reply<Health> {
    if state.draining.is_cancelled() {
        return Err(Problem::draining());
    }
    state.readiness.check().await?;
    Ok(Json(HEALTHY))
}

/// Is the process alive?
///
/// `ok` whenever it responds at all, whatever the state of its database: for supervisors that
/// restart processes that hang.
#[utoipa::path(get, path = "/health/live", tag = "operations", operation_id = "live",
    responses((status = 200, body = Health)))]
pub async fn live() -> Json<Health> {
    Json(HEALTHY)
}

/// Metrics for Prometheus
///
/// All of them with the operator's token or the server's metrics token. Without a token, or with
/// that of another agent, only those that name nothing of a tenant. A wrong token gets 401.
#[utoipa::path(get, path = "/metrics", tag = "operations", operation_id = "metrics",
    responses((status = 200, body = String, content_type = "text/plain")))]
pub async fn metrics(State(state): State<ServerState>, headers: HeaderMap) -> Result<Response, Problem> {
    let audience = match bearer(&headers)? {
        Some(token) if state.metrics_token.as_ref().is_some_and(|own| own.is(token)) => Audience::Operator,
        Some(token) if is_operator_token(&state, token).await.map_err(|problem| wrong_token(&problem))? => {
            Audience::Operator
        }
        _ => Audience::Anyone,
    };
    let unfinished =
        if audience == Audience::Operator { state.tenancy.unfinished_calls().await } else { Ok(Vec::new()) };
    // The other metrics matter most when the database cannot be reached.
    let unfinished = unfinished.unwrap_or_else(|error| {
        tracing::debug!(%error, "unfinished calls cannot be counted");
        Vec::new()
    });
    let all = metrics::render(audience, &state.tenancy.counted_tenants(), &unfinished);
    Ok(text("text/plain; version=0.0.4; charset=utf-8", all))
}

fn wrong_token(problem: &Problem) -> Problem {
    let detail = problem.detail();
    Problem::unauthorized(format!("{detail}; send the server's --metrics-token, or one of `rcrt token --operator`"))
}

/// This description
#[utoipa::path(get, path = "/openapi.json", tag = "operations", operation_id = "openapi",
    responses((status = 200, description = "OpenAPI 3.1", body = Object)))]
pub async fn openapi() -> Response {
    text("application/json", openapi::TEXT.as_str())
}

/// The page that shows this description
#[utoipa::path(get, path = "/docs", tag = "operations", operation_id = "docs",
    responses((status = 200, body = String, content_type = "text/html")))]
pub async fn docs() -> Response {
    let mut page = text("text/html; charset=utf-8", include_str!("docs/page.html"));
    page.headers_mut().insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src 'self' data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
        ),
    );
    page
}

/// Redirect to the page, from its path in RCRT
#[utoipa::path(get, path = "/swagger", tag = "operations", operation_id = "swagger",
    responses((status = 308, description = "The page is at /docs", headers(("Location" = String, description = "The page")))))]
pub async fn swagger() -> Response {
    redirect("docs")
}

/// Redirect to the page
#[utoipa::path(get, path = "/docs/", tag = "operations", operation_id = "docs_folder",
    responses((status = 308, description = "The page is at /docs", headers(("Location" = String, description = "The page")))))]
pub async fn docs_folder() -> Response {
    redirect("../docs")
}

/// A relative URL is right behind a proxy that serves this server under a path.
fn redirect(location: &'static str) -> Response {
    (StatusCode::PERMANENT_REDIRECT, [(header::LOCATION, HeaderValue::from_static(location))]).into_response()
}

/// The page's style
#[utoipa::path(get, path = "/docs/page.css", tag = "operations", operation_id = "docs_style",
    responses((status = 200, body = String, content_type = "text/css")))]
pub async fn docs_style() -> Response {
    text("text/css; charset=utf-8", include_str!("docs/page.css"))
}

/// The page's script
#[utoipa::path(get, path = "/docs/page.js", tag = "operations", operation_id = "docs_script",
    responses((status = 200, body = String, content_type = "text/javascript")))]
pub async fn docs_script() -> Response {
    text("text/javascript; charset=utf-8", include_str!("docs/page.js"))
}

fn text(media_type: &'static str, body: impl IntoResponse) -> Response {
    const NOSNIFF: (HeaderName, HeaderValue) = (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let kind = (header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    let no_cache = (header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    ([kind, no_cache, NOSNIFF], body).into_response()
}
