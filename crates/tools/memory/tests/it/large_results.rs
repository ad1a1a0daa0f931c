//! How large results are stored and returned.

use rcrt_breadcrumb::{BreadcrumbQuery, LargeResult, LargeResultKind, TtlType, schema_names::MEMORY_ENTRY};
use rcrt_large_results::{MIN_CHUNK_CHARS, Settings, shorten};
use rcrt_test_tenant::golden;
use serde_json::{Map, Value, json};

use crate::fixture::{Fixture, steady};

/// A handbook with a known number of characters.
pub fn handbook() -> String {
    let mut text = String::new();
    for chapter in 1..=6 {
        text += &format!("# Chapter {chapter}\n\n");
        for section in 1..=4 {
            text += &format!("## Section {chapter}.{section}\n\n");
            for line in 1..=60 {
                text += &format!(
                    "Paragraph {line} of section {chapter}.{section} says what it has to say at some length.\n\n"
                );
            }
            text += &format!("| key | value |\n|---|---|\n| number | {chapter}{section} |\n\n");
        }
    }
    text
}

pub fn people(count: usize) -> Value {
    let person = |n: usize| json!({"id": n, "name": format!("Person {n}"), "tags": ["a", "b"], "stars": n * 7 % 500, "note": "x".repeat(150)});
    json!({"total": count, "source": "registry", "people": (0..count).map(person).collect::<Vec<_>>()})
}

async fn chunks(fixture: &Fixture, key: &str, count: u64) -> Vec<Value> {
    let mut chunks = Vec::new();
    for number in 1..=count {
        let input = json!({"key": format!("{key}-chunk{number}")});
        chunks.push(fixture.call("get_from_working_memory", input).await.unwrap());
    }
    chunks
}

#[tokio::test]
async fn small_result_is_returned_unchanged() {
    let fixture = Fixture::new().await;
    for output in [json!("x".repeat(64_000)), json!("ü".repeat(64_000)), json!({"a": "x".repeat(60_000)}), json!(null)]
    {
        let handed_over = fixture.hand_over("web_fetch", output.clone()).await;
        assert_eq!((handed_over.output, handed_over.metadata), (output, Map::new()));
    }
    let records = fixture.tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema(MEMORY_ENTRY)).await.unwrap();
    assert!(records.is_empty());
}

#[tokio::test]
async fn large_text_is_stored_in_chunks_in_the_session() {
    let fixture = Fixture::new().await;
    let text = handbook();
    let handed_over = fixture.hand_over("web_fetch", text.clone().into()).await;
    golden(env!("CARGO_MANIFEST_DIR"), "table_of_a_text.md", &steady(&handed_over.output["text"]));
    let metadata = &handed_over.metadata["large_result"];
    assert_eq!(metadata["characters"], text.chars().count());
    let key = metadata["key"].as_str().unwrap();
    assert!(key.starts_with("session/s1/tool-web_fetch-"), "{key}");
    let large = LargeResult::of(&handed_over.output).unwrap();
    assert_eq!((large.kind, large.truncated, large.characters), (LargeResultKind::Text, false, text.chars().count()));
    assert_eq!((large.key.as_deref(), large.parts as u64), (Some(key), metadata["chunks"].as_u64().unwrap()));
    assert_eq!(large.part_prefix, Some(format!("{key}-chunk")));
    assert!(large.expires_at.is_some());
    // Each chunk is returned whole, and together they form the text.
    let chunks = chunks(&fixture, key, metadata["chunks"].as_u64().unwrap()).await;
    let joined: String = chunks.iter().map(|chunk| chunk.as_str().unwrap()).collect();
    assert!(joined == text);
    for chunk in &chunks {
        let characters = chunk.as_str().unwrap().chars().count();
        assert!((MIN_CHUNK_CHARS..=64_000).contains(&characters), "{characters}");
        assert!(chunk.as_str().unwrap().starts_with("# Chapter"), "chunks start at the highest headings");
    }
    let index = fixture.call("get_from_working_memory", json!({"key": format!("{key}-index")})).await.unwrap();
    golden(env!("CARGO_MANIFEST_DIR"), "index_of_a_text.json", &steady(&index));
}

#[tokio::test]
async fn one_chunk_is_counted_in_the_singular() {
    let fixture = Fixture::new().await;
    let mut call = fixture.prepared("list_tool_guides", Value::Null);
    call.request.session = Some("s1".into());
    call.request.max_result_chars = Some(1000);
    let handed_over = shorten("word ".repeat(300).into(), &fixture.settings, &call.request, &fixture.memory()).await;
    assert_eq!(handed_over.metadata["large_result"]["chunks"], 1);
    let text = handed_over.output["text"].as_str().unwrap();
    assert!(text.contains("in 1 chunk") && !text.contains("1 chunks"), "{text}");
}

