//! Serves the metrics of a process that has no other HTTP server: a runner of its own.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;
use tokio::time::interval;
use tokio_util::sync::CancellationToken;

use super::metrics::{self, Audience, MetricsToken};
use crate::auth::access::bearer;

const UPKEEP: Duration = Duration::from_secs(5);

/// Serves `GET /metrics` until stopped. With a token, only for callers that send it.
pub async fn serve_metrics(
    listener: TcpListener,
    token: Option<&str>,
    stop: CancellationToken,
) -> Result<(), std::io::Error> {
    metrics::install();
    let token = Arc::new(token.map(MetricsToken::new));
    let router = Router::new().route("/metrics", get(all)).with_state(token);
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
