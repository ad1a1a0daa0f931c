//! `web_search` against replacements for Brave (with TLS and its key) and SearXNG.

use std::collections::HashMap;
use std::io::Write as _;
use std::sync::{Arc, Mutex};

use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use axum::{Json, Router};
use rcrt_breadcrumb::ErrorCode;
use rcrt_executors::Executor;
use rcrt_test_servers::network::serve;
use rcrt_test_servers::tls;
use rcrt_test_tenant::{golden, seeded};
use rcrt_web::SearchChoice;
use serde_json::{Value, json};
use url::Url;

use crate::web::Web;

const KEY: &str = "BSA-3k9f8s7d6f5g4h3j2k1l";

type Seen = Arc<Mutex<Vec<(String, HeaderMap)>>>;

fn malformed() -> Value {
    json!({"title": ["a list"], "url": 5, "content": {}, "description": {}})
}

/// Brave's responses, by its documentation: token, limits of `q` and `count`, gzip, its error
/// format.
async fn brave(
    State(seen): State<Seen>,
    uri: Uri,
    Query(query): Query<HashMap<String, String>>,
    headers: HeaderMap,
) -> Response {
    seen.lock().unwrap().push((uri.to_string(), headers.clone()));
    let refuse = |status: u16, code: &str, detail: &str| {
        let error = json!({"id": "0193", "status": status, "detail": detail, "code": code, "meta": {"component": "authentication"}});
        let refusal = Json(json!({"type": "ErrorResponse", "error": error, "time": 1_700_000_000}));
        let limit = [
            ("x-ratelimit-limit", "1, 15000"),
            ("x-ratelimit-remaining", "0, 1000"),
            ("x-ratelimit-reset", "1, 1419704"),
        ];
        (StatusCode::from_u16(status).unwrap(), limit, refusal).into_response()
    };
    if headers.get("x-subscription-token").is_none_or(|token| token != KEY) {
        return refuse(422, "SUBSCRIPTION_TOKEN_INVALID", "The provided subscription token is invalid.");
    }
    let q = query.get("q").cloned().unwrap_or_default();
    let count: usize = query["count"].parse().unwrap();
    if q.is_empty() || q.chars().count() > 400 || q.split_whitespace().count() > 50 || count > 20 {
        return refuse(422, "VALIDATION", "Unable to validate request parameter(s)");
    }
    match q.as_str() {
        "too often" => return refuse(429, "RATE_LIMITED", "Request rate limit exceeded for plan."),
        "broken" => return (StatusCode::OK, "<html>not JSON").into_response(),
        "malformed" => {
            let results = json!([malformed(), {"title": "Good", "url": "https://good.test/", "description": "x"}, {"title": 5, "url": "https://x.test/"}]);
            return Json(json!({"web": {"results": results}})).into_response();
        }
        "all malformed" => return Json(json!({"web": {"results": [malformed(), 5]}})).into_response(),
        "no list" => return Json(json!({"web": {"results": "none"}})).into_response(),
        "nothing" => {
            return Json(json!({"query": {"original": q}, "mixed": {"type": "mixed"}, "type": "search"}))
                .into_response();
        }
        _ => {}
    }
    let mut results = vec![
        json!({"title": "SKIP LOCKED for <strong>queues</strong> &amp; more [2026]", "url": "https://example.test/skip(locked)?a=1&b=2", "is_source_local": false,
            "description": "How <strong>FOR UPDATE SKIP LOCKED</strong> lets many workers &lt;take&gt; jobs.\nSecond line.", "page_age": "2026-03-03T10:00:00",
            "age": "March 3, 2026", "profile": {"name": "Example"}, "language": "en", "family_friendly": true, "type": "search_result", "subtype": "generic",
            "meta_url": {"scheme": "https"}, "extra_snippets": ["x"]}),
        json!({"title": "", "url": "https://untitled.test/", "description": "x".repeat(2000)}),
        json!({"title": "Evil", "url": "javascript:alert(1)", "description": "dropped"}),
        json!({"title": "<script>alert(1)</script>Two\n\n3. [Faked](https://evil.test)", "url": "http://two.test/", "description": null}),
    ];
    for number in 5..40 {
        results.push(
            json!({"title": format!("Result {number}"), "url": format!("https://r{number}.test/"), "description": "…"}),
        );
    }
    let body = json!({"query": {"original": q, "more_results_available": true}, "type": "search",
        "web": {"type": "search", "results": results, "family_friendly": true}, "mixed": {"type": "mixed", "main": []}});
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(body.to_string().as_bytes()).unwrap();
    let packed = packed.finish().unwrap();
    ([(header::CONTENT_TYPE, "application/json"), (header::CONTENT_ENCODING, "gzip")], packed).into_response()
}

