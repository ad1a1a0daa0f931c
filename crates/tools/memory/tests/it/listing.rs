//! Lists.

use std::collections::BTreeSet;

use rcrt_breadcrumb::ErrorCode;
use serde_json::{Value, json};

use crate::fixture::{Fixture, refused};

fn keys(listed: &Value) -> Vec<String> {
    listed["entries"].as_array().unwrap().iter().map(|row| row["key"].as_str().unwrap().to_owned()).collect()
}

async fn filled() -> Fixture {
    let fixture = Fixture::new().await;
    for key in ["project/a", "project/alpha/one", "project/alpha/two", "project/alphabet/x", "projects/y", "mine"] {
        let category = if key.ends_with("one") || key.ends_with('x') { "odd" } else { "even" };
        let input = json!({"key": key, "value": format!("value of {key}"), "category": category});
        fixture.call("save_to_working_memory", input).await.unwrap();
    }
    fixture
}

#[tokio::test]
async fn namespace_is_listed_with_its_nested_namespaces() {
    let fixture = filled().await;
    let list = async |input: Value| keys(&fixture.call("list_working_memory", input).await.unwrap());
    assert_eq!(list(json!({})).await, ["session/s1/mine"]);
    assert_eq!(list(json!({"namespace": "project/alpha"})).await, ["project/alpha/two", "project/alpha/one"]);
    assert_eq!(
        list(json!({"namespace": "/project/"})).await,
        ["project/alphabet/x", "project/alpha/two", "project/alpha/one", "project/a"]
    );
    assert_eq!(list(json!({"namespace": "project", "recursive": false})).await, ["project/a"]);
    assert_eq!(
        list(json!({"namespace": "project", "category": "odd"})).await,
        ["project/alphabet/x", "project/alpha/one"]
    );
    assert_eq!(list(json!({"namespace": "nothing"})).await, Vec::<String>::new());
    refused(
        fixture.call("list_working_memory", json!({"namespace": "a/../b"})).await,
        ErrorCode::InvalidArguments,
        "namespace",
    );
}

#[tokio::test]
async fn long_list_is_paginated() {
    let fixture = Fixture::new().await;
    for number in 0..40 {
        let input = json!({"key": format!("n/{number}"), "value": "v".repeat(300)});
        fixture.call("save_to_working_memory", input).await.unwrap();
    }
    let (mut seen, mut offset, mut pages) = (BTreeSet::new(), 0, 0);
    loop {
        let listed = fixture
            .call("list_working_memory", json!({"namespace": "n", "limit": 17, "offset": offset}))
            .await
            .unwrap();
        for row in listed["entries"].as_array().unwrap() {
            assert_eq!(row["characters"], 300);
            assert!(row["preview"].as_str().unwrap().chars().count() <= 100);
            assert!(seen.insert(row["key"].as_str().unwrap().to_owned()), "{row} twice");
        }
        pages += 1;
        match listed.get("next_offset") {
            Some(next) => offset = next.as_u64().unwrap(),
            None => break,
        }
    }
    assert_eq!((seen.len(), pages), (40, 3));
}
