use std::net::IpAddr;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, header};
use axum::routing::{any, get as on_get, post};
use futures::{StreamExt, TryStreamExt, stream};
use rcrt_breadcrumb::{BodyStream, FetchRequest, FetchResponse, OpError};
use rcrt_egress::NetRules;

use rcrt_test_servers::network::{LOOPBACK, Network, get, listed, serve, text};

fn name_of(result: Result<FetchResponse, OpError>) -> String {
    result.map(|answer| answer.status).unwrap_err().name
}

fn body_of(pieces: usize, each: usize) -> BodyStream {
    stream::iter((0..pieces).map(move |_| Ok(Bytes::from(vec![b'x'; each])))).boxed()
}

fn post_to(url: String) -> FetchRequest {
    FetchRequest { method: "post".into(), ..get(url) }
}

#[tokio::test]
async fn allowed_host_is_reached() {
    let port = serve(Router::new().route("/hello", on_get(|| async { ([("x-kind", "caf\u{e9}")], "hello") }))).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let rules = listed(&[format!("api.test:{port}")]);
    let answer = network.gate().fetch(&rules, get(format!("http://API.test.:{port}/hello#part")), None).await.unwrap();
    assert_eq!((answer.status, answer.status_text.as_str(), answer.redirected), (200, "OK", false));
    assert_eq!(answer.url, format!("http://api.test:{port}/hello"));
    assert_eq!(text(answer).await.unwrap(), "hello");
    assert_eq!(network.names.asked(), ["api.test"], "one lookup, of the canonical name");
}

#[tokio::test]
async fn unlisted_hosts_are_refused_before_any_lookup() {
    let network = Network::new().inside("api.test");
    let gate = network.gate();
    let rules = listed(&["api.test".into()]);
    for url in ["http://other.test/", "http://api.test:8080/", "http://api.test.evil.test/", "http://127.0.0.1/"] {
        let error = gate.fetch(&rules, get(url), None).await.map(|a| a.status).unwrap_err();
        assert_eq!(error.name, "PermissionDenied", "{url}");
        assert!(error.message.contains("permissions.net"), "{}", error.message);
    }
    assert_eq!(name_of(gate.fetch(&NetRules::Nothing, get("http://api.test/"), None).await), "PermissionDenied");
    assert!(network.names.asked().is_empty());
}

#[tokio::test]
async fn name_with_any_non_public_address_is_refused() {
    let network = Network::new();
    let public: IpAddr = "93.184.215.14".parse().unwrap();
    for inside in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "::ffff:10.0.0.1", "fd00::1"] {
        network.names.set("mixed.test", vec![vec![public, inside.parse().unwrap()]]);
        let error = network.gate().fetch(&NetRules::EveryHost, get("http://mixed.test/"), None).await;
        let error = error.map(|answer| answer.status).unwrap_err();
        assert_eq!(error.name, "PermissionDenied", "{inside}");
        assert!(error.message.contains("non-public") && !error.message.contains(inside), "{}", error.message);
    }
}

#[tokio::test]
async fn literal_addresses_are_checked_too() {
    let network = Network::new();
    for url in ["http://127.0.0.1/", "http://2130706433/", "http://0x7f.1/", "http://[::1]/", "http://[::ffff:7f00:1]/"]
    {
        assert_eq!(
            name_of(network.gate().fetch(&NetRules::EveryHost, get(url), None).await),
            "PermissionDenied",
            "{url}"
        );
    }
    assert!(network.names.asked().is_empty());
}

/// The first refusal names the one option that is needed.
#[tokio::test]
async fn a_refused_address_or_port_names_the_option() {
    let network = Network::new();
    let refused = async |url: &str| {
        let error = network.gate().fetch(&NetRules::EveryHost, get(url), None).await.map(|answer| answer.status);
        error.unwrap_err().message
    };
    for (url, option) in [
        ("http://127.0.0.1/", "--allow-private-host tester=127.0.0.1"),
        ("http://127.0.0.1:9/", "--allow-private-host tester=127.0.0.1:9"),
        ("http://10.0.0.5:9/", "--allow-private-host tester=10.0.0.5:9"),
    ] {
        let message = refused(url).await;
        assert!(message.contains("non-public") && message.ends_with(option), "{url}: {message}");
    }
    let message = refused("http://169.254.169.254/").await;
    assert!(message.contains("cannot be allowed") && !message.contains("--allow"), "{message}");
    let message = refused("http://api.test:8443/").await;
    assert!(message.contains("--allow-private-host api.test:8443"), "{message}");
    assert!(message.contains("\"api.test:8443\" in permissions.net"), "{message}");
}

