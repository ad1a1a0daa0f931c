//! Malicious servers: wrong, slow, endless and oversized responses. Each fetch ends within its
//! limits, with an error that gives the reason.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_compression::tokio::write::GzipEncoder;
use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use futures::{StreamExt, TryStreamExt, stream};
use rcrt_breadcrumb::{FetchRequest, FetchResponse, OpError};
use rcrt_egress::{Connections, EgressOptions, HeldSecret, Vault};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use rcrt_test_servers::network::{Network, TestEgress, context, get, listed, serve};
use rcrt_test_servers::{PATIENCE, raw};

/// A limit for servers that never finish.
const BRIEF: Duration = Duration::from_millis(300);

async fn whole(answer: FetchResponse) -> Result<Vec<u8>, OpError> {
    Ok(answer.body.try_collect::<Vec<Bytes>>().await?.concat())
}

async fn fetched(port: u16, set: impl FnOnce(&mut EgressOptions)) -> Result<Vec<u8>, OpError> {
    let mut network = Network::new().inside(&format!("api.test:{port}"));
    network.options.head_timeout = PATIENCE;
    network.options.idle_timeout = PATIENCE;
    network.options.max_response_bytes = 1_000_000;
    set(&mut network.options);
    let url = format!("http://api.test:{port}/");
    whole(network.gate().fetch(&listed(&[format!("api.test:{port}")]), get(url), None).await?).await
}

async fn failed(port: u16) -> OpError {
    fetched(port, |_| {}).await.map(|body| body.len()).unwrap_err()
}

/// The error for a server that never finishes its response.
async fn failed_in_time(port: u16) -> OpError {
    let brief = |options: &mut EgressOptions| (options.head_timeout, options.idle_timeout) = (BRIEF, BRIEF);
    fetched(port, brief).await.map(|body| body.len()).unwrap_err()
}

fn assert_is(error: &OpError, name: &str, says: &str) {
    assert!(error.name == name && error.message.contains(says), "expected {name} … {says}, got {error}");
}

#[tokio::test]
async fn endless_head_times_out() {
    assert_is(&failed_in_time(raw::respond("").await).await, "TypeError", "no response within");
    assert_is(
        &failed_in_time(raw::respond_repeating("HTTP/1.1 200 OK\r\nx: ", "x").await).await,
        "TypeError",
        "no response within",
    );
    assert_is(
        &failed_in_time(raw::floods("", "HTTP/1.1 103 Early Hints\r\nlink: x\r\n\r\n").await).await,
        "TypeError",
        "",
    );
    assert_is(
        &failed_in_time(raw::respond_repeating("", "HTTP/1.1 100 Continue\r\n\r\n").await).await,
        "TypeError",
        "no response within",
    );
    assert_is(&failed_in_time(raw::floods("HTTP/1.1 200 OK\r\n", "x: y\r\n").await).await, "TypeError", "");
    assert_is(&failed_in_time(raw::floods("HTTP/1.1 200 OK\r\nx: ", "xxxxxxxx").await).await, "TypeError", "");
    assert_is(&failed_in_time(raw::floods("HTTP/1.1 200 ", "OK OK OK").await).await, "TypeError", "");
}

/// The time for a response counts from the last chunk of the body: an upload can take longer.
#[tokio::test]
async fn long_upload_continues_while_it_makes_progress() {
    let (port, _) = raw::serve(async |mut stream: TcpStream| {
        let mut received = Vec::new();
        while !received.ends_with(b"\r\n0\r\n\r\n") && stream.read_buf(&mut received).await? > 0 {}
        stream.write_all(b"HTTP/1.1 204 No Content\r\n\r\n").await
    })
    .await;
    let mut network = Network::new().inside(&format!("api.test:{port}"));
    network.options.max_replay_bytes = 100;
    network.options.head_timeout = Duration::from_secs(2);
    // Pieces arrive much more often than the limit requires, until it has passed.
    let ends = Instant::now() + network.options.head_timeout + Duration::from_millis(500);
    let body = stream::unfold(tokio::time::interval(Duration::from_millis(20)), move |mut clock| async move {
        let is_over = clock.tick().await >= ends;
        (!is_over).then(|| (Ok(Bytes::from_static(&[b'x'; 200])), clock))
    });
    let body = body.boxed();
    let request = FetchRequest { method: "POST".into(), ..get(format!("http://api.test:{port}/")) };
    let answer = network.gate().fetch(&listed(&[format!("api.test:{port}")]), request, Some(body)).await.unwrap();
    assert_eq!(answer.status, 204);
}

