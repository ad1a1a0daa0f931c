//! TLS and HTTP/2: trusted certificates, shared connections, and limits on what a server can send.

use std::sync::atomic::Ordering;
use std::time::Duration;

use async_compression::tokio::write::GzipEncoder;
use axum::http::{Response, StatusCode};
use bytes::Bytes;
use h2::server::SendResponse;
use rcrt_breadcrumb::{FetchResponse, OpError};
use rcrt_egress::{Connections, EgressOptions, Vault};
use tokio::io::AsyncWriteExt;

use rcrt_test_servers::network::{Network, context, get, listed, text};
use rcrt_test_servers::{PATIENCE, raw, tls};

/// A limit for servers that never respond.
const BRIEF: Duration = Duration::from_millis(400);

fn network(hosts: &[String]) -> Network {
    let mut network = hosts.iter().fold(Network::new(), |network, host| network.inside(host));
    network.options.more_authorities = vec![tls::authority()];
    network.options.connect_timeout = PATIENCE;
    network.options.head_timeout = PATIENCE;
    network.options.idle_timeout = PATIENCE;
    network.options.max_response_bytes = 1_000_000;
    network
}

async fn send_all(mut respond: SendResponse<Bytes>, head: Response<()>, body: &[u8]) -> Result<(), h2::Error> {
    let mut stream = respond.send_response(head, false)?;
    for piece in body.chunks(8000) {
        send(&mut stream, piece).await?;
    }
    stream.send_data(Bytes::new(), true)
}

/// Sends as fast as the client reads.
async fn send(stream: &mut h2::SendStream<Bytes>, piece: &[u8]) -> Result<(), h2::Error> {
    stream.reserve_capacity(piece.len());
    while stream.capacity() < piece.len() {
        match std::future::poll_fn(|cx| stream.poll_capacity(cx)).await {
            Some(more) => more?,
            None => return Err(h2::Reason::CANCEL.into()),
        };
    }
    stream.send_data(Bytes::copy_from_slice(piece), false)
}

async fn fetched(port: u16) -> Result<String, OpError> {
    fetched_with(port, |_| {}).await
}

async fn fetched_with(port: u16, set: impl FnOnce(&mut EgressOptions)) -> Result<String, OpError> {
    let host = format!("api.test:{port}");
    let mut network = network(std::slice::from_ref(&host));
    set(&mut network.options);
    let answer = network.gate().fetch(&listed(&[host]), get(format!("https://api.test:{port}/")), None).await?;
    text(answer).await
}

fn failed(result: Result<FetchResponse, OpError>) -> OpError {
    result.map(|answer| answer.status).unwrap_err()
}

#[tokio::test]
async fn certificates_are_checked() {
    let (port, _) = tls::serve("http/1.1", async |mut stream| {
        raw::head(&mut stream).await?;
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello").await
    })
    .await;
    assert_eq!(fetched(port).await.unwrap(), "hello");

    let hosts = ["api.test", "evil.test", "b.a.wild.test"].map(|name| format!("{name}:{port}"));
    let mut believing = network(&hosts);
    let rules = listed(&hosts);
    for name in ["evil.test", "b.a.wild.test"] {
        let url = format!("https://{name}:{port}/");
        let error = failed(believing.gate().fetch(&rules, get(url), None).await);
        assert!(error.name == "TypeError" && error.message.contains("certificate"), "{error}");
    }
    believing.options.more_authorities.clear();
    let error = failed(believing.gate().fetch(&rules, get(format!("https://api.test:{port}/")), None).await);
    assert!(error.name == "TypeError" && error.message.contains("certificate"), "{error}");
}

#[tokio::test]
async fn silent_tls_handshake_times_out() {
    let (port, _) = raw::serve(async |stream| {
        let _open = stream;
        std::future::pending().await
    })
    .await;
    let error = fetched_with(port, |options| options.connect_timeout = BRIEF).await.unwrap_err();
    assert!(error.name == "TypeError" && error.message.contains("cannot connect"), "{error}");
}

#[tokio::test]
async fn plain_response_to_https_is_an_error() {
    for answer in ["HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok", "x"] {
        // Sent at once: the client's first bytes have no end of a head.
        let (port, _) = raw::serve(move |mut stream| async move {
            loop {
                stream.write_all(answer.as_bytes()).await?;
            }
        })
        .await;
        let error = fetched(port).await.unwrap_err();
        assert!(error.name == "TypeError" && error.message.contains("cannot connect"), "{answer}: {error}");
    }
}

