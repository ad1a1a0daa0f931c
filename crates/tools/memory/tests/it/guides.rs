//! Guides.

use std::path::Path;

use rcrt_breadcrumb::{ErrorCode, NewBreadcrumb};
use rcrt_test_tenant::golden;
use serde_json::json;

use crate::fixture::{Fixture, refused, steady};

/// Stores the shipped guides of this family.
async fn seed(fixture: &Fixture) {
    for name in ["guides", "large_results", "memory"] {
        let path = format!("../../../bootstrap-breadcrumbs/guides/{name}.json");
        let text = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
        let record: NewBreadcrumb = serde_json::from_str(&text).unwrap();
        fixture.tenant.breadcrumbs.create(record, None).await.unwrap();
    }
}

fn guide(name: &str, content: &str) -> NewBreadcrumb {
    let context = json!({"name": name, "title": "T", "summary": "S", "tools": ["their_tool"], "content": content});
    NewBreadcrumb {
        title: format!("Guide: {name}"),
        context: context.as_object().unwrap().clone(),
        tags: vec!["tool:guide".into(), format!("guide:{name}")],
        schema_name: Some("tool.guide.v1".into()),
        ..NewBreadcrumb::default()
    }
}

#[tokio::test]
async fn guides_are_listed_and_found_by_name_or_by_tool() {
    let fixture = Fixture::new().await;
    seed(&fixture).await;
    let listed = fixture.call("list_tool_guides", json!({})).await.unwrap();
    golden(env!("CARGO_MANIFEST_DIR"), "guides.json", &steady(&listed));
    let by_name = fixture.call("get_tool_guide", json!({"name": "large_results"})).await.unwrap();
    assert!(by_name.as_str().unwrap().starts_with("# Large results\n"));
    assert_eq!(fixture.call("get_tool_guide", json!({"name": "result_search"})).await.unwrap(), by_name);
    let failure = fixture.call("get_tool_guide", json!({"name": "memry"})).await.unwrap_err();
    golden(env!("CARGO_MANIFEST_DIR"), "unknown_guide.txt", &format!("{failure}\n"));
    assert_eq!(failure.details.unwrap()["guides"], json!(["guides", "large_results", "memory"]));
}

#[tokio::test]
async fn agents_can_add_guides_and_cannot_replace_them() {
    let fixture = Fixture::new().await;
    refused(
        fixture.call("get_tool_guide", json!({"name": "x"})).await,
        ErrorCode::InvalidArguments,
        "there are no guides",
    );
    let store = &fixture.tenant.breadcrumbs;
    store.create(guide("invoices", "# Old"), None).await.unwrap();
    store.create(guide("invoices", "# New"), None).await.unwrap();
    assert_eq!(fixture.call("get_tool_guide", json!({"name": "invoices"})).await.unwrap(), "# Old");
    assert_eq!(fixture.call("get_tool_guide", json!({"name": "their_tool"})).await.unwrap(), "# Old");
    let listed = fixture.call("list_tool_guides", json!({})).await.unwrap();
    assert_eq!(listed["guides"].as_array().unwrap().len(), 1);
    // Invalid guides are ignored.
    for context in [json!({}), json!({"name": 1, "content": "x"}), json!({"name": "x"})] {
        let mut record = guide("broken", "x");
        record.context = context.as_object().unwrap().clone();
        store.create(record, None).await.unwrap();
    }
    let again = fixture.call("list_tool_guides", json!({})).await.unwrap();
    assert_eq!(again, listed);
}

#[tokio::test]
async fn guides_on_several_pages_are_all_listed() {
    let fixture = Fixture::new().await;
    for number in 0..120 {
        fixture.tenant.breadcrumbs.create(guide(&format!("g{number:03}"), "x"), None).await.unwrap();
    }
    let listed = fixture.call("list_tool_guides", json!({})).await.unwrap();
    assert_eq!(listed["guides"].as_array().unwrap().len(), 120);
    assert_eq!(listed["guides"][119]["name"], "g119");
}
