//! Serves the metrics and the health of a process that has no other HTTP server: a runner of its
//! own.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use tokio::net::TcpListener;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::metrics::{self, Audience, MetricsToken};
use super::problem::Problem;
use crate::auth::access::bearer;
use crate::routes::operations::{HEALTHY, Health};

const UPKEEP: Duration = Duration::from_secs(5);

/// Returns why the process is not ready.
pub type ReadyCheck = dyn Fn() -> Result<(), String> + Send + Sync;

/// Serves until stopped: `GET /metrics`, with a token only for callers that send it; `GET /health`,
/// which is 503 while the process is not ready; and `GET /health/live`.
pub async fn serve_metrics(
    listener: TcpListener,
    token: Option<&str>,
    ready: Arc<ReadyCheck>,
    stop: CancellationToken,
) -> Result<(), std::io::Error> {
    metrics::install();
    let token = Arc::new(token.map(MetricsToken::new));
    let health = Router::new().route("/health", get(health)).with_state(ready);
    let router = Router::new()
        .route("/metrics", get(all))
        .with_state(token)
        .merge(health.route("/health/live", get(async || Json(HEALTHY))));
    let stopped = stop.clone().cancelled_owned();
    let server = axum::serve(listener, router).with_graceful_shutdown(stopped).into_future();
    let mut upkeep = interval(UPKEEP);
    tokio::pin!(server);
    loop {
        tokio::select! {
            ended = &mut server => return ended,
            // An idle connection must not delay the end.
            () = stop.cancelled() => return Ok(()),
            _ = upkeep.tick() => metrics::fold(),
        }
    }
}

async fn all(State(token): State<Arc<Option<MetricsToken>>>, headers: HeaderMap) -> Response {
    let is_allowed =
        token.as_ref().as_ref().is_none_or(|own| bearer(&headers).ok().flatten().is_some_and(|sent| own.is(sent)));
    if !is_allowed {
        return (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], "the metrics token is required\n")
            .into_response();
    }
    let kind = [(header::CONTENT_TYPE, "text/plain; version=0.0.4; charset=utf-8")];
    (kind, metrics::render(Audience::Operator, &[], &[])).into_response()
}

async fn health(State(ready): State<Arc<ReadyCheck>>) -> Result<Json<Health>, Problem> {
    ready().map_err(Problem::not_ready)?;
    Ok(Json(HEALTHY))
}