#[tokio::test]
async fn http2_connections_are_not_shared_between_hosts_or_calls() {
    let (port, connections) = tls::serve_h2(async |request, respond| {
        let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
        send_all(respond, Response::new(()), authority.as_bytes()).await
    })
    .await;
    // One certificate, one address, one port: a browser would use one connection for both.
    let hosts = ["api.test", "other.test"].map(|name| format!("{name}:{port}"));
    let gate = network(&hosts).gate();
    let rules = listed(&hosts);
    let vault = Vault::default();
    for calls in 1..=2 {
        let own = Connections::default();
        for _ in 0..3 {
            for host in &hosts {
                let ask = context(&rules, &vault, &own);
                let answer = gate.0.fetch(ask, get(format!("https://{host}/")), None).await.unwrap();
                assert_eq!(text(answer).await.unwrap(), *host);
            }
        }
        assert_eq!(connections.load(Ordering::SeqCst), 2 * calls, "two hosts in each call");
    }
}

#[tokio::test]
async fn http2_responses_have_the_same_limits() {
    let (port, _) = tls::serve_h2(async |_, mut respond| {
        let mut stream = respond.send_response(Response::new(()), false)?;
        loop {
            send(&mut stream, &[b'x'; 8000]).await?;
        }
    })
    .await;
    let error = fetched(port).await.unwrap_err();
    assert_eq!(error.message, "the response body is larger than 1000000 bytes");

    let mut bomb = GzipEncoder::new(Vec::new());
    bomb.write_all(&vec![0; 50_000_000]).await.unwrap();
    bomb.shutdown().await.unwrap();
    let bomb = bomb.into_inner();
    let (port, _) = tls::serve_h2(move |_, respond| {
        let bomb = bomb.clone();
        async move {
            let head = Response::builder().header("content-encoding", "gzip").body(()).unwrap();
            send_all(respond, head, &bomb).await
        }
    })
    .await;
    assert_eq!(fetched(port).await.unwrap_err().message, "the response body is larger than 1000000 bytes");

    let (port, _) = tls::serve_h2(async |_, respond| {
        let mut head = Response::builder();
        for n in 0..50 {
            head = head.header(format!("x-{n}"), "v".repeat(5000));
        }
        send_all(respond, head.body(()).unwrap(), b"hello").await
    })
    .await;
    fetched(port).await.unwrap_err();
}

#[tokio::test]
async fn silent_and_chatty_http2_servers_time_out() {
    let (port, _) = tls::serve_h2(async |_, respond| {
        let _kept = respond;
        std::future::pending().await
    })
    .await;
    let silent = fetched_with(port, |options| options.head_timeout = BRIEF).await;
    assert!(silent.unwrap_err().message.contains("no response within"));

    let (port, _) = tls::serve_h2(async |_, mut respond| {
        loop {
            let hint = Response::builder().status(StatusCode::EARLY_HINTS).header("link", "x").body(()).unwrap();
            respond.send_informational(hint)?;
            tokio::task::yield_now().await;
        }
    })
    .await;
    let chatty = fetched_with(port, |options| options.head_timeout = BRIEF).await;
    assert_eq!(chatty.unwrap_err().name, "TypeError");

    let (port, _) = tls::serve_h2(async |_, mut respond| {
        let mut stream = respond.send_response(Response::new(()), false)?;
        send(&mut stream, b"hello").await?;
        std::future::pending().await
    })
    .await;
    let unfinished = fetched_with(port, |options| options.idle_timeout = BRIEF).await;
    assert!(unfinished.unwrap_err().message.contains("no data of the response body arrived"));
}

#[tokio::test]
async fn redirect_to_https_is_followed_and_back_is_refused() {
    let (secure, _) = tls::serve("http/1.1", async |mut stream| {
        while !raw::head(&mut stream).await?.is_empty() {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\nsecure").await?;
        }
        Ok(())
    })
    .await;
    let redirect = |to: String| format!("HTTP/1.1 302 Found\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n");
    let plain = raw::respond(redirect(format!("https://api.test:{secure}/"))).await;
    let down = redirect(format!("http://api.test:{plain}/"));
    let (downgrading, _) = tls::serve("http/1.1", move |mut stream| {
        let down = down.clone();
        async move {
            raw::head(&mut stream).await?;
            stream.write_all(down.as_bytes()).await
        }
    })
    .await;
    let hosts = [secure, plain, downgrading].map(|port| format!("api.test:{port}"));
    let gate = network(&hosts).gate();
    let rules = listed(&hosts);
    let answer = gate.fetch(&rules, get(format!("http://api.test:{plain}/")), None).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "secure");
    let error = failed(gate.fetch(&rules, get(format!("https://api.test:{downgrading}/")), None).await);
    assert!(error.name == "TypeError" && error.message.contains("from https to http"), "{error}");
}
