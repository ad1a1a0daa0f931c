//! `web_fetch`: its output for each kind of response, and its limits.

use axum::Router;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Redirect};
use axum::routing::get;
use rcrt_breadcrumb::ErrorCode;
use rcrt_test_servers::network::serve;
use rcrt_test_tenant::golden;
use serde_json::{Value, json};

use crate::web::Web;

fn typed(kind: &'static str, body: impl Into<Vec<u8>>) -> axum::routing::MethodRouter {
    let body = body.into();
    get(move || async move { ([(header::CONTENT_TYPE, kind)], body) })
}

async fn site(router: Router) -> (Web, String) {
    let port = serve(router).await;
    (Web::new().await.inside(&format!("site.test:{port}")), format!("http://site.test:{port}"))
}

#[tokio::test]
async fn json_is_formatted_and_text_is_unchanged() {
    let json_text = "{\"b\":1.50,\"a\":[1,2,{\"deep\":null}],\"big\":123456789012345678901234567890}";
    let (web, base) = site(
        Router::new()
            .route("/data", typed("application/json; charset=utf-8", json_text))
            .route("/readme", typed("text/plain", "# Title\r\n\r\n  kept as it is\x07\r\n"))
            .route("/feed", typed("application/atom+xml", "<?xml version=\"1.0\"?><feed><title>x</title></feed>"))
            .route("/broken", typed("application/json", "{\"a\": 1, oops")),
    )
    .await;
    let data = web.text("web_fetch", json!({"url": format!("{base}/data")})).await;
    let port = base.rsplit_once(':').unwrap().1.to_owned();
    golden(env!("CARGO_MANIFEST_DIR"), "fetch-json.txt", &data.replace(&format!(":{port}"), ""));
    let readme = web.text("web_fetch", json!({"url": format!("{base}/readme")})).await;
    assert!(readme.ends_with("--- Content ---\n# Title\n\n  kept as it is\n"), "{readme:?}");
    assert!(!readme.contains("Title:"), "{readme}");
    let feed = web.text("web_fetch", json!({"url": format!("{base}/feed")})).await;
    assert!(feed.ends_with("<feed><title>x</title></feed>"), "{feed}");
    let broken = web.text("web_fetch", json!({"url": format!("{base}/broken")})).await;
    assert!(broken.ends_with("--- Content ---\n{\"a\": 1, oops"), "{broken}");
}

#[tokio::test]
async fn output_header_shows_redirects_and_errors() {
    let (web, base) = site(
        Router::new()
            .route("/old", get(|| async { Redirect::permanent("/new?x=1") }))
            .route("/new", typed("text/plain", "here"))
            .route(
                "/missing",
                get(|| async {
                    (StatusCode::NOT_FOUND, axum::response::Html("<title>Gone\n\nURL: x</title><p>no such page"))
                }),
            ),
    )
    .await;
    let output = web.run("web_fetch", json!({"url": format!("{base}/old")})).await;
    assert_eq!(output.metadata["http_status"], 200);
    let text = output.result.unwrap();
    let head = format!(
        "URL: {base}/old\nFinal URL: {base}/new?x=1\nStatus: 200 OK\nContent-Type: text/plain\nLength: 4 characters\n\n--- Content ---\nhere"
    );
    assert_eq!(text, head);
    let text = web.text("web_fetch", json!({"url": format!("{base}/missing")})).await;
    assert!(
        text.contains("\nStatus: 404 Not Found\nContent-Type: text/html\nTitle: Gone URL: x\nLength: 12 characters\n"),
        "{text}"
    );
}

#[tokio::test]
async fn long_content_is_cut_with_total_length() {
    let (web, base) = site(Router::new().route("/", typed("text/plain; charset=utf-8", "ä".repeat(60_000)))).await;
    let text = web.text("web_fetch", json!({"url": base})).await;
    assert!(text.contains("\nLength: 60000 characters\n"));
    assert!(
        text.ends_with("\n\n[content truncated: 50000 of 60000 characters; increase maxChars for more]"),
        "{}",
        &text[text.len() - 100..]
    );
    assert_eq!(text.matches('ä').count(), 50_000);
    let text = web.text("web_fetch", json!({"url": base, "maxChars": 60_000})).await;
    assert!(!text.contains("cut"));
    let text = web.text("web_fetch", json!({"url": base, "maxChars": 3})).await;
    assert!(text.contains("--- Content ---\näää\n\n[content truncated: 3 of 60000"), "{text}");
}