#[tokio::test]
async fn returned_keys_work_for_any_session_id() {
    let fixture = Fixture::new().await;
    let slashes = "/".repeat(150);
    for session in ["chat/7", "chat%2F7", "~x", " x\ny", &slashes] {
        let mut call = fixture.prepared("list_tool_guides", Value::Null);
        call.request.tool = "web_fetch".into();
        call.request.session = Some(session.into());
        let handed_over = shorten(handbook().into(), &fixture.settings, &call.request, &fixture.memory()).await;
        let metadata = &handed_over.metadata["large_result"];
        let key = metadata["key"].as_str().unwrap();
        assert!(handed_over.output["text"].as_str().unwrap().contains(&format!("KEY is \"{key}\"")), "{key}");
        let chunks = chunks(&fixture, key, metadata["chunks"].as_u64().unwrap()).await;
        let joined: String = chunks.iter().map(|chunk| chunk.as_str().unwrap()).collect();
        assert!(joined == handbook(), "{session:?}");
        let found = fixture.call("result_search", json!({"key": key, "query": "chapter"})).await.unwrap();
        assert!(found["found"].as_u64().unwrap() > 0, "{session:?}: {found}");
    }
}

#[tokio::test]
async fn large_document_is_split_along_its_structure() {
    let fixture = Fixture::new().await;
    let handed_over = fixture.hand_over("registry.query", people(600)).await;
    golden(env!("CARGO_MANIFEST_DIR"), "table_of_a_document.md", &steady(&handed_over.output["text"]));
    let metadata = &handed_over.metadata["large_result"];
    let key = metadata["key"].as_str().unwrap();
    let chunks = chunks(&fixture, key, metadata["chunks"].as_u64().unwrap()).await;
    let mut ids = Vec::new();
    for chunk in &chunks {
        assert!(chunk.to_string().chars().count() <= 64_000);
        ids.extend(chunk["people"].as_array().unwrap().iter().map(|person| person["id"].as_u64().unwrap()));
    }
    assert_eq!(ids, (0..600).collect::<Vec<_>>(), "every person once, whole, in order");
    let index = fixture.call("get_from_working_memory", json!({"key": format!("{key}-index")})).await.unwrap();
    golden(env!("CARGO_MANIFEST_DIR"), "index_of_a_document.json", &steady(&index));
}

#[tokio::test]
async fn chunks_expire_after_twenty_minutes_and_are_not_listed() {
    let fixture = Fixture::new().await;
    let key = fixture.keep("web_fetch", handbook().into()).await;
    let records = fixture.tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema(MEMORY_ENTRY)).await.unwrap();
    assert!(records.len() > 2);
    for record in &records {
        let record = fixture.tenant.breadcrumbs.get(record.id).await.unwrap();
        let lives = record.ttl.unwrap() - record.updated_at;
        assert!((1195..=1205).contains(&lives.num_seconds()), "{lives}");
        assert_eq!(record.ttl_type, Some(TtlType::Duration));
    }
    let listed = fixture.call("list_working_memory", json!({})).await.unwrap();
    let keys: Vec<&str> =
        listed["entries"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect();
    assert_eq!(keys, [format!("{key}-index")]);
    let all = fixture.call("list_working_memory", json!({"include_chunks": true})).await.unwrap();
    assert_eq!(all["entries"].as_array().unwrap().len(), records.len());
}

#[tokio::test]
async fn result_without_a_session_is_truncated() {
    let fixture = Fixture::new().await;
    for output in [json!("ü".repeat(100_000)), people(600)] {
        let mut call = fixture.prepared("list_tool_guides", Value::Null);
        call.request.session = None;
        let cut = shorten(output.clone(), &fixture.settings, &call.request, &fixture.memory()).await;
        let text = cut.output["text"].as_str().unwrap();
        assert!((63_990..=64_000).contains(&text.chars().count()));
        let whole = output.as_str().map_or_else(|| output.to_string(), str::to_owned);
        let (kept, notice) = text.split_once("\n[result truncated").unwrap();
        assert!(whole.starts_with(kept));
        let omitted = whole.chars().count() - kept.chars().count();
        assert_eq!(notice, format!(" — {omitted} chars omitted]"));
        assert_eq!(cut.metadata["large_result"]["truncated"], true);
        let large = LargeResult::of(&cut.output).unwrap();
        assert_eq!((large.truncated, large.parts, large.key, large.characters), (true, 0, None, whole.chars().count()));
        assert_eq!(large.kind == LargeResultKind::Text, output.is_string());
    }
}

