//! `result_search` and `result_jsonpath`.

use rcrt_breadcrumb::ErrorCode;
use rcrt_test_tenant::golden;
use serde_json::{Value, json};

use crate::fixture::{Fixture, refused, steady};
use crate::large_results::{handbook, people};

#[tokio::test]
async fn words_of_a_text_are_found_with_position_and_section() {
    let fixture = Fixture::new().await;
    let text = handbook();
    let key = fixture.keep("web_fetch", text.clone().into()).await;
    let input = json!({"key": key, "query": "\"section 4.2\" \"paragraph 17\"", "limit": 3});
    let found = fixture.call("result_search", input).await.unwrap();
    golden(env!("CARGO_MANIFEST_DIR"), "search_in_a_text.json", &steady(&found));
    assert_eq!(found["matches"][0]["section"], "Section 4.2");
    // A slice can start at this position.
    for item in found["matches"].as_array().unwrap() {
        let shown = item["text"].as_str().unwrap();
        let slice = json!({"key": key, "start": item["start"], "length": shown.chars().count()});
        let slice = fixture.call("result_slice", slice).await.unwrap();
        assert!(slice.as_str().unwrap().starts_with(shown), "{slice} {shown}");
    }
    let none = fixture.call("result_search", json!({"key": key, "query": "nowhere"})).await.unwrap();
    assert_eq!((&none["found"], &none["matches"]), (&json!(0), &json!([])));
    // In one chunk.
    let chunk = json!({"key": format!("{key}-chunk1"), "query": "\"section 6.1\""});
    assert_eq!(fixture.call("result_search", chunk).await.unwrap()["found"], 0);
    let all = fixture.call("result_search", json!({"key": key, "query": "paragraph"})).await.unwrap();
    assert_eq!(all["found"], 6 * 4 * 60);
}

#[tokio::test]
async fn values_of_a_document_are_found_with_their_path() {
    let fixture = Fixture::new().await;
    let document = people(600);
    let key = fixture.keep("registry.query", document.clone()).await;
    let found = fixture.call("result_search", json!({"key": key, "query": "\"person 477\""})).await.unwrap();
    assert_eq!(found["found"], 1);
    assert_eq!(found["matches"][0]["path"], "$.people[477].name");
    golden(env!("CARGO_MANIFEST_DIR"), "search_in_a_document.json", &steady(&found));
    // The path refers to the whole document.
    let asked =
        fixture.call("result_jsonpath", json!({"key": key, "path": found["matches"][0]["path"]})).await.unwrap();
    assert_eq!(asked["matches"][0]["value"], "Person 477");
}

/// JSON as text was not parsed before, so its numbers were not checked either.
#[tokio::test]
async fn numbers_beyond_64_bits_are_not_rounded() {
    let fixture = Fixture::new().await;
    let text = format!("{{\"n\": 123456789012345678901234567890, \"rest\": {}}}", people(600));
    let key = fixture.keep("execute_python_script", json!(text)).await;
    let failure = fixture.call("result_jsonpath", json!({"key": key, "path": "$.n"})).await.unwrap_err();
    assert!(failure.message.contains("n: is the number 1234567890123456789"), "{failure}");
}

#[tokio::test]
async fn chunked_document_is_queried_as_a_whole() {
    let fixture = Fixture::new().await;
    let document = people(600);
    let key = fixture.keep("registry.query", document.clone()).await;
    let ask =
        async |path: &str| fixture.call("result_jsonpath", json!({"key": key, "path": path, "limit": 1000})).await;
    for path in [
        "$.total",
        "$.people[0].name",
        "$.people[-1:].id",
        "$.people[?@.stars > 490].name",
        "$..tags[0]",
        "$.people[?search(@.name, '9$')].id",
        "$['source']",
        "$.nothing",
    ] {
        let expected = serde_json_path::JsonPath::parse(path).unwrap();
        let expected: Vec<&Value> = expected.query(&document).all();
        let output = ask(path).await.unwrap();
        let values: Vec<&Value> = output["matches"].as_array().unwrap().iter().map(|found| &found["value"]).collect();
        assert_eq!(values, expected, "{path}");
        assert_eq!(output["found"], expected.len());
    }
    let found = ask("$.people[?@.stars > 495]['id', 'name']").await.unwrap();
    golden(env!("CARGO_MANIFEST_DIR"), "jsonpath.json", &steady(&found));
    // Paths refer to the whole document.
    for item in found["matches"].as_array().unwrap() {
        let path = serde_json_path::JsonPath::parse(item["path"].as_str().unwrap()).unwrap();
        assert_eq!(path.query(&document).exactly_one().unwrap(), &item["value"]);
    }
    // Matches above the limit are counted.
    let first =
        fixture.call("result_jsonpath", json!({"key": key, "path": "$.people[*].id", "limit": 2})).await.unwrap();
    assert_eq!(first["found"], 600);
    assert_eq!(first["note"], "598 more matches are left out; write a narrower path");
    // A chunk is a document by itself.
    let chunk = json!({"key": format!("{key}-chunk2"), "path": "$.people[0].id"});
    assert!(fixture.call("result_jsonpath", chunk).await.unwrap()["matches"][0]["value"].as_u64().unwrap() > 0);
}

