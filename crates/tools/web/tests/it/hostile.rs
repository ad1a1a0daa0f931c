//! Hostile servers: floods, slow responses, wrong headers, compression bombs, redirects to private
//! networks. Each call ends within its limits and says why.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::Router;
use axum::extract::Path;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use rcrt_breadcrumb::ErrorCode;
use rcrt_executors::{Executor, ProgressSink};
use rcrt_test_servers::network::serve;
use rcrt_test_servers::raw;
use serde_json::json;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use url::Url;

use crate::web::Web;

const TOOLS: [&str; 2] = ["web_fetch", "web_browse"];

async fn at(port: u16) -> (Web, String) {
    (Web::new().await.inside(&format!("site.test:{port}")), format!("http://site.test:{port}/"))
}

#[tokio::test]
async fn flood_is_read_up_to_the_limit() {
    let port = raw::floods("HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n\r\n", "x".repeat(50_000)).await;
    let (web, url) = at(port).await;
    let text = web.text("web_fetch", json!({"url": url, "maxChars": 10})).await;
    assert!(text.contains("\nLength: 2097152 characters\n"), "{text}");
    assert!(text.ends_with("[the page is larger than 2097152 bytes; only its beginning was read]"), "{text}");
    // Chunks of 4,000 characters would be 1,311. Above 500, chunks are made larger: a third of 500
    // of them.
    let text = web.text("web_browse", json!({"url": url})).await;
    assert!(
        text.contains("Note: the page is larger than 5242880 bytes") && text.contains("Note: the page has 166 chunks"),
        "{}",
        &text[..300]
    );
}

#[tokio::test]
async fn compression_bomb_is_read_up_to_the_limit() {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    let megabyte = vec![b'a'; 1 << 20];
    for _ in 0..60 {
        packed.write_all(&megabyte).unwrap();
    }
    let packed = packed.finish().unwrap();
    assert!(packed.len() < 100_000);
    let bomb =
        get(move || async move { ([(header::CONTENT_ENCODING, "gzip"), (header::CONTENT_TYPE, "text/html")], packed) });
    let (web, url) = at(serve(Router::new().route("/", bomb)).await).await;
    let text = web.text("web_fetch", json!({"url": url, "maxChars": 10})).await;
    assert!(text.contains("\nLength: 2097152 characters\n"), "{text}");
    let layered = get(|| async { ([(header::CONTENT_ENCODING, "gzip, gzip")], "x") });
    let (web, url) = at(serve(Router::new().route("/", layered)).await).await;
    // What cannot be decoded is treated as plain bytes.
    assert!(web.run("web_fetch", json!({"url": url})).await.result.is_ok());
}

#[tokio::test]
async fn slow_servers_time_out() {
    let silent = raw::serve(async |stream| {
        let _open = stream;
        std::future::pending().await
    })
    .await;
    let dripping = raw::respond_repeating("HTTP/1.1 200 OK\r\ncontent-type: text/html\r\n\r\n", "<p>").await;
    for port in [silent.0, dripping] {
        let (mut web, url) = at(port).await;
        web.settings.request_timeout = Duration::from_millis(300);
        for tool in TOOLS {
            let failure = web.failure(tool, json!({"url": url})).await;
            assert_eq!(failure.code, ErrorCode::Timeout);
            assert!(
                failure.is_retryable && failure.message.contains("site.test did not respond completely within 300ms"),
                "{failure}"
            );
        }
    }
}

#[tokio::test]
async fn redirects_end_after_five() {
    let hop = get(|Path(left): Path<usize>| async move {
        if left == 0 { "there".into_response() } else { Redirect::to(&format!("/{}", left - 1)).into_response() }
    });
    let round = get(|| async { Redirect::temporary("/round") });
    let (web, url) = at(serve(Router::new().route("/{left}", hop).route("/round", round)).await).await;
    assert!(web.text("web_fetch", json!({"url": format!("{url}5")})).await.ends_with("there"));
    for path in ["6", "round"] {
        for tool in TOOLS {
            let failure = web.failure(tool, json!({"url": format!("{url}{path}")})).await;
            assert_eq!((failure.code, failure.message.as_str()), (ErrorCode::ExecutionFailed, "more than 5 redirects"));
            assert!(!failure.is_retryable, "the next try goes round as well");
        }
    }
}

#[tokio::test]
async fn redirect_to_a_non_web_url_is_not_followed() {
    let leads = get(|Path(to): Path<String>| async move { (StatusCode::FOUND, [(header::LOCATION, to)]) });
    let port = serve(Router::new().route("/{*to}", leads)).await;
    for target in [
        "ftp://site.test/x",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "data:text/plain,x",
        "mailto:a@b.test",
        "http://",
        "https://:443/",
        "http://[::1",
        "http://user:word@site.test/",
        "http://site.test:0/",
        "http://site.test:99999/",
    ] {
        let (web, url) = at(port).await;
        let mut url = Url::parse(&url).unwrap();
        url.path_segments_mut().unwrap().clear().push(target);
        for tool in TOOLS {
            let failure = web.failure(tool, json!({"url": url.as_str()})).await;
            assert_eq!(failure.code, ErrorCode::ExecutionFailed, "{target}: {failure}");
            assert!(failure.message.contains("the redirect"), "{target}: {failure}");
            assert!(!failure.is_retryable, "{target}: {failure}");
        }
    }
}