#[tokio::test]
async fn response_head_size_is_limited() {
    let answer = |fields: usize, length: usize| {
        let fields: Vec<String> = (0..fields).map(|n| format!("x-{n}: {}\r\n", "v".repeat(length))).collect();
        format!("HTTP/1.1 200 OK\r\ncontent-length: 2\r\n{}\r\nok", fields.concat())
    };
    assert_eq!(fetched(raw::respond(answer(100, 100)).await, |_| {}).await.unwrap(), b"ok");
    assert_is(&failed(raw::respond(answer(10, 10_000)).await).await, "ResourceExhausted", "65536 bytes");
    failed(raw::respond(answer(200, 10)).await).await;
    let few = fetched(raw::respond(answer(20, 10)).await, |options| options.max_header_fields = 20).await;
    assert!(few.is_err(), "the content-length is the twenty-first");
}

#[tokio::test]
async fn request_head_size_is_limited() {
    let network = Network::new().inside("api.test:1");
    let (gate, rules) = (network.gate(), listed(&["api.test:1".into()]));
    for headers in [vec![("x".to_owned(), "v".repeat(70_000))], vec![("x".to_owned(), String::new()); 200]] {
        let request = FetchRequest { headers, ..get("http://api.test:1/") };
        let error = gate.fetch(&rules, request, None).await.map(|answer| answer.status).unwrap_err();
        assert_is(&error, "ResourceExhausted", "the request has more than");
    }
    let long = get(format!("http://api.test:1/{}", "x".repeat(20_000)));
    let error = gate.fetch(&rules, long, None).await.map(|answer| answer.status).unwrap_err();
    assert_is(&error, "TypeError", "longer than");
    assert!(network.names.asked().is_empty());
}

#[tokio::test]
async fn responses_that_are_not_http_are_errors() {
    for answer in [
        "SSH-2.0-OpenSSH_9.9\r\n\r\n",
        "<html>hello</html>\r\n\r\n",
        "HTTP/1.1 abc OK\r\n\r\n",
        "HTTP/1.1 99 Low\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 999 High\r\ncontent-length: 0\r\n\r\n",
        "HTTP/9.1 200 OK\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nconnection: upgrade\r\nupgrade: websocket\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx y: z\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nabc",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 18446744073709551616\r\n\r\n",
    ] {
        let error = failed(raw::respond_once(answer).await).await;
        assert_eq!(error.name, "TypeError", "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn bodies_that_contradict_their_headers_are_errors() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nshort",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n-5\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nFFFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
    ] {
        let error = failed(raw::respond_once(answer).await).await;
        assert_eq!(error.name, "TypeError", "{answer:?}: {error}");
    }
}

#[tokio::test]
async fn endless_body_fails_at_a_limit() {
    let plain = "HTTP/1.1 200 OK\r\n\r\n";
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let too_large = "the response body is larger than 1000000 bytes";
    assert_is(&failed(raw::floods(plain, "x".repeat(5000)).await).await, "ResourceExhausted", too_large);
    assert_is(&failed(raw::floods(chunked, "4\r\nabcd\r\n".repeat(500)).await).await, "ResourceExhausted", too_large);
    let trailers = format!("{chunked}0\r\n");
    assert_is(&failed_in_time(raw::floods(trailers, "x: y\r\n").await).await, "TypeError", "");
    assert_is(&failed_in_time(raw::floods(chunked, "1;xxxxxxxxxxxxxxxxxxxxxxxxx").await).await, "TypeError", "");

    let promise = "HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello";
    assert_is(&failed_in_time(raw::respond(promise).await).await, "TypeError", "no data of the response body arrived");
    // Data keeps arriving slowly, so only the time limit of the whole fetch applies.
    let dripping =
        fetched(raw::respond_repeating(plain, "x").await, |options| options.total_timeout = Duration::from_millis(700));
    assert_is(&dripping.await.map(|body| body.len()).unwrap_err(), "TypeError", "took longer than");
}

async fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzipEncoder::new(Vec::new());
    encoder.write_all(bytes).await.unwrap();
    encoder.shutdown().await.unwrap();
    encoder.into_inner()
}

fn encoded(encoding: &str, body: &[u8]) -> Vec<u8> {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-encoding: {encoding}\r\ncontent-length: {}\r\n\r\n", body.len());
    [head.as_bytes(), body].concat()
}

