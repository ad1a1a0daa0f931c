//! Long pages: chunks with an outline, or whole where the runner keeps them.

use std::fmt::Write as _;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use breadcrumb::ErrorCode;
use serde_json::json;
use test_servers::network::serve;

use crate::web::Web;

async fn long_page() -> (Web, String) {
    let mut page = "<title>Long</title><main><h1>Long</h1>".to_owned();
    for chapter in 1..=12 {
        write!(page, "<h2>Chapter {chapter}</h2><p>{}</p>", format!("Sentence of chapter {chapter}. ").repeat(400))
            .unwrap();
    }
    let port = serve(Router::new().route("/", get(|| async { Html(page) }))).await;
    (Web::new().await.inside(&format!("site.test:{port}")), format!("http://site.test:{port}/"))
}

#[tokio::test]
async fn without_a_session_it_comes_in_chunks_that_begin_at_headings() {
    let (web, url) = long_page().await;
    let first = web.text("web_browse", json!({"url": url})).await;
    let head = format!(
        "Title: Long\nURL: {url}\nChunk: 1 of 3; \"chunk\" asks for another\n\nOutline:\n1. Long; Chapter 1; Chapter 2; Chapter 3; Chapter 4\n2. Chapter 5; Chapter 6; Chapter 7; Chapter 8\n"
    );
    assert!(first.starts_with(&head), "{}", &first[..400]);
    assert!(first.chars().count() < 42_000);
    let mut seen = 0;
    for number in 1..=3 {
        let chunk = web.text("web_browse", json!({"url": url, "chunk": number})).await;
        seen += chunk.matches("Sentence of chapter").count();
        if number > 1 {
            let start =
                format!("Title: Long\nURL: {url}\nChunk: {number} of 3; \"chunk\" asks for another\n\n## Chapter ");
            assert!(chunk.starts_with(&start), "{}", &chunk[..200]);
        }
    }
    assert_eq!(seen, 12 * 400);
    let failure = web.failure("web_browse", json!({"url": url, "chunk": 4})).await;
    assert_eq!((failure.code, failure.message.as_str()), (ErrorCode::InvalidArguments, "chunk: is 4; the page has 3"));
    let failure = web.failure("web_browse", json!({"url": url, "chunk": 0})).await;
    assert!(failure.message.contains("chunk: is 0"), "{failure}");
}

#[tokio::test]
async fn a_caller_that_takes_less_gets_smaller_chunks() {
    let (web, url) = long_page().await;
    let mut call = web.call("web_browse", json!({"url": url}));
    call.request.max_result_chars = Some(12_000);
    let output = executors::Executor::execute(&web.executor(), call, tokio_util::sync::CancellationToken::new()).await;
    let text = output.result.unwrap().as_str().unwrap().to_owned();
    assert!(text.chars().count() <= 12_000, "{}", text.chars().count());
    assert!(text.contains("Chunk: 1 of "));
}

#[tokio::test]
async fn in_a_session_it_comes_whole_unless_a_chunk_is_asked_for() {
    let (mut web, url) = long_page().await;
    web.session = Some("s1".into());
    let text = web.text("web_browse", json!({"url": url})).await;
    assert!(!text.contains("Chunk:"));
    assert_eq!(text.matches("Sentence of chapter").count(), 12 * 400);
    let text = web.text("web_browse", json!({"url": url, "chunk": 2})).await;
    assert!(text.contains("Chunk: 2 of 3"));
}
