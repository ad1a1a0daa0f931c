//! Searches.

use rcrt_breadcrumb::ErrorCode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, refused};

fn keys(found: &Value) -> Vec<&str> {
    found["matches"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn words_are_found_in_keys_categories_and_values_best_first() {
    let fixture = Fixture::new().await;
    for (key, value, category) in [
        ("one", json!("The database migration failed with an error."), "incident"),
        ("two", json!({"step": "migration", "done": false, "count": 4711}), "plan"),
        ("database", json!("empty"), "plan"),
        ("four", json!(format!("{} needle {}", "hay ".repeat(30_000), "hay ".repeat(10_000))), "hay"),
        ("other/place", json!("migration"), "plan"),
    ] {
        let input = json!({"key": key, "value": value, "category": category});
        fixture.call("save_to_working_memory", input).await.unwrap();
    }
    let search = async |input: Value| fixture.call("search_working_memory", input).await.unwrap();
    let found = search(json!({"query": "DATABASE migration"})).await;
    assert_eq!(keys(&found)[0], "session/s1/one");
    assert_eq!(found["matches"][0]["terms"], 2);
    assert_eq!(found["found"], 3, "{found}");
    assert_eq!(keys(&search(json!({"query": "incident"})).await), ["session/s1/one"]);
    assert_eq!(keys(&search(json!({"query": "4711"})).await), ["session/s1/two"]);
    assert_eq!(keys(&search(json!({"query": "\"migration failed\""})).await), ["session/s1/one"]);
    assert_eq!(keys(&search(json!({"query": "\"failed migration\""})).await), Vec::<&str>::new());
    assert_eq!(keys(&search(json!({"query": "migration", "category": "plan"})).await), ["session/s1/two"]);
    assert_eq!(keys(&search(json!({"query": "migration", "namespace": "other"})).await), ["other/place"]);
    // Another form of a word, found by the store's index.
    assert_eq!(keys(&search(json!({"query": "migrations"})).await).len(), 2);
    // Far beyond the text that the index covers.
    let found = search(json!({"query": "needle"})).await;
    assert_eq!(keys(&found), ["session/s1/four"]);
    assert!(found["matches"][0]["text"][0].as_str().unwrap().contains("needle"));
    refused(
        fixture.call("search_working_memory", json!({"query": "\"\""})).await,
        ErrorCode::InvalidArguments,
        "query",
    );
}

#[tokio::test]
async fn chunks_of_large_results_are_not_found() {
    let fixture = Fixture::new().await;
    let key = fixture.keep("web_fetch", json!("needle and hay. ".repeat(10_000))).await;
    let found = fixture.call("search_working_memory", json!({"query": "needle"})).await.unwrap();
    let keys = keys(&found);
    assert_eq!(keys, [format!("{key}-index")], "the index shows how each chunk starts");
}