#[tokio::test]
async fn unrestricted_tool_reaches_the_port_that_the_operator_allowed() {
    let port = serve(Router::new().route("/", on_get(|| async { "inside" }))).await;
    let url = format!("http://api.test:{port}/");
    let network = Network::new().inside(&format!("api.test:{port}"));
    let answer = network.gate().fetch(&NetRules::EveryHost, get(url.clone()), None).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "inside");
    // A host without a port opens no other port, and a list is not extended.
    let network = Network::new().inside("api.test");
    assert_eq!(name_of(network.gate().fetch(&NetRules::EveryHost, get(url.clone()), None).await), "PermissionDenied");
    let network = Network::new().inside(&format!("api.test:{port}"));
    let other = listed(&["other.test".into()]);
    assert_eq!(name_of(network.gate().fetch(&other, get(url), None).await), "PermissionDenied");
}

#[tokio::test]
async fn port_of_the_operator_opens_no_other_port() {
    let port = serve(Router::new().route("/", on_get(|| async { "inside" }))).await;
    let network = Network::new().inside("api.test:1");
    let rules = listed(&[format!("api.test:{port}")]);
    let url = format!("http://api.test:{port}/");
    assert_eq!(name_of(network.gate().fetch(&rules, get(url), None).await), "PermissionDenied");
}

#[tokio::test]
async fn every_connection_resolves_and_checks_the_name_again() {
    let port = serve(Router::new().route("/", on_get(|| async { "inside" }))).await;
    let network = Network::new();
    network.names.set("rebind.test", vec![vec![LOOPBACK]]);
    let rules = listed(&[format!("rebind.test:{port}")]);
    let gate = network.gate();
    for _ in 0..2 {
        let url = format!("http://rebind.test:{port}/");
        assert_eq!(name_of(gate.fetch(&rules, get(url), None).await), "PermissionDenied");
    }
    assert_eq!(network.names.asked().len(), 2, "every connection resolves and checks again");
}

#[tokio::test]
async fn checked_address_is_the_one_connected_to() {
    let port = serve(Router::new().route("/", on_get(|| async { "inside" }))).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    // A second lookup between check and connect would return an address without a listener.
    network.names.set("api.test", vec![vec![LOOPBACK], vec!["127.255.255.254".parse().unwrap()]]);
    let rules = listed(&[format!("api.test:{port}")]);
    let answer = network.gate().fetch(&rules, get(format!("http://api.test:{port}/")), None).await.unwrap();
    assert_eq!(text(answer).await.unwrap(), "inside");
    assert_eq!(network.names.asked().len(), 1);
}

#[tokio::test]
async fn name_without_an_address_is_a_network_error() {
    let network = Network::new();
    assert_eq!(
        name_of(network.gate().fetch(&NetRules::EveryHost, get("http://nowhere.test/"), None).await),
        "TypeError"
    );
}

#[tokio::test]
async fn malformed_requests_are_type_errors() {
    let network = Network::new().inside("api.test");
    let rules = listed(&["api.test".into()]);
    let mut bad: Vec<FetchRequest> =
        ["", "/relative", "ftp://api.test/", "file:///etc/passwd", "http://u:p@api.test/", "http://u@api.test/"]
            .map(get)
            .into();
    bad.push(FetchRequest { method: "TRACE".into(), ..get("http://api.test/") });
    bad.push(FetchRequest { method: "bad method".into(), ..get("http://api.test/") });
    bad.push(FetchRequest { headers: vec![("bad name".into(), "x".into())], ..get("http://api.test/") });
    bad.push(FetchRequest { headers: vec![("x".into(), "a\r\nb: c".into())], ..get("http://api.test/") });
    bad.push(FetchRequest { headers: vec![("x".into(), "\u{1f600}".into())], ..get("http://api.test/") });
    for request in bad {
        let shown = format!("{request:?}");
        assert_eq!(name_of(network.gate().fetch(&rules, request, None).await), "TypeError", "{shown}");
    }
    assert_eq!(name_of(network.gate().fetch(&rules, get("http://api.test/"), Some(body_of(1, 1))).await), "TypeError");
    assert!(network.names.asked().is_empty());
}

#[tokio::test]
async fn tools_cannot_set_headers_of_the_gate() {
    let echo = |headers: HeaderMap| async move {
        let names: Vec<String> = headers.iter().map(|(n, v)| format!("{n}={}", v.to_str().unwrap_or("?"))).collect();
        names.join("\n")
    };
    let port = serve(Router::new().route("/", any(echo))).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let headers = [
        ("Host", "evil.test"),
        ("Content-Length", "999"),
        ("Connection", "x-drop"),
        ("Transfer-Encoding", "chunked"),
        ("Proxy-Authorization", "secret"),
        ("Accept-Encoding", "deflate"),
        ("Upgrade", "h2c"),
        ("TE", "trailers"),
        ("Authorization", "Bearer mine"),
        ("Cookie", "a=b"),
        ("X-Mine", "yes"),
    ];
    let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
    let request = FetchRequest { headers, ..get(format!("http://api.test:{port}/")) };
    let seen =
        text(network.gate().fetch(&listed(&[format!("api.test:{port}")]), request, None).await.unwrap()).await.unwrap();
    for mine in ["authorization=Bearer mine", "cookie=a=b", "x-mine=yes", &format!("host=api.test:{port}")] {
        assert!(seen.lines().any(|line| line == mine), "{mine} in:\n{seen}");
    }
    for gone in ["evil.test", "999", "x-drop", "chunked", "proxy-", "deflate", "h2c", "trailers"] {
        assert!(!seen.contains(gone), "{gone} in:\n{seen}");
    }
}