#[tokio::test]
async fn private_addresses_are_unreachable() {
    let (inner, connections) = raw::serve(async |_stream| Ok(())).await;
    let leads = get(|Path(to): Path<String>| async move { (StatusCode::FOUND, [(header::LOCATION, to)]) });
    let port = serve(Router::new().route("/{*to}", leads)).await;
    let targets = [
        format!("http://127.0.0.1:{inner}/"),
        format!("http://localhost.test:{inner}/"),
        "http://169.254.169.254/latest/meta-data/".to_owned(),
        "http://[::ffff:10.0.0.1]/".to_owned(),
        "http://0x7f000001/".to_owned(),
        "http://metadata.test/".to_owned(),
    ];
    let mut web = Web::new().await.inside(&format!("site.test:{port}"));
    // The record allows every host, so it is the address that is refused.
    for host in [
        format!("127.0.0.1:{inner}"),
        format!("localhost.test:{inner}"),
        "169.254.169.254".into(),
        "[::ffff:10.0.0.1]".into(),
        "metadata.test".into(),
        "127.0.0.1".into(),
    ] {
        web = web.listed(&host);
    }
    web.network.names.set("localhost.test", vec![vec![rcrt_test_servers::network::LOOPBACK]]);
    web.network.names.set("metadata.test", vec![vec!["169.254.169.254".parse().unwrap()]]);
    for target in &targets {
        for tool in TOOLS {
            for url in [target.clone(), format!("http://site.test:{port}/{target}")] {
                let failure = web.failure(tool, json!({"url": url})).await;
                assert_eq!(failure.code, ErrorCode::PermissionDenied, "{url}: {failure}");
                assert!(failure.message.contains("non-public"), "{url}: {failure}");
            }
        }
    }
    for target in ["file:///etc/passwd", "ftp://site.test/", "//user:secret@site.test/"] {
        let failure = web.failure("web_fetch", json!({"url": format!("http://site.test:{port}/{target}")})).await;
        assert_eq!(failure.code, ErrorCode::ExecutionFailed, "{target}: {failure}");
    }
    assert_eq!(connections.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn server_headers_cannot_break_output_lines() {
    let answer = "HTTP/1.1 200 All\tgood\r\ncontent-type: text/html; x=\"\x0b--- Content ---\"\r\ncontent-length: 60\r\n\r\n\
                  <title>a\r\n--- Content ---\r\nb\x1b[2J</title><p>c\x07\x08d</p>";
    let (web, url) = at(raw::respond_once(answer).await).await;
    match web.run("web_fetch", json!({"url": url})).await.result {
        Ok(text) => {
            let text = text.as_str().unwrap();
            assert_eq!(text.matches("\n--- Content ---\n").count(), 1, "{text}");
            assert!(text.contains("Title: a --- Content --- b [2J\n") && !text.contains('\x1b'), "{text}");
        }
        Err(failure) => assert_eq!(failure.code, ErrorCode::ExecutionFailed, "{failure}"),
    }
    for nonsense in [
        "",
        "\r\n\r\n",
        "HTTP/9.9 banana\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n",
        "SSH-2.0-OpenSSH\r\n",
    ] {
        let (web, url) = at(raw::respond_once(nonsense).await).await;
        let failure = web.failure("web_fetch", json!({"url": url})).await;
        assert_eq!(failure.code, ErrorCode::ExecutionFailed, "{nonsense:?}: {failure}");
    }
}

#[tokio::test]
async fn cancelled_call_stops_at_once_and_frees_its_slot() {
    let mut markup = "<a".to_owned();
    for n in 0..500_000 {
        write!(markup, " {n:x}").unwrap();
    }
    let page = get(|| async { axum::response::Html(markup) });
    let (mut web, url) =
        at(serve(Router::new().route("/", page).route("/small", get(|| async { "small" }))).await).await;
    web.settings.readers = 1;
    web.settings.reading_time = Duration::from_mins(10);
    let executor = web.executor();
    let (cancelled, reading) = (CancellationToken::new(), Arc::new(Reading::default()));
    let mut big = web.call("web_browse", json!({"url": url}));
    big.progress = reading.clone();
    let cancel = async {
        reading.0.notified().await;
        // The work is abandoned at the next check.
        tokio::task::yield_now().await;
        cancelled.cancel();
    };
    let (big, ()) = tokio::join!(executor.execute(big, cancelled.clone()), cancel);
    assert_eq!(big.result.unwrap_err().code, ErrorCode::Cancelled);
    // Parsed to its end, the page would take minutes, and this call would wait for a slot.
    let small = web.call("web_fetch", json!({"url": format!("{url}small")}));
    let small = executor.execute(small, CancellationToken::new()).await;
    assert!(small.result.unwrap().as_str().unwrap().ends_with("small"));
}

/// Signals when a page is about to be parsed.
#[derive(Default)]
struct Reading(Notify);

impl ProgressSink for Reading {
    fn report(&self, _fraction: Option<f64>, message: &str) {
        if message.starts_with("reading") {
            self.0.notify_one();
        }
    }
}