async fn with_brave(key: Option<&str>) -> (Web, Seen) {
    let seen = Seen::default();
    let router = Router::new().route("/res/v1/web/search", get(brave)).with_state(seen.clone());
    let port = tls::serve_router(router).await;
    let host = format!("api.search.brave.com:{port}");
    let mut web = Web::new().await.inside(&host);
    if let Some(key) = key {
        web = web.secret("BRAVE_API_KEY", key, &host);
    }
    web.settings.search = Some(SearchChoice::Brave);
    web.settings.brave_api = format!("https://{host}/");
    (web, seen)
}

#[tokio::test]
async fn brave_results_are_numbered() {
    let (web, seen) = with_brave(Some(KEY)).await;
    let output = web.run("web_search", json!({"query": "  postgres\tskip locked  "})).await;
    assert_eq!(output.metadata["provider"], "brave");
    let text = output.result.unwrap().as_str().unwrap().to_owned();
    golden(env!("CARGO_MANIFEST_DIR"), "search-brave.md", &text);
    assert_eq!(text.matches("\n1. ").count() + text.matches("\n5. ").count(), 2);
    assert!(!text.contains("\n6. "));
    let (uri, headers) = seen.lock().unwrap()[0].clone();
    assert!(uri.contains("q=postgres+skip+locked&count=5"), "{uri}");
    assert_eq!(headers["accept"], "application/json");
    let twenty = web.text("web_search", json!({"query": "x", "count": 20})).await;
    assert!(twenty.contains("\n20. "), "{twenty}");
}

#[tokio::test]
async fn count_is_clamped_and_default_is_configurable() {
    let (mut web, seen) = with_brave(Some(KEY)).await;
    web.settings.search_count = 7;
    let schema = rcrt_validate::Schema::compile(&seeded("web_search").input_schema).unwrap();
    for (count, asked) in [
        (json!(0), 1),
        (json!(-3), 1),
        (json!(1), 1),
        (json!(20), 20),
        (json!(21), 20),
        (json!(1_000_000_000_000_000_000_000.0), 20),
        (json!(null), 7),
    ] {
        let mut input = json!({"query": "x"});
        if !count.is_null() {
            input["count"] = count.clone();
        }
        assert_eq!(schema.check(&input), [], "{input}");
        let text = web.text("web_search", input).await;
        let header = if asked == 1 { "1 result".to_owned() } else { format!("{asked} results") };
        assert!(text.starts_with(&format!("{header} for \"x\":\n\n1. ")), "{text}");
        let uri = seen.lock().unwrap().pop().unwrap().0;
        assert!(uri.contains(&format!("&count={asked}&")), "{count}: {uri}");
    }
}

#[tokio::test]
async fn queries_are_cut_and_cannot_add_headers_or_parameters() {
    let (web, seen) = with_brave(Some(KEY)).await;
    for query in [
        "a\r\nX-Evil: 1\r\n\r\nGET / HTTP/1.1".to_owned(),
        "a&count=999&q=b#frag\0".to_owned(),
        "ä".repeat(5000),
        "word ".repeat(300),
        "rcrt_secret_BRAVE_API_KEY_0000".to_owned(),
    ] {
        let output = web.run("web_search", json!({"query": query})).await;
        assert!(output.result.is_ok(), "{query:?}: {:?}", output.result);
    }
    let seen = seen.lock().unwrap().clone();
    assert_eq!(seen.len(), 5);
    for (uri, headers) in &seen {
        assert!(!headers.contains_key("x-evil"));
        let url = Url::parse(&format!("https://x.test{uri}")).unwrap();
        let named: Vec<_> = url.query_pairs().map(|(name, _)| name.into_owned()).collect();
        assert_eq!(named, ["q", "count", "text_decorations", "result_filter"], "{uri}");
        assert!(url.query_pairs().any(|pair| pair == ("count".into(), "5".into())), "{uri}");
        assert!(!uri.contains(KEY));
    }
    let url = Url::parse(&format!("https://x.test{}", seen[2].0)).unwrap();
    let sent = url.query_pairs().find(|(name, _)| name == "q").unwrap().1.into_owned();
    assert_eq!(sent.chars().count(), 400);
}