#[tokio::test]
async fn bodies_are_streamed_up_to_their_limits() {
    let echo = post(|request: Request| async move { Body::from_stream(request.into_body().into_data_stream()) });
    let port = serve(Router::new().route("/", echo)).await;
    let mut network = Network::new().inside(&format!("api.test:{port}"));
    network.options.max_request_bytes = 300_000;
    network.options.max_response_bytes = 200_000;
    network.options.max_replay_bytes = 1000;
    let rules = listed(&[format!("api.test:{port}")]);
    let gate = network.gate();
    let url = || format!("http://api.test:{port}/");

    let answer = gate.fetch(&rules, post_to(url()), Some(body_of(20, 10_000))).await.unwrap();
    assert_eq!(text(answer).await.unwrap().len(), 200_000);

    let answer = gate.fetch(&rules, post_to(url()), Some(body_of(21, 10_000))).await.unwrap();
    let error = text(answer).await.unwrap_err();
    assert_eq!(
        (error.name.as_str(), error.message.as_str()),
        ("ResourceExhausted", "the response body is larger than 200000 bytes")
    );

    // The server responds while it reads, so the limit can be exceeded before or within the
    // response.
    let error = match gate.fetch(&rules, post_to(url()), Some(body_of(31, 10_000))).await {
        Ok(answer) => text(answer).await.unwrap_err(),
        Err(error) => error,
    };
    assert!(matches!(error.name.as_str(), "ResourceExhausted" | "TypeError"), "{error}");
}

#[tokio::test]
async fn request_body_above_its_limit_is_never_received_whole() {
    let read_all = post(|body: Body| async move {
        body.into_data_stream().try_fold(0, |n, p| async move { Ok(n + p.len()) }).await.is_ok().to_string()
    });
    let port = serve(Router::new().route("/", read_all)).await;
    let mut network = Network::new().inside(&format!("api.test:{port}"));
    network.options.max_request_bytes = 5000;
    for replay in [1000, 100_000] {
        network.options.max_replay_bytes = replay;
        let request = post_to(format!("http://api.test:{port}/"));
        let error = network.gate().fetch(&listed(&[format!("api.test:{port}")]), request, Some(body_of(6, 1000))).await;
        let error = error.map(|answer| answer.status).unwrap_err();
        assert_eq!(
            (error.name.as_str(), error.message.as_str()),
            ("ResourceExhausted", "the request body is larger than 5000 bytes")
        );
    }
}

/// Gzip of `258 * matches` zeros or so, some 160 times smaller: one literal, then copies of it.
fn bomb(matches: usize) -> Vec<u8> {
    let mut bits: Vec<bool> = Vec::new();
    let mut put = |code: u32, length: u32| bits.extend((0..length).rev().map(|bit| code >> bit & 1 == 1));
    // Last block, fixed Huffman codes (the type's two bits come lowest first).
    put(0b1, 1);
    put(0b10, 2);
    put(0b0011_0000, 8);
    for _ in 0..matches {
        // Length 258, distance 1.
        put(0b1100_0101, 8);
        put(0, 5);
    }
    put(0, 7);
    let mut gzip = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    gzip.extend(
        bits.chunks(8).map(|byte| byte.iter().enumerate().fold(0, |all, (at, bit)| all | u8::from(*bit) << at)),
    );
    gzip
}

#[tokio::test]
async fn compressed_bomb_fails_at_the_limit_of_decoded_bytes() {
    let packed = bomb(400_000);
    assert!(packed.len() < 1_000_000, "100 MB of zeros in {} bytes", packed.len());
    let route = on_get(move || async move { ([(header::CONTENT_ENCODING, "gzip")], packed) });
    let port = serve(Router::new().route("/", route)).await;
    let network = Network::new().inside(&format!("api.test:{port}"));
    let rules = listed(&[format!("api.test:{port}")]);
    let mut answer = network.gate().fetch(&rules, get(format!("http://api.test:{port}/")), None).await.unwrap();
    assert!(!answer.headers.iter().any(|(name, _)| name == "content-encoding"), "the body is decoded");
    let mut seen = 0;
    let error = loop {
        match answer.body.try_next().await {
            Ok(piece) => seen += piece.expect("the body fails at the limit").len() as u64,
            Err(error) => break error,
        }
    };
    assert_eq!(error.name, "ResourceExhausted");
    assert!(seen > 1_000_000 && seen <= network.options.max_response_bytes, "{seen}");
}
