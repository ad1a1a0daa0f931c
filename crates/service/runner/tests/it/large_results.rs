//! What a caller gets if a result is larger than its limit.

use rcrt_breadcrumb::{ErrorCode, ResponseStatus, schema_names};
use rcrt_large_results::Settings;
use rcrt_runner::RunnerOptions;
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::fixture::{Fixture, code, options};

/// Two chunks of the smallest size, and a remainder.
fn long() -> String {
    let paragraph = format!("{}\n\n", "word ".repeat(200));
    format!("# One\n\n{}# Two\n\n{}", paragraph.repeat(30), paragraph.repeat(20))
}

fn small() -> RunnerOptions {
    RunnerOptions { large_results: Settings { max_result_chars: 5_000, ..Settings::default() }, ..options() }
}

async fn fixture() -> (Fixture, std::sync::Arc<Fake>) {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let properties = json!({"text": {"type": "string", "description": "a long text"}});
    let schema = json!({"output_schema": {"type": "object", "properties": properties, "required": ["text"]}});
    fixture.create(code("reads", schema)).await;
    fixture.create(code("texts", json!({}))).await;
    fake.does("reads", |_, _| async { Ok(json!({"text": long()})) });
    fake.does("texts", |_, _| async { Ok(json!(long())) });
    (fixture, fake)
}

#[tokio::test]
async fn a_large_result_is_stored_and_the_caller_gets_an_object_with_the_index() {
    let (fixture, fake) = fixture().await;
    let runner = fixture.start_with(&fake, small());
    for (tool, kind) in [("texts", "text"), ("reads", "json")] {
        let response = fixture.answer(fixture.ask_with(tool, json!({"session": "s1"})).await).await;
        assert_eq!(response.status, ResponseStatus::Success, "{response:?}");
        let metadata = &response.metadata["large_result"];
        let key = metadata["key"].as_str().unwrap();
        assert!(key.starts_with(&format!("session/s1/tool-{tool}-")), "{key}");
        let output = response.output.as_ref().unwrap();
        assert_eq!((&output["type"], &output["kind"]), (&json!("large_result"), &json!(kind)));
        assert_eq!((&output["key"], &output["parts"]), (&metadata["key"], &metadata["chunks"]));
        let table = output["text"].as_str().unwrap();
        assert!(table.chars().count() <= 5_000 && table.contains(key), "{table}");
        let chunks = metadata["chunks"].as_u64().unwrap() as usize;
        let entries: Vec<String> = fixture
            .list(schema_names::MEMORY_ENTRY)
            .await
            .into_iter()
            .filter_map(|row| row.context?.get("key")?.as_str().map(str::to_owned))
            .filter(|key| key.contains(tool))
            .collect();
        assert!(chunks > 1 && entries.len() == chunks + 1, "{chunks} {entries:?}");
        assert!(entries.iter().any(|key| key.ends_with("-index")), "{entries:?}");
    }
    runner.stop().await;
}

#[tokio::test]
async fn without_a_session_a_result_is_truncated_and_says_how_much_is_missing() {
    let (fixture, fake) = fixture().await;
    let runner = fixture.start_with(&fake, small());
    let response = fixture.answer(fixture.ask_with("texts", json!({})).await).await;
    let output = response.output.unwrap();
    assert_eq!((&output["type"], &output["truncated"]), (&json!("large_result"), &json!(true)));
    let text = output["text"].as_str().unwrap();
    assert!(text.starts_with("# One") && text.contains("[result truncated — "), "{text}");
    assert!(text.chars().count() < 5_200);
    assert_eq!(response.metadata["large_result"]["truncated"], true);
    runner.stop().await;
}

#[tokio::test]
async fn the_limit_comes_from_the_request_then_its_model_then_the_operator() {
    let (fixture, fake) = fixture().await;
    let runner = fixture.start_with(&fake, small());
    let whole = Value::String(long());
    for (request, is_whole) in [
        (json!({}), false),
        (json!({"model": "gemini-2.5-pro"}), true),
        (json!({"model": "gpt-4"}), false),
        (json!({"max_result_chars": 100_000}), true),
        (json!({"max_result_chars": 1_000, "model": "gemini-2.5-pro"}), false),
    ] {
        let response = fixture.answer(fixture.ask_with("texts", request.clone()).await).await;
        assert_eq!(response.output.as_ref() == Some(&whole), is_whole, "{request}");
        assert_eq!(response.metadata.contains_key("large_result"), !is_whole, "{request}");
    }
    runner.stop().await;
}

/// An output that violates the schema is not stored.
#[tokio::test]
async fn the_output_is_validated_before_it_is_split() {
    let (fixture, fake) = fixture().await;
    fake.does("reads", |_, _| async { Ok(json!({"other": long()})) });
    let runner = fixture.start_with(&fake, small());
    let response = fixture.answer(fixture.ask_with("reads", json!({"session": "s1"})).await).await;
    assert_eq!(response.error_code, Some(ErrorCode::InvalidOutput));
    assert!(fixture.list(schema_names::MEMORY_ENTRY).await.is_empty());
    runner.stop().await;
}
