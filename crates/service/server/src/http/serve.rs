//! The accept loop: one task per connection, with limits on connections, on the time for headers
//! and for a blocked write, and on the duration of a shutdown.

use std::{convert::Infallible, pin::pin, sync::Arc, time::Duration};

use axum::{Router, body::Body};
use hyper::{body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::Semaphore,
    task::JoinSet,
    time::{MissedTickBehavior, interval, sleep, timeout},
};
use tokio_util::sync::CancellationToken;
use tower::ServiceExt;

use crate::http::connections::{ConnectionPermit, Connections, Full};
use crate::http::metrics;
use crate::http::problem::MEDIA_TYPE;
use crate::http::rate_limit::Peer;
use crate::http::write_timeout::WriteTimeout;
use crate::limits::ServerLimits;

/// How many connections beyond the limit get a refusal at once. More wait in the listener's
/// backlog.
const MOST_REFUSED: usize = 64;
/// The time limit for a refusal.
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// How many evicted connections can finish their responses. Others are closed at once, so that a
/// caller that opens many cannot slow down the accept loop.
const MOST_LINGERING: usize = 32;

struct Bounds {
    limits: ServerLimits,
    lingering: Semaphore,
}

/// Serves until `shutdown`, then lets the requests in progress finish.
pub async fn serve(listener: TcpListener, router: Router, limits: &ServerLimits, shutdown: CancellationToken) {
    let mut connections = JoinSet::new();
    let bounds = Arc::new(Bounds { limits: limits.clone(), lingering: Semaphore::new(MOST_LINGERING) });
    let permits = Connections::new(limits.max_connections, limits.max_connections_per_address);
    let mut upkeep = interval(Duration::from_secs(5));
    upkeep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let open = connections.len();
        tokio::select! {
            () = shutdown.cancelled() => break,
            _ = upkeep.tick() => metrics::fold(),
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if open < limits.max_connections + MOST_REFUSED => match accepted {
                Ok((stream, peer)) => match permits.acquire(peer.ip()) {
                    Ok(permit) => {
                        let (peer, bounds) = (Peer(peer.ip()), bounds.clone());
                        connections.spawn(connection(stream, peer, permit, router.clone(), bounds, shutdown.clone()));
                    }
                    Err(full) => {
                        connections.spawn(refuse(stream, full));
                    }
                },
                Err(error) => {
                    // Usually no file descriptors are left. Accepting again at once would be a busy
                    // loop.
                    tracing::warn!(%error, "a connection cannot be accepted");
                    sleep(Duration::from_millis(100)).await;
                }
            },
        }
    }
    drop(listener);
    let drained = timeout(limits.drain_time, async { while connections.join_next().await.is_some() {} }).await;
    if drained.is_err() {
        tracing::warn!(connections = connections.len(), "requests were cut off by the shutdown");
        connections.shutdown().await;
    }
}

/// Sends a refusal to a connection beyond the limit. Some of its data is read first: closing with
/// unread data resets the connection, and the caller would not see the reason.
async fn refuse(mut stream: TcpStream, full: Full) {
    let detail = match full {
        Full::Server => "the server has its maximum number of connections; try again",
        Full::Address => "this address has its maximum number of connections; close some",
    };
    let refusal = format!(
        "{{\"type\":\"/docs#problem-unavailable\",\"title\":\"Unavailable\",\"status\":503,\"detail\":\"{detail}\",\
         \"code\":\"unavailable\"}}"
    );
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: {MEDIA_TYPE}\r\nretry-after: 1\r\nconnection: close\r\n\
         content-length: {}\r\n\r\n{refusal}",
        refusal.len()
    );
    let telling = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await?;
        let mut rest = [0; 4096];
        while stream.read(&mut rest).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = timeout(REFUSAL_TIME, telling).await;
}

async fn connection(
    stream: TcpStream,
    peer: Peer,
    permit: ConnectionPermit,
    router: Router,
    bounds: Arc<Bounds>,
    shutdown: CancellationToken,
) {
    // A small response must not wait for the acknowledgement of the previous one.
    let _ = stream.set_nodelay(true);
    let permit = Arc::new(permit);
    let asked_at = permit.clone();
    let limits = &bounds.limits;
    let service = service_fn(move |mut request: hyper::Request<Incoming>| {
        asked_at.mark_request_received();
        request.extensions_mut().insert(peer);
        request.extensions_mut().insert(asked_at.clone());
        let router = router.clone();
        async move { Ok::<_, Infallible>(answer(router, request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_time)
        .serve_connection(TokioIo::new(WriteTimeout::new(stream, limits.write_time)), service);
    let mut connection = pin!(connection);
    let never_asks = async {
        sleep(limits.first_header_time).await;
        if permit.has_received_request() {
            std::future::pending::<()>().await;
        }
    };
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        () = permit.evicted() => {
            if !permit.has_received_request() {
                return;
            }
            let Ok(_lingers) = bounds.lingering.try_acquire() else { return };
            // A response may still be in progress.
            connection.as_mut().graceful_shutdown();
            timeout(REFUSAL_TIME, connection).await.unwrap_or(Ok(()))
        }
        () = never_asks => return,
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