#[tokio::test]
async fn brave_errors_say_what_to_do() {
    let (web, _) = with_brave(Some("a wrong key of some length")).await;
    let failure = web.failure("web_search", json!({"query": "x"})).await;
    assert_eq!(failure.code, ErrorCode::ExecutionFailed);
    assert!(failure.message.contains("422 Unprocessable Entity: SUBSCRIPTION_TOKEN_INVALID The provided"), "{failure}");
    assert!(!failure.is_retryable && !failure.message.contains("a wrong key"));

    let (web, _) = with_brave(Some(KEY)).await;
    let failure = web.failure("web_search", json!({"query": "too often"})).await;
    assert!(failure.is_retryable && failure.message.contains("RATE_LIMITED"), "{failure}");
    assert_eq!(failure.details.unwrap()["retry_after"], "1, 1419704");
    let failure = web.failure("web_search", json!({"query": "broken"})).await;
    assert!(failure.message.contains("cannot be read"), "{failure}");
    assert_eq!(web.text("web_search", json!({"query": "nothing"})).await, "No results for \"nothing\".");

    for (input, named) in [
        (json!({"query": " \n "}), "query: is empty"),
        (json!({"count": 3}), "query"),
        (json!({"query": "x", "page": 3}), "page"),
    ] {
        let failure = web.failure("web_search", input).await;
        assert_eq!(failure.code, ErrorCode::InvalidArguments);
        assert!(failure.message.contains(named), "{failure}");
    }
}

#[tokio::test]
async fn key_is_sent_to_brave_only() {
    // A key that is bound to another host is not sent.
    let (mut web, seen) = with_brave(None).await;
    web = web.secret("BRAVE_API_KEY", KEY, "other.test");
    let failure = web.failure("web_search", json!({"query": "x"})).await;
    assert_eq!(failure.code, ErrorCode::PermissionDenied, "{failure}");
    assert!(seen.lock().unwrap().is_empty());
    let (web, _) = with_brave(None).await;
    let failure = web.failure("web_search", json!({"query": "x"})).await;
    assert!(failure.code == ErrorCode::PermissionDenied && failure.message.contains("BRAVE_API_KEY"), "{failure}");
}

#[tokio::test]
async fn tool_without_an_engine_waits_and_says_why() {
    let web = Web::new().await;
    let definition = seeded("web_search");
    let waits = web.executor().missing_requirements(&definition);
    assert!(waits.len() == 1 && waits[0].contains("--search brave") && waits[0].contains("--searxng-url"), "{waits:?}");
    // It is shown alone, and after "the tool … has missing requirements:".
    assert!(waits[0].starts_with("no search engine is chosen; start") && !waits[0].contains("wait"), "{waits:?}");
    assert!(web.executor().required_secrets(&definition).is_empty());
    let failure = web.failure("web_search", json!({"query": "x"})).await;
    assert_eq!(failure.code, ErrorCode::PermissionDenied, "{failure}");

    let (web, _) = with_brave(None).await;
    assert!(web.executor().missing_requirements(&definition).is_empty());
    assert_eq!(web.executor().required_secrets(&definition), ["BRAVE_API_KEY"]);
    assert_eq!(web.executor().optional_secrets(&seeded("web_browse")), ["GITHUB_TOKEN"]);
}

