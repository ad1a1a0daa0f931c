//! The API's description, and the page that shows it.

use std::collections::HashSet;

use serde_json::Value;

use crate::harness::World;

/// Every `$ref` in a value.
fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
    match value {
        Value::Object(entries) => {
            found.extend(entries.get("$ref").and_then(Value::as_str));
            entries.values().for_each(|value| references(value, found));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, found)),
        _ => {}
    }
}

#[tokio::test]
async fn the_description_is_complete() {
    let world = World::start().await;
    let document = world.get("/openapi.json", "").await.ok().json();
    assert_eq!(document["openapi"], "3.1.0");
    assert!(document["info"]["title"].is_string() && document["info"]["version"].is_string());
    let tags: HashSet<&str> =
        document["tags"].as_array().unwrap().iter().map(|tag| tag["name"].as_str().unwrap()).collect();
    let mut ids = HashSet::new();
    for (path, item) in document["paths"].as_object().unwrap() {
        for (method, operation) in item.as_object().unwrap() {
            let route = format!("{method} {path}");
            assert!(ids.insert(operation["operationId"].as_str().unwrap()), "{route}");
            assert!(tags.contains(operation["tags"][0].as_str().unwrap()), "{route}");
            assert!(!operation["summary"].as_str().unwrap().is_empty(), "{route}");
            for (status, response) in operation["responses"].as_object().unwrap() {
                assert!(response["description"].as_str().is_some_and(|text| !text.is_empty()), "{route} {status}");
            }
            let refusal = &operation["responses"]["default"]["content"]["application/problem+json"]["schema"]["$ref"];
            assert_eq!(refusal, "#/components/schemas/Problem", "{route}");
            let declared: HashSet<&str> = operation["parameters"]
                .as_array()
                .into_iter()
                .flatten()
                .filter(|parameter| parameter["in"] == "path")
                .map(|parameter| parameter["name"].as_str().unwrap())
                .collect();
            let named: HashSet<&str> =
                path.split('/').filter_map(|step| step.strip_prefix('{')?.strip_suffix('}')).collect();
            assert_eq!(declared, named, "{route}");
        }
    }
    let mut found = Vec::new();
    references(&document, &mut found);
    for reference in found {
        let pointer = reference.trim_start_matches('#');
        assert!(document.pointer(pointer).is_some(), "{reference} does not resolve");
    }
    let codes = document["x-problem-codes"].as_array().unwrap();
    assert!(codes.iter().all(|code| code["advice"].as_str().is_some_and(|advice| !advice.is_empty())));
    world.close().await;
}

#[tokio::test]
async fn every_described_query_parameter_is_accepted() {
    let world = World::start().await;
    let token = world.token(&rcrt_breadcrumb::Role::ALL).await;
    let document = world.get("/openapi.json", "").await.ok().json();
    for (path, item) in document["paths"].as_object().unwrap() {
        for parameter in item["get"]["parameters"].as_array().into_iter().flatten().filter(|one| one["in"] == "query") {
            let name = parameter["name"].as_str().unwrap();
            // An invalid value for each of them; an unknown parameter gets another message.
            let answer = world.request("GET", &format!("{path}?{name}=%00"), &token).send().await.unwrap();
            if answer.status() == 400 {
                let text = answer.text().await.unwrap();
                assert!(!text.contains("is not a parameter"), "{path} {name}: {text}");
            }
        }
    }
    world.close().await;
}

#[tokio::test]
async fn the_page_uses_no_other_host() {
    let world = World::start().await;
    let page = world.get("/docs", "").await.ok();
    assert!(page.header("content-type").starts_with("text/html"));
    assert!(page.header("content-security-policy").contains("default-src 'none'"));
    for path in ["/docs/page.css", "/docs/page.js"] {
        // Relative, so that the page works below the path of a proxy.
        assert!(page.text.contains(&format!("\"{}\"", &path[1..])));
        let part = world.get(path, "").await.ok();
        assert!(!part.text.contains("://"), "{path} names another host");
    }
    assert!(!page.text.contains("://") && page.text.contains("lang=\"en\""));
    world.close().await;
}

#[tokio::test]
async fn the_old_paths_redirect_to_the_page() {
    let world = World::start().await;
    for path in ["/swagger", "/docs/"] {
        // The client follows the redirect, so the relative URL is right.
        assert!(world.get(path, "").await.ok().header("content-type").starts_with("text/html"), "{path}");
    }
    world.close().await;
}

#[test]
fn the_committed_description_is_current() {
    let committed = include_str!("../../../../../sdk/openapi.json");
    assert!(committed == rcrt_server::api_description(), "sdk/openapi.json is outdated: run build/describe");
}
