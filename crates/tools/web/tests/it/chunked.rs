//! Long pages: stored in chunks in the session's working memory, truncated without a session.

use std::fmt::Write as _;

use axum::Router;
use axum::response::Html;
use axum::routing::get;
use rcrt_breadcrumb::{BreadcrumbQuery, ErrorCode, TtlType, schema_names::MEMORY_ENTRY};
use rcrt_executors::{BuiltinExecutor, Executor};
use rcrt_test_servers::network::serve;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::web::Web;

/// Twelve chapters; the last three are longer than a chunk.
fn long_page() -> String {
    let mut page = "<title>Long</title><main><h1>Long</h1>".to_owned();
    for chapter in 1..=12 {
        let paragraph = format!("<p>{}</p>", format!("Sentence of chapter {chapter}. ").repeat(40));
        let paragraphs = paragraph.repeat(if chapter > 9 { 8 } else { 1 });
        write!(page, "<h2>Chapter {chapter}</h2>{paragraphs}").unwrap();
    }
    page
}

async fn site(page: String) -> (Web, String) {
    let port = serve(Router::new().route("/a/b", get(|| async { Html(page) }))).await;
    (Web::new().await.inside(&format!("site.test:{port}")), format!("http://site.test:{port}/a/b"))
}

/// The output of a working memory tool in the session.
async fn ask(web: &Web, tool: &str, input: Value) -> Value {
    let executor = BuiltinExecutor::new().with(rcrt_memory::tools(rcrt_large_results::Settings::default()));
    executor.execute(web.call(tool, input), CancellationToken::new()).await.result.unwrap()
}

#[tokio::test]
async fn sections_are_stored_as_chunks_in_a_session() {
    let (mut web, url) = site(long_page()).await;
    web.session = Some("s1".into());
    let output = web.run("web_browse", json!({"url": url})).await;
    let text = output.result.unwrap().as_str().unwrap().to_owned();
    assert!(text.starts_with(&format!("Title: Long\nURL: {url}\n\nThe page has ")), "{text}");
    let metadata = &output.metadata["large_result"];
    let key = metadata["key"].as_str().unwrap();
    let address = key.strip_prefix("session/s1/web:site.test-").unwrap();
    assert!(address.contains("-a-b-") && !address.contains(['/', ':']), "{address}");

    // Nine short chapters are one chunk each, the first with the page's title; the long ones are
    // several.
    let rows: Vec<Vec<&str>> = text
        .lines()
        .filter(|line| line.starts_with("| ") && !line.starts_with("| #"))
        .map(|line| line.trim_matches('|').split('|').map(str::trim).collect())
        .collect();
    assert_eq!(metadata["chunks"].as_u64().unwrap(), rows.len() as u64);
    assert!(rows.len() > 12, "{text}");
    assert_eq!(rows[0][1], "Long · Chapter 1");
    assert_eq!(rows[1][1], "Chapter 2");
    let mut whole = String::new();
    for (index, row) in rows.iter().enumerate() {
        let chunk_key = format!("{key}:chunk:{}", index + 1);
        assert_eq!((row[0], row[3]), ((index + 1).to_string().as_str(), format!("`{chunk_key}`").as_str()));
        let chunk = ask(&web, "get_from_working_memory", json!({"key": chunk_key})).await;
        let chunk = chunk["value"].as_str().or(chunk.as_str()).unwrap().to_owned();
        assert_eq!(row[2], chunk.chars().count().to_string());
        assert!(chunk.chars().count() <= 4000, "{}", chunk.chars().count());
        whole += &chunk;
    }
    let sentences = 40 * 9 + 40 * 8 * 3;
    assert_eq!(whole.matches("Sentence of chapter").count(), sentences);
    // Larger sections are split at blank lines.
    assert!(!whole.contains("Sentence ofSentence"));
    let found = ask(&web, "result_search", json!({"key": key, "query": "chapter 11"})).await;
    assert!(found["found"].as_u64().unwrap() > 0, "{found}");
    let index = ask(&web, "get_from_working_memory", json!({"key": format!("{key}:index")})).await;
    assert!(index.to_string().contains("Chapter 12"), "{index}");
}

