//! Tools whose author announced their end.

use std::sync::Arc;

use chrono::{Days, NaiveDate, Utc};
use rcrt_breadcrumb::{ErrorCode, ResponseStatus};
use serde_json::{Value, json};

use crate::fake::Fake;
use crate::fixture::{Fixture, Running, code, code_context, native, options};

fn today() -> NaiveDate {
    Utc::now().date_naive()
}

/// Days far enough from now that midnight does not matter.
fn future() -> Value {
    json!({"since": "2020-01-31", "use": "other", "remove_after": today() + Days::new(3)})
}

fn past() -> Value {
    json!({"since": "2020-01-31", "use": "other", "remove_after": today() - Days::new(3)})
}

fn runners(fixture: &Fixture, fake: &Arc<Fake>, is_local: bool) -> Running {
    if is_local { fixture.start(fake) } else { Running::start(fixture.runner.clone(), fake, options()) }
}

#[tokio::test]
async fn a_deprecated_tool_says_so_and_a_removed_one_names_its_replacement() {
    for is_local in [false, true] {
        let (fixture, fake) = (Fixture::new().await, Fake::new());
        fake.supports_speculation.lock().unwrap().extend(["ends".to_owned(), "ended".to_owned()]);
        fixture.create(code("ends", json!({"deprecated": future()}))).await;
        fixture.create(code("ended", json!({"deprecated": past()}))).await;
        fixture.create(native("legacy", json!({"deprecated": past()}))).await;
        fixture.create(code("other", json!({}))).await;
        let runner = runners(&fixture, &fake, is_local);
        let all = ["ends", "ended", "legacy", "other"];
        let catalog = fixture.catalog(|catalog| all.iter().all(|name| catalog.find(name).is_some())).await;
        assert_eq!(json!(catalog.find("ends").unwrap().deprecated), future());
        assert_eq!(catalog.find("other").unwrap().deprecated, None);

        let response = fixture.call("ends", json!({})).await;
        assert_eq!(response.status, ResponseStatus::Success, "{response:?}");
        assert_eq!(response.metadata["deprecated"], future());
        for name in ["ended", "legacy"] {
            let response = fixture.call(name, json!({})).await;
            assert_eq!(response.error_code, Some(ErrorCode::ToolNotFound), "{is_local} {response:?}");
            assert!(response.error.as_ref().unwrap().ends_with("; use other instead"), "{response:?}");
            let details = response.error_details.unwrap();
            assert_eq!((&details["use"], &details["deprecated"]), (&json!("other"), &past()));
            assert_eq!(response.metadata["deprecated"], past());
        }
        assert!(!fixture.call("other", json!({})).await.metadata.contains_key("deprecated"));
        runner.stop().await;
    }
}

/// Neither is an older version, which announces no end.
#[tokio::test]
async fn a_removed_tool_cannot_be_called_by_version() {
    let (fixture, fake) = (Fixture::new().await, Fake::new());
    let id = fixture.create(code("echo", json!({}))).await;
    fixture.change(id, 1, code_context("echo", json!({"deprecated": past()}))).await;
    let runner = fixture.start(&fake);
    let request = fixture.ask_with("echo", json!({"version": 1})).await;
    assert_eq!(fixture.answer(request).await.error_code, Some(ErrorCode::ToolNotFound));
    // A version without the announcement brings it back.
    fixture.change(id, 2, code_context("echo", json!({}))).await;
    assert_eq!(fixture.call("echo", json!({})).await.status, ResponseStatus::Success);
    let request = fixture.ask_with("echo", json!({"version": 2})).await;
    assert_eq!(fixture.answer(request).await.error_code, Some(ErrorCode::ToolNotFound));
    runner.stop().await;
}
