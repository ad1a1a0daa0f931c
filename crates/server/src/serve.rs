//! The listener's loop: one task per connection, a bound on connections, on the time that headers take, and on how long
//! a shutdown waits.

use std::{convert::Infallible, pin::pin, time::Duration};

use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    net::{TcpListener, TcpStream},
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::metrics;

/// The most connections at once. More wait in the listener's backlog.
const MAX_CONNECTIONS: usize = 8192;
/// How long a caller may take to send a request's headers; also how long an idle connection stays.
const HEADER_TIME: Duration = Duration::from_mins(1);
/// How long requests may go on after the shutdown began.
const DRAIN_TIME: Duration = Duration::from_secs(10);

/// Serves until `shutdown`, then lets the requests under way finish.
pub async fn serve(listener: TcpListener, router: Router, shutdown: CancellationToken) {
    let mut connections = JoinSet::new();
    let mut upkeep = interval(Duration::from_secs(5));
    upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let has_room = connections.len() < MAX_CONNECTIONS;
        tokio::select! {
            () = shutdown.cancelled() => break,
            _ = upkeep.tick() => metrics::fold(),
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if has_room => match accepted {
                Ok((stream, _)) => {
                    connections.spawn(connection(stream, router.clone(), shutdown.clone()));
                }
                Err(error) => {
                    // Out of file descriptors, as a rule: accepting again at once would spin.
                    tracing::warn!(%error, "a connection could not be accepted");
                    sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    let drained = timeout(DRAIN_TIME, async { while connections.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!(connections = connections.len(), "requests were cut off by the shutdown");
        connections.shutdown().await;
    }
}

async fn connection(stream: TcpStream, router: Router, shutdown: CancellationToken) {
    // Small answers must not wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let router = router.clone();
        async move { Ok::<_, Infallible>(answer(router, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIME)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "a connection broke");
    }
}

async fn answer(router: Router, request: hyper::Request<Incoming>) -> axum::response::Response {
    match router.oneshot(request.map(Body::new)).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}