#[tokio::test]
async fn chunks_expire_after_the_configured_time() {
    let (mut web, url) = site(long_page()).await;
    web.session = Some("s1".into());
    for (minutes, seconds) in [(None, 1800), (Some(5), 300)] {
        if let Some(minutes) = minutes {
            web.settings.chunk_keep = std::time::Duration::from_mins(minutes);
        }
        let text = web.text("web_browse", json!({"url": url})).await;
        assert!(text.contains(&format!("for {} minutes", seconds / 60)), "{text}");
        let store = web.store();
        let entries = store.list(&BreadcrumbQuery::of_schema(MEMORY_ENTRY)).await.unwrap();
        assert!(entries.len() > 12);
        for entry in entries {
            let record = store.get(entry.id).await.unwrap();
            assert_eq!(record.ttl_type, Some(TtlType::Duration));
            assert_eq!(record.ttl_config.unwrap()["duration"], seconds);
        }
    }
}

#[tokio::test]
async fn pages_within_the_threshold_are_returned_whole() {
    let page = format!("<main><h1>Short</h1><p>{}</p></main>", "word ".repeat(1500));
    let (mut web, url) = site(page).await;
    for session in [None, Some("s1".to_owned())] {
        web.session = session;
        let text = web.text("web_browse", json!({"url": url})).await;
        assert_eq!(text.matches("word").count(), 1500);
    }
    web.settings.chunk_threshold = 1000;
    let text = web.text("web_browse", json!({"url": url})).await;
    assert!(text.contains(":chunk:2`"), "{text}");
}

#[tokio::test]
async fn without_a_session_long_pages_are_truncated_and_chunks_can_be_requested() {
    let (web, url) = site(long_page()).await;
    let text = web.text("web_browse", json!({"url": url})).await;
    let (head, shown) = text.split_once("\n\n").unwrap();
    let count: usize = head
        .strip_prefix(&format!("Title: Long\nURL: {url}\nNote: the page has "))
        .and_then(|rest| rest.split(' ').next())
        .and_then(|count| count.parse().ok())
        .unwrap_or_else(|| panic!("{head}"));
    assert_eq!(shown.chars().count(), 8000);
    let omitted = shown.rsplit_once("[result truncated — ").unwrap().1.strip_suffix(" chars omitted]").unwrap();
    let mut characters = 0;
    let mut sentences = 0;
    for number in 1..=count {
        let chunk = web.text("web_browse", json!({"url": url, "chunk": number})).await;
        assert!(chunk.starts_with(&format!("Title: Long\nURL: {url}\nChunk: {number} of {count}\n\n")), "{chunk}");
        sentences += chunk.matches("Sentence of chapter").count();
        characters += chunk.split_once("\n\n").unwrap().1.chars().count();
    }
    assert_eq!(sentences, 40 * 9 + 40 * 8 * 3);
    assert!(omitted.parse::<usize>().unwrap() > characters - 8000, "{omitted} of {characters}");
    let failure = web.failure("web_browse", json!({"url": url, "chunk": count + 1})).await;
    let message = format!("chunk: is {}; the page has {count}", count + 1);
    assert_eq!((failure.code, failure.message), (ErrorCode::InvalidArguments, message));
    let failure = web.failure("web_browse", json!({"url": url, "chunk": 0})).await;
    assert!(failure.message.contains("chunk: is 0"), "{failure}");
}

#[tokio::test]
async fn smaller_caller_limit_gives_less_text() {
    let (mut web, url) = site(long_page()).await;
    for session in [None, Some("s1".to_owned())] {
        web.session.clone_from(&session);
        let mut call = web.call("web_browse", json!({"url": url}));
        call.request.max_result_chars = Some(2000);
        let output = web.executor().execute(call, CancellationToken::new()).await;
        let text = output.result.unwrap().as_str().unwrap().to_owned();
        assert!(text.chars().count() <= 2000, "{session:?}: {}", text.chars().count());
        assert_eq!(session.is_some(), text.contains("more: see the outline"), "{text}");
    }
}

#[tokio::test]
async fn chunk_count_is_bounded_for_many_headings() {
    let mut page = "<main>".to_owned();
    for number in 0..3000 {
        write!(page, "<h3>Entry {number}</h3><p>It is number {number}.</p>").unwrap();
    }
    let (mut web, url) = site(page).await;
    web.session = Some("s1".into());
    let output = web.run("web_browse", json!({"url": url})).await;
    let chunks = output.metadata["large_result"]["chunks"].as_u64().unwrap();
    assert!((2..=500).contains(&chunks), "{chunks}");
}