#[tokio::test]
async fn encoded_bodies_are_decoded_and_bombs_fail_at_the_limit() {
    for encoding in ["gzip", "GZip", "x-gzip"] {
        let port = raw::respond(encoded(encoding, &gzip(b"hello").await)).await;
        assert_eq!(fetched(port, |_| {}).await.unwrap(), b"hello", "{encoding}");

        let bomb = gzip(&vec![0; 50_000_000]).await;
        assert!(bomb.len() < 100_000, "50 MB in {} bytes", bomb.len());
        let error = failed(raw::respond(encoded(encoding, &bomb)).await).await;
        assert_is(&error, "ResourceExhausted", "the response body is larger than 1000000 bytes");

        let half = gzip(b"hello, and this is cut off").await;
        let error = failed(raw::respond(encoded(encoding, &half[..half.len() - 9])).await).await;
        assert_eq!(error.name, "TypeError", "{encoding}: {error}");
        let error = failed(raw::respond(encoded(encoding, b"no such thing, not at all")).await).await;
        assert_is(&error, "TypeError", "cannot be decoded");
        assert_eq!(fetched(raw::respond(encoded(encoding, b"")).await, |_| {}).await.unwrap(), b"", "{encoding}");
    }
}

#[tokio::test]
async fn encoded_body_without_output_fails_at_the_same_limit() {
    let head = "HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\n\r\n";
    let start = [head.as_bytes(), &[0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255]].concat();
    // Empty stored blocks: the decoder reads forever and returns nothing.
    let port = raw::floods(start, [0, 0, 0, 0xff, 0xff].repeat(1000)).await;
    assert_is(&failed(port).await, "ResourceExhausted", "the response body is larger than 1000000 bytes");
}

#[tokio::test]
async fn undecodable_responses_reach_only_calls_without_secrets() {
    let secret = HeldSecret { name: "KEY".into(), value: "hunter2hunter2".into(), hosts: vec![], readable: false };
    for encoding in ["br", "deflate", "gzip, gzip", "gzip, br", "zstd"] {
        let port = raw::respond(encoded(encoding, b"whatever")).await;
        let network = Network::new().inside(&format!("api.test:{port}"));
        let rules = listed(&[format!("api.test:{port}")]);
        let request = || get(format!("http://api.test:{port}/"));
        let answer = network.gate().fetch(&rules, request(), None).await.unwrap();
        assert!(answer.headers.contains(&("content-encoding".into(), encoding.into())));
        assert_eq!(whole(answer).await.unwrap(), b"whatever");

        let vault = Vault::new(vec![secret.clone()]).unwrap();
        let connections = Connections::default();
        let ask = context(&rules, &vault, &connections);
        let error = network.egress().fetch(ask, request(), None).await.map(|answer| answer.status).unwrap_err();
        assert_is(&error, "TypeError", "the gate cannot decode");
    }
}

#[tokio::test]
async fn bytes_after_a_body_are_not_the_next_response() {
    let answer = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
    let poison = "HTTP/1.1 200 OK\r\ncontent-length: 6\r\n\r\npoison";
    let port = raw::respond([answer, poison].concat()).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let (gate, rules) = (network.gate(), listed(&[format!("api.test:{port}")]));
    let (vault, connections) = (Vault::default(), Connections::default());
    for _ in 0..20 {
        let ask = context(&rules, &vault, &connections);
        let answer = gate.0.fetch(ask, get(format!("http://api.test:{port}/")), None).await;
        if let Ok(answer) = answer {
            assert_eq!(whole(answer).await.unwrap(), b"ok");
        }
    }
}

#[tokio::test]
async fn connections_are_not_shared_between_calls() {
    let served = Arc::new(AtomicUsize::new(0));
    let requests = served.clone();
    let (port, connections) = raw::serve(move |mut stream: TcpStream| {
        let requests = requests.clone();
        async move {
            while !raw::head(&mut stream).await?.is_empty() {
                requests.fetch_add(1, Ordering::SeqCst);
                stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok").await?;
            }
            Ok(())
        }
    })
    .await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let (gate, rules) = (network.gate(), listed(&[format!("api.test:{port}")]));
    let vault = Vault::default();
    for calls in 1..=3 {
        let own = Connections::default();
        for _ in 0..4 {
            let ask = context(&rules, &vault, &own);
            let answer = gate.0.fetch(ask, get(format!("http://api.test:{port}/")), None).await.unwrap();
            assert_eq!(whole(answer).await.unwrap(), b"ok");
        }
        assert_eq!(served.load(Ordering::SeqCst), 4 * calls);
        assert_eq!(connections.load(Ordering::SeqCst), calls, "one for each call, used again within it");
    }
}