/// A large query result is stored as a large result too, and can be queried again.
#[tokio::test]
async fn large_query_result_is_stored_too() {
    let fixture = Fixture::new().await;
    let key = fixture.keep("registry.query", people(900)).await;
    let call = fixture.prepared("result_jsonpath", json!({"key": key, "path": "$.people[*]", "limit": 1000}));
    let (output, metadata) = fixture.execute(call).await.unwrap();
    assert!(output["text"].as_str().unwrap().starts_with("The result of result_jsonpath has"));
    let inner = metadata["large_result"]["key"].as_str().unwrap();
    let asked =
        fixture.call("result_jsonpath", json!({"key": inner, "path": "$.matches[899].value.id"})).await.unwrap();
    assert_eq!(asked["matches"][0]["value"], 899);
}

/// Chunks, index, positions and paths equal those of the same document as a JSON value.
#[tokio::test]
async fn json_as_text_is_split_and_queried_as_a_document() {
    let fixture = Fixture::new().await;
    for document in [people(600), people(600)["people"].clone()] {
        let text = format!("{document:#}\n");
        let handed_over = fixture.hand_over("execute_python_script", text.clone().into()).await;
        let metadata = &handed_over.metadata["large_result"];
        assert_eq!(metadata["characters"], text.chars().count());
        let table = handed_over.output["text"].as_str().unwrap();
        assert!(table.contains(&format!("has {} characters", text.chars().count())), "{table}");
        assert!(table.contains("result_jsonpath"), "{table}");
        let key = metadata["key"].as_str().unwrap();
        let same = fixture.keep("execute_python_script", document).await;
        for part in ["chunk1", "chunk2", "index"] {
            let get = async |key: &str| {
                let input = json!({"key": format!("{key}-{part}")});
                steady(&fixture.call("get_from_working_memory", input).await.unwrap())
            };
            assert_eq!(get(key).await, get(&same).await);
        }
        let input = json!({"key": key, "query": "\"person 477\""});
        let found = fixture.call("result_search", input).await.unwrap();
        let path = found["matches"][0]["path"].as_str().unwrap();
        assert!(path.ends_with("[477].name"), "{found}");
        let asked = fixture.call("result_jsonpath", json!({"key": key, "path": path})).await.unwrap();
        assert_eq!(asked["matches"][0]["value"], "Person 477");
    }
}

/// JSON below a header, as web_fetch returns it.
#[tokio::test]
async fn json_of_a_page_is_split_and_queried_as_a_document() {
    let fixture = Fixture::new().await;
    let head = "URL: https://example.com/p\nStatus: 200 OK\nContent-Type: application/json\nLength: 90000 characters";
    let text = format!("{head}\n\n--- Content ---\n{:#}", people(400));
    let key = fixture.keep("web_fetch", text.clone().into()).await;
    let asked = fixture.call("result_jsonpath", json!({"key": key, "path": "$.content.people[399].id"})).await.unwrap();
    assert_eq!(asked["matches"][0]["value"], 399);
    let asked = fixture.call("result_jsonpath", json!({"key": key, "path": "$.header"})).await.unwrap();
    assert_eq!(asked["matches"][0]["value"], head);
    let chunk = fixture.call("get_from_working_memory", json!({"key": format!("{key}-chunk2")})).await.unwrap();
    assert!(chunk["content"]["people"][0]["id"].is_u64(), "{chunk}");
    // Truncated JSON is not valid JSON.
    let key = fixture.keep("web_fetch", format!("{text}\n\n[content truncated: 1 of 2 characters]").into()).await;
    let asked = fixture.call("result_jsonpath", json!({"key": key, "path": "$.content"})).await;
    refused(asked, ErrorCode::ExecutionFailed, "is text, not JSON");
}

