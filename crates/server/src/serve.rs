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

use crate::{
    connections::{ConnectionPermit, Connections, Full},
    limits::ServerLimits,
    metrics,
    problem::MEDIA_TYPE,
    rate_limit::Peer,
    write_timeout::WriteTimeout,
};

/// How many connections beyond the most are told so at once. More wait in the listener's backlog.
const MOST_REFUSED: usize = 64;
/// How long a connection that is refused may take to hear it.
const REFUSAL_TIME: Duration = Duration::from_secs(1);
/// How many connections that lost their permits may end their answers. The others are closed at once: whoever opens many
/// must not slow the accepting down.
const MOST_LINGERING: usize = 32;

struct Bounds {
    limits: ServerLimits,
    lingering: Semaphore,
}

/// Serves until `shutdown`, then lets the requests under way finish.
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
                    // Out of file descriptors, as a rule: accepting again at once would spin.
                    tracing::warn!(%error, "a connection could not be accepted");
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

/// Tells who came too late that it did. What it sends is read a little: closing on unread data would reset the
/// connection, and it would never hear why.
async fn refuse(mut stream: TcpStream, full: Full) {
    let detail = match full {
        Full::Server => "the server has as many connections as it takes; try again",
        Full::Address => "this address has as many connections as one address may have; close some",
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
    // Small answers must not wait for the acknowledgement of the one before.
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
            // An answer may still be on its way.
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
