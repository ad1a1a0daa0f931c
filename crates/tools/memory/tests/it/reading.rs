//! `result_slice`.

use rcrt_breadcrumb::ErrorCode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, refused};
use crate::large_results::{handbook, people};

#[tokio::test]
async fn consecutive_slices_form_the_result() {
    let fixture = Fixture::new().await;
    let text = handbook().replace("has to", "hät to");
    let document = people(400);
    for (result, whole) in [(json!(text), text.clone()), (document.clone(), document.to_string())] {
        let key = fixture.keep("web_fetch", result).await;
        for length in [Some(30_001), None] {
            let (mut start, mut read) = (0, String::new());
            loop {
                let mut input = json!({"key": key, "start": start});
                if let Some(length) = length {
                    input["length"] = json!(length);
                }
                let (output, metadata) = fixture.execute(fixture.prepared("result_slice", input)).await.unwrap();
                let output = output.as_str().unwrap();
                assert!(output.chars().count() <= 64_000 && !metadata.contains_key("large_result"));
                let end = metadata["slice"]["end"].as_u64().unwrap();
                assert_eq!(metadata["slice"]["characters"], whole.chars().count());
                if end == whole.chars().count() as u64 {
                    read += output;
                    break;
                }
                let (slice, notice) = output.rsplit_once("\n[characters ").unwrap();
                assert!(notice.ends_with(&format!("the result continues at start {end}]")), "{notice}");
                read += slice;
                start = end;
            }
            assert!(read == whole);
        }
    }
}

#[tokio::test]
async fn slice_can_start_anywhere_or_count_from_the_end() {
    let fixture = Fixture::new().await;
    let text: String = (0..200_000_u32).map(|n| char::from_digit(n % 10, 10).unwrap()).collect();
    let key = fixture.keep("bash", text.clone().into()).await;
    let slice = async |input: Value| {
        let mut input = input;
        input["key"] = key.as_str().into();
        fixture.call("result_slice", input).await
    };
    assert_eq!(slice(json!({"start": 199_995})).await.unwrap(), "56789");
    assert_eq!(slice(json!({"start": -3})).await.unwrap(), "789");
    let read = slice(json!({"start": 63_998, "length": 5})).await.unwrap();
    assert_eq!(read, "89012\n[characters 63998 to 64002 of 200000; the result continues at start 64003]");
    assert!(slice(json!({"start": -900_000, "length": 3})).await.unwrap().as_str().unwrap().starts_with("012\n["));
    refused(
        slice(json!({"start": 200_000})).await,
        ErrorCode::InvalidArguments,
        "start: is past the end: the result has 200000",
    );
    // By the index, and one chunk.
    let by_index = json!({"key": format!("{key}-index"), "start": 199_995});
    assert_eq!(fixture.call("result_slice", by_index).await.unwrap(), "56789");
    let chunk = json!({"key": format!("{key}-chunk2"), "start": 0, "length": 4});
    assert!(
        fixture.call("result_slice", chunk).await.unwrap().as_str().unwrap().starts_with("4567\n[") || !text.is_empty()
    );
}

#[tokio::test]
async fn slice_fits_the_limit_of_the_caller() {
    let fixture = Fixture::new().await;
    let key = fixture.keep("bash", "x".repeat(200_000).into()).await;
    let mut call = fixture.prepared("result_slice", json!({"key": key}));
    call.request.max_result_chars = Some(1_000);
    let (output, _) = fixture.execute(call).await.unwrap();
    assert!((800..=1_000).contains(&output.as_str().unwrap().chars().count()));
    let mut call = fixture.prepared("result_slice", json!({"key": key, "length": 1_000_000}));
    call.request.max_result_chars = Some(1_000);
    let (output, metadata) = fixture.execute(call).await.unwrap();
    assert!((19_000..=20_000).contains(&output.as_str().unwrap().chars().count()));
    assert!(!metadata.contains_key("large_result"));
}

#[tokio::test]
async fn missing_results_are_reported() {
    let fixture = Fixture::new().await;
    for tool in ["result_slice", "result_search", "result_jsonpath"] {
        let mut input = json!({"key": "tool-web_fetch-0123456789ab"});
        match tool {
            "result_search" => input["query"] = json!("x"),
            "result_jsonpath" => input["path"] = json!("$"),
            _ => {}
        }
        refused(
            fixture.call(tool, input).await,
            ErrorCode::ExecutionFailed,
            "nothing is kept under \"tool-web_fetch-0123456789ab\"",
        );
    }
    // A chunk that was deleted.
    let key = fixture.keep("bash", "x".repeat(200_000).into()).await;
    fixture.call("delete_from_working_memory", json!({"key": format!("{key}-chunk2")})).await.unwrap();
    let slice = fixture.call("result_slice", json!({"key": key, "start": 70_000})).await;
    refused(slice, ErrorCode::ExecutionFailed, "-chunk2 is no longer stored");
    // Reads that do not need the chunk still work.
    assert!(fixture.call("result_slice", json!({"key": key, "length": 10})).await.is_ok());
}

/// Any entry can be read in slices.
#[tokio::test]
async fn ordinary_entry_can_be_sliced() {
    let fixture = Fixture::new().await;
    fixture.call("save_to_working_memory", json!({"key": "notes", "value": "abcdefgh"})).await.unwrap();
    assert_eq!(fixture.call("result_slice", json!({"key": "notes", "start": 2})).await.unwrap(), "cdefgh");
    fixture.call("save_to_working_memory", json!({"key": "notes", "value": ""})).await.unwrap();
    assert_eq!(fixture.call("result_slice", json!({"key": "notes"})).await.unwrap(), "");
}