#[tokio::test]
async fn text_that_is_not_lossless_json_stays_text() {
    let fixture = Fixture::new().await;
    let rows = |row: &str| vec![row; 8_000].join(", ");
    for text in [
        handbook(),
        format!("{:#}\n\n{}", people(400), "and more"),
        format!("[{}", rows("{\"row\": 1}")),
        format!("[INFO] {}", "a line of a log\n".repeat(5_000)),
        vec!["{\"row\": 1}"; 10_000].join("\n"),
        format!("[{}, 123456789012345678901234567890]", rows("{\"number\": 1.5}")),
        format!("[{}, {{\"twice\": 1, \"twice\": 2}}]", rows("{\"number\": 1.5}")),
        format!("[{}]", " ".repeat(80_000)),
        format!("\"{}\"", "a text in quotes ".repeat(5_000)),
        "[".repeat(80_000),
    ] {
        let handed_over = fixture.hand_over("execute_python_script", text.clone().into()).await;
        let metadata = &handed_over.metadata["large_result"];
        let mut joined = String::new();
        for number in 1..=metadata["chunks"].as_u64().unwrap() {
            let input = json!({"key": format!("{}-chunk{number}", metadata["key"].as_str().unwrap())});
            joined += fixture.call("get_from_working_memory", input).await.unwrap().as_str().unwrap();
        }
        assert!(joined == text, "{}", &text[..20]);
    }
    let key = fixture.keep("web_fetch", handbook().into()).await;
    let asked = fixture.call("result_jsonpath", json!({"key": key, "path": "$.a"})).await;
    refused(asked, ErrorCode::ExecutionFailed, "is text, not JSON; use result_search");
}

#[tokio::test]
async fn matches_fit_the_limit_of_the_caller() {
    let fixture = Fixture::new().await;
    let long = json!({"k".repeat(3_000): "needle", "rest": "x".repeat(80_000)});
    for (document, query) in [(json!(handbook()), "paragraph"), (people(600), "person"), (long, "needle")] {
        let key = fixture.keep("registry.query", document).await;
        let ask = async |most: u64| {
            let mut call = fixture.prepared("result_search", json!({"key": key, "query": query, "limit": 50}));
            call.request.max_result_chars = Some(most);
            let (output, metadata) = fixture.execute(call).await.unwrap();
            assert!(!metadata.contains_key("large_result"), "{metadata:?}");
            output
        };
        let all = ask(60_000).await;
        let whole = all["matches"].as_array().unwrap();
        let mut before = 0;
        for most in [1_000, 2_000, 5_000, 20_000] {
            let found = ask(most).await;
            let shown = found["matches"].as_array().unwrap();
            assert!(!shown.is_empty() && shown.len() >= before && whole.starts_with(shown), "{found}");
            assert_eq!(found["found"], all["found"]);
            let characters = found.to_string().chars().count();
            assert!(shown.len() == 1 || characters <= usize::try_from(most).unwrap(), "{characters} of {most}");
            // Another match does not fit.
            if let Some(next) = whole.get(shown.len()) {
                let further = next.to_string().chars().count() + 1;
                assert!(characters + further > usize::try_from(most).unwrap(), "{characters} + {further} of {most}");
            }
            before = shown.len();
        }
    }
}

#[tokio::test]
async fn invalid_and_expensive_paths_are_refused() {
    let fixture = Fixture::new().await;
    let mut nest = json!("x".repeat(100_000));
    for depth in 0..100 {
        nest = json!({"n": nest, "d": depth});
    }
    let key = fixture.keep("query", nest).await;
    for (path, says) in [
        ("people", "path: is not a valid JSONPath (RFC 9535)"),
        ("$.people[?@.stars >]", "path: is not a valid JSONPath (RFC 9535)"),
        ("$..*..*..*..*..*..*", "path: is too expensive"),
        ("$[?count($..*) > 1]", "path: has $ in a filter"),
        ("$[?@[?@.a]]", "path: has a filter in a filter"),
        ("$[?search(@.a, @.b)]", "path: has a search whose pattern"),
    ] {
        let asked = fixture.call("result_jsonpath", json!({"key": key, "path": path})).await;
        refused(asked, ErrorCode::InvalidArguments, says);
    }
    // A document of a hundred levels can still be queried.
    let asked = fixture.call("result_jsonpath", json!({"key": key, "path": "$..d", "limit": 1000})).await.unwrap();
    assert_eq!(asked["found"], 100);
}