#[tokio::test]
async fn binary_content_is_refused_with_its_type() {
    let (web, base) = site(
        Router::new()
            .route("/pdf", typed("application/pdf", "%PDF-1.7 ..."))
            .route("/liar", typed("text/html", b"\x89PNG\r\n\x1a\n\0\0\0".to_vec()))
            .route("/nuls", typed("text/plain", b"abc\0\x01\x02".to_vec()))
            .route("/untyped", get(|| async { ([(header::CONTENT_TYPE, "")], b"PK\x03\x04rest".to_vec()) }))
            .route(
                "/empty",
                get(|| async { ([(header::CONTENT_TYPE, "image/png")], StatusCode::NO_CONTENT).into_response() }),
            ),
    )
    .await;
    for (path, kind) in [
        ("pdf", "application/pdf"),
        ("liar", "text/html, which is image/png"),
        ("nuls", "text/plain"),
        ("untyped", "application/zip"),
    ] {
        let failure = web.failure("web_fetch", json!({"url": format!("{base}/{path}")})).await;
        assert_eq!(failure.code, ErrorCode::ExecutionFailed);
        assert!(failure.message.contains(&format!("is binary ({kind}, ")), "{failure}");
        assert!(!failure.is_retryable);
        assert_eq!(failure.details.unwrap()["content_type"], kind);
    }
    let empty = web.text("web_fetch", json!({"url": format!("{base}/empty")})).await;
    assert!(empty.contains("Status: 204 No Content"), "{empty}");
}

#[tokio::test]
async fn request_is_a_plain_get() {
    let show = |method: axum::http::Method, headers: HeaderMap| async move {
        let shown: Vec<String> =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap())).collect();
        format!("{method}\n{}", shown.join("\n"))
    };
    let (web, base) = site(Router::new().route("/", axum::routing::any(show))).await;
    let text = web.text("web_fetch", json!({"url": base})).await;
    assert!(text.contains("--- Content ---\nGET\n"), "{text}");
    for sent in ["accept: text/html", "accept-encoding: gzip", "user-agent: rcrt/"] {
        assert!(text.contains(sent), "{sent} in {text}");
    }
    for kept in ["cookie", "authorization", "referer"] {
        assert!(!text.contains(kept), "{kept} in {text}");
    }
}

#[tokio::test]
async fn user_agent_is_configurable() {
    let show = |headers: HeaderMap| async move { headers["user-agent"].to_str().unwrap().to_owned() };
    let (mut web, base) = site(Router::new().route("/", get(show))).await;
    web.settings.user_agent = "Example/1.0 (+https://example.com)".into();
    for tool in ["web_fetch", "web_browse"] {
        let text = web.text(tool, json!({"url": base})).await;
        assert!(text.ends_with("\nExample/1.0 (+https://example.com)"), "{tool}: {text}");
    }
}

#[tokio::test]
async fn cells_of_a_table_are_separated_by_tabs() {
    let table =
        "<table><tr><th>Field<th>Type<th>Default</tr><tr><td>a\tb<td>x|y<td>1</tr><tr><td><td>z<td></tr></table>";
    let (web, base) = site(Router::new().route("/", typed("text/html", table))).await;
    let text = web.text("web_fetch", json!({"url": base})).await;
    assert!(text.ends_with("--- Content ---\nField\tType\tDefault\na b\tx|y\t1\n\tz"), "{text:?}");
}

#[tokio::test]
async fn arguments_are_strict_and_urls_lenient() {
    let (web, base) = site(Router::new().route("/", typed("text/plain", "hello"))).await;
    // Without a scheme it is https, which no server here supports.
    let bare = base.strip_prefix("http://").unwrap();
    let failure = web.failure("web_fetch", json!({"url": bare})).await;
    assert!(failure.code == ErrorCode::ExecutionFailed && failure.message.contains("https://site.test"), "{failure}");
    for (input, named) in [
        (json!({"url": "ftp://site.test/"}), "url: \"ftp://site.test/\" is not an http or https address"),
        (json!({"url": "file:///etc/passwd"}), "url: \"file:///etc/passwd\" is"),
        (json!({"url": "javascript:alert(1)"}), "url: \"javascript:alert(1)\" is"),
        (json!({"url": "https://user:secret@site.test/"}), "has a user name"),
        (json!({"url": "https://"}), "is not a web address"),
        (json!({"url": ""}), "is not a web address"),
        (json!({"url": "https://site.test/", "maxChars": 0}), "maxChars: is 0"),
        (json!({"url": "https://site.test/", "maxChars": 1_000_001}), "maxChars: is 1000001"),
        (json!({"url": "https://site.test/", "max_chars": 5}), "max_chars"),
        (json!({}), "url"),
        (json!({"url": 5}), "string"),
        (Value::Null, "the input"),
    ] {
        let failure = web.failure("web_fetch", input.clone()).await;
        assert_eq!(failure.code, ErrorCode::InvalidArguments, "{input}: {failure}");
        assert!(failure.message.contains(named), "{input}: {failure}");
    }
}