/// A server that receives requests with their bodies, and responds when it is permitted to.
struct Gated {
    port: u16,
    arrived: Arc<Semaphore>,
    responses: Arc<Semaphore>,
}

impl Gated {
    async fn start() -> Self {
        let (arrived, responses) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
        let (arrives, permitted) = (arrived.clone(), responses.clone());
        let receive = move |_: Bytes| async move {
            arrives.add_permits(1);
            permitted.acquire().await.unwrap().forget();
        };
        Self { port: serve(Router::new().route("/", post(receive))).await, arrived, responses }
    }

    /// Returns when this many more requests have arrived.
    async fn received(&self, requests: u32) {
        self.arrived.acquire_many(requests).await.unwrap().forget();
    }

    async fn post(&self, gate: &TestEgress, connections: &Connections, bytes: usize) -> Result<u16, OpError> {
        let (rules, vault) = (listed(&[format!("api.test:{}", self.port)]), Vault::default());
        let body = stream::iter([Ok(Bytes::from(vec![b'x'; bytes]))]).boxed();
        let request = FetchRequest { method: "POST".into(), ..get(format!("http://api.test:{}/", self.port)) };
        let ask = context(&rules, &vault, connections);
        gate.0.fetch(ask, request, Some(body)).await.map(|answer| answer.status)
    }
}

#[tokio::test]
async fn buffered_bodies_of_one_call_are_limited() {
    let server = Gated::start().await;
    let mut network = Network::new().inside(&format!("api.test:{}", server.port));
    network.options.max_held_bytes = 25_000;
    let (gate, connections) = (network.gate(), Connections::default());
    let post = || server.post(&gate, &connections, 10_000);
    let third = async {
        server.received(2).await;
        let third = post().await;
        server.responses.add_permits(2);
        third
    };
    let (first, second, third) = tokio::join!(post(), post(), third);
    assert_eq!((first, second), (Ok(200), Ok(200)));
    assert_is(&third.unwrap_err(), "ResourceExhausted", "larger than 25000 bytes");
    server.responses.add_permits(1);
    assert_eq!(post().await, Ok(200), "finished requests hold no bytes");
}

#[tokio::test]
async fn buffered_bodies_of_all_calls_are_limited_except_small_ones() {
    let server = Gated::start().await;
    let mut network = Network::new().inside(&format!("api.test:{}", server.port));
    network.options.max_held_by_all_bytes = 25_000;
    network.options.max_replay_bytes = 9_000;
    let gate = network.gate();
    let post = async |bytes| server.post(&gate, &Connections::default(), bytes).await;
    let later = async {
        server.received(2).await;
        let third = post(10_000).await;
        let small = async {
            server.received(1).await;
            server.responses.add_permits(3);
        };
        (third, tokio::join!(post(8_000), small).0)
    };
    let (first, second, (third, small)) = tokio::join!(post(10_000), post(10_000), later);
    assert_eq!((first, second, small), (Ok(200), Ok(200), Ok(200)));
    assert_is(&third.unwrap_err(), "ResourceExhausted", "all calls on this runner are larger than 25000 bytes");
    server.responses.add_permits(1);
    assert_eq!(post(10_000).await, Ok(200), "finished requests hold no bytes");
}

#[tokio::test]
async fn cookies_are_not_stored() {
    let (port, _) = raw::serve(async |mut stream: TcpStream| {
        loop {
            let head = raw::head(&mut stream).await?;
            if head.is_empty() {
                return Ok(());
            }
            let answer = if head.to_ascii_lowercase().contains("cookie") { "yes" } else { "not" };
            let fields = "set-cookie: a=b; path=/\r\ncontent-length: 3";
            stream.write_all(format!("HTTP/1.1 200 OK\r\n{fields}\r\n\r\n{answer}").as_bytes()).await?;
        }
    })
    .await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let (gate, rules) = (network.gate(), listed(&[format!("api.test:{port}")]));
    let (vault, connections) = (Vault::default(), Connections::default());
    for _ in 0..2 {
        let ask = context(&rules, &vault, &connections);
        let answer = gate.0.fetch(ask, get(format!("http://api.test:{port}/")), None).await.unwrap();
        assert_eq!(whole(answer).await.unwrap(), b"not");
    }
}