#[tokio::test]
async fn table_fits_the_limit_of_the_caller() {
    let fixture = Fixture::new().await;
    for most in [1_000, 1_500, 3_000, 20_000] {
        let mut call = fixture.prepared("list_tool_guides", Value::Null);
        call.request.tool = "t".repeat(100);
        call.request.session = Some("s".repeat(150));
        call.request.max_result_chars = Some(most);
        let text = handbook().repeat(20);
        let handed_over = shorten(text.into(), &fixture.settings, &call.request, &fixture.memory()).await;
        let table = handed_over.output["text"].as_str().unwrap();
        assert!(table.chars().count() <= most as usize, "{} of {most}", table.chars().count());
        let key = handed_over.metadata["large_result"]["key"].as_str().unwrap();
        assert!(table.contains(key), "{table}");
        // A chunk is returned whole also to a caller with a lower limit, which could not read it
        // otherwise.
        let mut get = fixture.prepared("get_from_working_memory", json!({"key": format!("{key}-chunk1")}));
        get.request.max_result_chars = Some(most);
        let (chunk, metadata) = fixture.execute(get).await.unwrap();
        assert!(chunk.as_str().unwrap().chars().count() <= MIN_CHUNK_CHARS);
        assert!(!metadata.contains_key("large_result"));
        let mut get = fixture.prepared("get_from_working_memory", json!({"key": format!("{key}-index")}));
        get.request.max_result_chars = Some(most);
        let (index, metadata) = fixture.execute(get).await.unwrap();
        assert!(index["chunks"].is_array() && !metadata.contains_key("large_result"));
    }
}

/// Another attempt of a request overwrites what an earlier one left.
#[tokio::test]
async fn the_same_request_has_the_same_key() {
    let fixture = Fixture::new().await;
    let call = fixture.prepared("list_tool_guides", Value::Null);
    let mut keys = Vec::new();
    for text in ["a".repeat(200_000), "b".repeat(70_000)] {
        let kept = shorten(text.into(), &fixture.settings, &call.request, &fixture.memory()).await;
        keys.push(kept.metadata["large_result"]["key"].as_str().unwrap().to_owned());
    }
    assert_eq!(keys[0], keys[1]);
    let slice = fixture.call("result_slice", json!({"key": keys[0], "start": 69_990})).await.unwrap();
    assert_eq!(slice, "bbbbbbbbbb");
}

/// Titles that would break the table, and texts that look like markup.
#[tokio::test]
async fn table_is_valid_whatever_the_titles_are() {
    let fixture = Fixture::new().await;
    let text = format!(
        "# a | b \\| c `code` <b>\n\n{}\n\n# {}\n\n{}",
        "x ".repeat(40_000),
        "t|".repeat(300),
        "y ".repeat(40_000)
    );
    let handed_over = fixture.hand_over("web_fetch", text.into()).await;
    let table = handed_over.output["text"].as_str().unwrap();
    for line in table.lines().filter(|line| line.starts_with("| ")) {
        let bars = line.replace("\\\\", "").replace("\\|", "").matches('|').count();
        assert_eq!(bars, 4, "{line}");
    }
}

/// A value that cannot be stored is truncated, and then refused like any such output.
#[tokio::test]
async fn text_that_cannot_be_stored_is_truncated() {
    let fixture = Fixture::new().await;
    let handed_over = fixture.hand_over("web_fetch", format!("{}\0", "x".repeat(100_000)).into()).await;
    assert!(handed_over.output["text"].as_str().unwrap().ends_with("chars omitted]"));
    assert_eq!(handed_over.metadata["large_result"]["truncated"], true);
}

/// A result can be below the caller's limit and still exceed the bytes of a response.
#[tokio::test]
async fn result_larger_than_a_response_is_always_split() {
    let fixture = Fixture::new().await;
    let mut call = fixture.prepared("list_tool_guides", Value::Null);
    call.request.max_result_chars = Some(4_000_000);
    let text = "\u{1}".repeat(1_500_000);
    let settings = Settings::default();
    let kept = shorten(text.clone().into(), &settings, &call.request, &fixture.memory()).await;
    let key = kept.metadata["large_result"]["key"].as_str().unwrap();
    let mut get = fixture.prepared("get_from_working_memory", json!({"key": format!("{key}-chunk1")}));
    get.request.max_result_chars = Some(4_000_000);
    let (chunk, _) = fixture.execute(get).await.unwrap();
    assert!(text.starts_with(chunk.as_str().unwrap()) && chunk.as_str().unwrap().len() >= 500_000);
}