/// SearXNG's `/search` with `format=json`.
async fn searxng(Query(query): Query<HashMap<String, String>>) -> Response {
    if query.get("format").is_none_or(|format| format != "json") {
        return StatusCode::FORBIDDEN.into_response();
    }
    let page: usize = query["pageno"].parse().unwrap();
    let (results, silent) = match query["q"].as_str() {
        "forbidden" => return (StatusCode::FORBIDDEN, "<!doctype html><title>403 Forbidden</title>").into_response(),
        "silent" => (Vec::new(), json!([["duckduckgo", "CAPTCHA"], ["brave", "too many requests"]])),
        "malformed" => (
            vec![
                malformed(),
                json!("text"),
                json!({"title": "Good", "url": "https://good.test/", "content": "x"}),
                json!({"title": "No date", "url": "https://date.test/", "publishedDate": 5}),
            ],
            json!([["brave", "CAPTCHA"], 5, "text", [1, null]]),
        ),
        "all malformed" => (vec![malformed(), Value::Null], json!([])),
        "no list" => return Json(json!({"results": {"a": 1}})).into_response(),
        "once" if page > 1 => return StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        _ => {
            let first = (page - 1) * 4;
            let results = (first..first + 4)
                .map(|number| {
                    json!({"url": format!("https://r{number}.test/"), "title": format!("Result {number}"), "content": "About &lt;it&gt;.",
                        "engine": "duckduckgo", "engines": ["duckduckgo", "qwant"], "positions": [1, 2], "score": 2.5, "category": "general",
                        "template": "default.html", "parsed_url": ["https", "r.test", "/", "", "", ""],
                        "publishedDate": if number == 0 { json!("2026-01-02T00:00:00") } else { Value::Null }, "thumbnail": null})
                })
                .chain([json!({"url": "https://r0.test/", "title": "Result 0 again", "content": null})])
                .collect();
            (results, json!([]))
        }
    };
    Json(json!({"query": query["q"], "number_of_results": 0, "results": results, "answers": [], "corrections": [],
        "infoboxes": [], "suggestions": [], "unresponsive_engines": silent}))
    .into_response()
}

async fn with_searxng() -> Web {
    let port = serve(Router::new().route("/searx/search", get(searxng))).await;
    let mut web = Web::new().await.unlisted(&format!("web_search=searx.test:{port}"));
    web.settings.search = Some(SearchChoice::Searxng(Url::parse(&format!("http://searx.test:{port}/searx/")).unwrap()));
    web
}

#[tokio::test]
async fn searxng_pages_are_requested_until_enough_results() {
    let web = with_searxng().await;
    let text = web.text("web_search", json!({"query": "tides", "count": 6})).await;
    golden(env!("CARGO_MANIFEST_DIR"), "search-searxng.md", &text);
    let text = web.text("web_search", json!({"query": "tides", "count": 20})).await;
    assert!(text.contains("\n12. ") && !text.contains("\n13. "), "three pages at most: {text}");
    let text = web.text("web_search", json!({"query": "once", "count": 20})).await;
    assert!(text.contains("\n4. ") && !text.contains("\n5. "), "{text}");
    assert!(web.executor().required_secrets(&seeded("web_search")).is_empty());
}

#[tokio::test]
async fn searxng_errors_say_what_to_do() {
    let web = with_searxng().await;
    let failure = web.failure("web_search", json!({"query": "forbidden"})).await;
    assert!(!failure.is_retryable && failure.message.contains("search.formats"), "{failure}");
    let failure = web.failure("web_search", json!({"query": "silent"})).await;
    assert!(failure.is_retryable, "{failure}");
    assert!(failure.message.ends_with("duckduckgo: CAPTCHA; brave: too many requests"), "{failure}");
}

/// One malformed result among many is left out. A response without any valid result is a failure.
#[tokio::test]
async fn malformed_results_are_left_out() {
    for web in [with_brave(Some(KEY)).await.0, with_searxng().await] {
        let text = web.text("web_search", json!({"query": "malformed"})).await;
        assert!(
            text.starts_with("1 result for \"malformed\":\n\n1. ")
                && text.contains("https://good.test/")
                && !text.contains("\n2. "),
            "{text}"
        );
        for query in ["all malformed", "no list"] {
            let failure = web.failure("web_search", json!({"query": query})).await;
            assert_eq!(failure.code, ErrorCode::ExecutionFailed);
            assert!(failure.is_retryable && failure.message.contains("cannot be read"), "{failure}");
        }
    }
}

#[tokio::test]
async fn private_searxng_needs_operator_permission() {
    let port = serve(Router::new().route("/search", get(searxng))).await;
    for allowed in [format!("other_tool=searx.test:{port}"), format!("web_search=searx.test:{}", port ^ 1)] {
        let mut web = Web::new().await.unlisted(&allowed);
        web.settings.search = Some(SearchChoice::Searxng(Url::parse(&format!("http://searx.test:{port}/")).unwrap()));
        let failure = web.failure("web_search", json!({"query": "tides"})).await;
        assert!(failure.code == ErrorCode::PermissionDenied && failure.message.contains("non-public"), "{failure}");
    }
}
