//! Saving, getting and deleting.

use rcrt_breadcrumb::{BreadcrumbQuery, ErrorCode, TtlType, schema_names::MEMORY_ENTRY};
use rcrt_test_tenant::golden;
use serde_json::{Value, json};

use crate::fixture::{Fixture, key, refused, steady};

#[tokio::test]
async fn saved_value_is_returned_unchanged() {
    let fixture = Fixture::new().await;
    for value in [
        json!("a text"),
        json!(""),
        json!(null),
        json!([1, 2.5, -3, true, null]),
        json!({"z": {"y": [{"x": "ü \u{1f600} \"quoted\"\n"}]}, "a": 12_345_678_901_234_567_890_u64}),
    ] {
        let saved = fixture.call("save_to_working_memory", json!({"key": "one", "value": value})).await.unwrap();
        assert_eq!(saved["key"], "session/s1/one");
        let (got, metadata) =
            fixture.execute(fixture.prepared("get_from_working_memory", json!({"key": "one"}))).await.unwrap();
        // Including the order of members.
        assert_eq!(got.to_string(), value.to_string());
        assert_eq!(metadata["memory"]["key"], "session/s1/one");
    }
}

#[tokio::test]
async fn plain_key_is_in_the_session_and_key_with_a_slash_is_absolute() {
    let fixture = Fixture::new().await;
    fixture.call("save_to_working_memory", json!({"key": "plan", "value": "of s1"})).await.unwrap();
    fixture.call("save_to_working_memory", json!({"key": "project/alpha/plan", "value": "of alpha"})).await.unwrap();
    fixture
        .call("save_to_working_memory", json!({"key": "plan", "namespace": "project/beta", "value": "of beta"}))
        .await
        .unwrap();

    let get = async |session: Option<&str>, input: Value| {
        let mut call = fixture.prepared("get_from_working_memory", input);
        call.request.session = session.map(str::to_owned);
        call.request.agent_id = Some(fixture.tenant.agent);
        fixture.execute(call).await.map(|(output, _)| output)
    };
    assert_eq!(get(Some("s1"), json!({"key": "plan"})).await.unwrap(), "of s1");
    assert_eq!(get(Some("s1"), json!({"key": "session/s1/plan"})).await.unwrap(), "of s1");
    refused(get(Some("s2"), json!({"key": "plan"})).await, ErrorCode::ExecutionFailed, "no entry session/s2/plan");
    assert_eq!(get(Some("s2"), json!({"key": "session/s1/plan"})).await.unwrap(), "of s1");
    assert_eq!(get(Some("s2"), json!({"key": "project/alpha/plan"})).await.unwrap(), "of alpha");
    assert_eq!(get(None, json!({"key": "plan", "namespace": "project/beta"})).await.unwrap(), "of beta");
    // A key with a slash is absolute, even if a namespace is given.
    let named = json!({"key": "project/alpha/plan", "namespace": "project/beta"});
    assert_eq!(get(None, named).await.unwrap(), "of alpha");

    // Without a session, a plain key is in the agent's namespace.
    let mut call = fixture.prepared("save_to_working_memory", json!({"key": "mine", "value": 1}));
    call.request.session = None;
    call.request.agent_id = Some(fixture.tenant.agent);
    let (saved, _) = fixture.execute(call).await.unwrap();
    assert_eq!(saved["key"], format!("agent/{}/mine", fixture.tenant.agent));
    assert_eq!(get(None, json!({"key": "mine"})).await.unwrap(), 1);
}

/// A session's id is always one name of the path.
#[tokio::test]
async fn session_does_not_contain_sessions_whose_id_has_a_slash() {
    let fixture = Fixture::new().await;
    let call = async |session: &str, tool: &str, input: Value| {
        let mut call = fixture.prepared(tool, input);
        call.request.session = Some(session.into());
        fixture.execute(call).await.unwrap().0
    };
    let mut keys = Vec::new();
    for session in ["a", "a/b", "a%2Fb", "a/b/plan"] {
        let saved = call(session, "save_to_working_memory", json!({"key": "plan", "value": session})).await;
        keys.push(saved["key"].as_str().unwrap().to_owned());
    }
    assert_eq!(keys, ["session/a/plan", "session/a%2Fb/plan", "session/a%252Fb/plan", "session/a%2Fb%2Fplan/plan"],);
    for session in ["a", "a/b", "a%2Fb", "a/b/plan"] {
        assert_eq!(call(session, "get_from_working_memory", json!({"key": "plan"})).await, session);
        let listed = call(session, "list_working_memory", json!({})).await;
        assert_eq!(listed["entries"].as_array().unwrap().len(), 1, "{session}: {listed}");
    }
    // Keys from responses work unchanged in any session.
    for (key, session) in keys.iter().zip(["a", "a/b", "a%2Fb", "a/b/plan"]) {
        assert_eq!(call("other", "get_from_working_memory", json!({"key": key})).await, session);
    }
}

#[tokio::test]
async fn second_save_replaces_value_category_and_expiry() {
    let fixture = Fixture::new().await;
    let first = json!({"key": "k", "value": 1, "category": "draft", "ttl_seconds": 600});
    let saved = fixture.call("save_to_working_memory", first).await.unwrap();
    assert_eq!(saved["replaced"], false);
    assert!(saved["expires_at"].is_string());
    let saved = fixture.call("save_to_working_memory", json!({"key": "k", "value": 2})).await.unwrap();
    assert_eq!(saved, json!({"key": "session/s1/k", "replaced": true}));

    let query = BreadcrumbQuery::of_schema(MEMORY_ENTRY);
    let records = fixture.tenant.breadcrumbs.list(&query).await.unwrap();
    assert_eq!(records.len(), 1, "one record for one key");
    let record = fixture.tenant.breadcrumbs.get(records[0].id).await.unwrap();
    assert_eq!((record.version, record.ttl, record.ttl_type), (2, None, Some(TtlType::Never)));
    assert!(!record.tags.iter().any(|tag| tag.starts_with("memory-category")), "{:?}", record.tags);
    let history = fixture.tenant.breadcrumbs.history(record.id).await.unwrap();
    assert_eq!(history[1].context["value"], 1, "the old value stays in the record's history");

    let listed = fixture.call("list_working_memory", json!({"category": "draft"})).await.unwrap();
    assert_eq!(listed["entries"], json!([]));
}

#[tokio::test]
async fn entry_expires_by_the_clock_of_the_store() {
    let fixture = Fixture::new().await;
    fixture.call("save_to_working_memory", json!({"key": "k", "value": 1, "ttl_seconds": 60})).await.unwrap();
    let query = BreadcrumbQuery::of_schema(MEMORY_ENTRY);
    let id = fixture.tenant.breadcrumbs.list(&query).await.unwrap()[0].id;
    let record = fixture.tenant.breadcrumbs.get(id).await.unwrap();
    let lives = record.ttl.unwrap() - record.updated_at;
    assert!((58..=62).contains(&lives.num_seconds()), "{lives}");
    // It has expired.
    let changes = rcrt_breadcrumb::BreadcrumbChanges {
        ttl_type: Some(TtlType::Datetime),
        ttl: Some(record.created_at - chrono::Duration::hours(1)),
        ..Default::default()
    };
    fixture.tenant.breadcrumbs.update(id, record.version, changes).await.unwrap();
    let got = fixture.call("get_from_working_memory", json!({"key": "k"})).await;
    refused(got, ErrorCode::ExecutionFailed, "or it has expired; the namespace session/s1 has no entries");
    let saved = fixture.call("save_to_working_memory", json!({"key": "k", "value": 2})).await.unwrap();
    assert_eq!(saved["replaced"], false);
}

#[tokio::test]
async fn delete_returns_whether_the_entry_existed() {
    let fixture = Fixture::new().await;
    fixture.call("save_to_working_memory", json!({"key": "a/b", "value": 1})).await.unwrap();
    let delete = async || fixture.call("delete_from_working_memory", json!({"key": "a/b"})).await.unwrap();
    assert_eq!(delete().await, json!({"key": "a/b", "deleted": true}));
    assert_eq!(delete().await, json!({"key": "a/b", "deleted": false}));
    assert_eq!(fixture.memory().get(&key("a/b")).await.unwrap(), None);
}

#[tokio::test]
async fn missing_key_is_reported_with_the_existing_keys() {
    let fixture = Fixture::new().await;
    for key in ["plan", "notes"] {
        fixture.call("save_to_working_memory", json!({"key": key, "value": 1})).await.unwrap();
    }
    let failure = fixture.call("get_from_working_memory", json!({"key": "paln"})).await.unwrap_err();
    golden(env!("CARGO_MANIFEST_DIR"), "missing_key.txt", &format!("{failure}\n"));
    assert!(!failure.is_retryable);
}

#[tokio::test]
async fn invalid_keys_and_values_are_refused_with_the_field() {
    let fixture = Fixture::new().await;
    for (input, says) in [
        (json!({"key": "a//b", "value": 1}), "key: has an empty name"),
        (json!({"key": "a/../b", "value": 1}), "key: has . or .. as a name"),
        (json!({"key": "a/", "value": 1}), "key: ends with /"),
        (json!({"key": " ", "value": 1}), "key: is empty"),
        (json!({"key": "k", "value": 1, "namespace": "a\nb"}), "namespace: has a control character"),
        (json!({"key": "k", "value": 1, "category": "a\nb"}), "category: must have"),
        (json!({"key": "k", "value": "a\u{0}b"}), "value: contains a NUL"),
        (json!({"key": "k", "value": "x".repeat(5_000_000)}), "at most 4194304"),
    ] {
        let failure = refused(fixture.call("save_to_working_memory", input).await, ErrorCode::InvalidArguments, says);
        assert!(failure.details.unwrap()["violations"][0]["field"].is_string());
    }
    // Values that a modified schema would accept.
    let mut call = fixture.prepared("save_to_working_memory", json!({"key": "k", "value": 1}));
    call.input = json!({"key": "k", "value": 1, "ttl_seconds": 0});
    refused(fixture.unchecked(call).await, ErrorCode::InvalidArguments, "ttl_seconds");
}

#[tokio::test]
async fn long_keys_are_found_by_their_hash_and_stay_distinct() {
    let fixture = Fixture::new().await;
    let long = |end: &str| format!("project/{}{end}", "k".repeat(400));
    for end in ["a", "b"] {
        fixture.call("save_to_working_memory", json!({"key": long(end), "value": end})).await.unwrap();
    }
    for end in ["a", "b"] {
        assert_eq!(fixture.call("get_from_working_memory", json!({"key": long(end)})).await.unwrap(), end);
    }
}

/// Any agent can write records; one that only resembles an entry is ignored.
#[tokio::test]
async fn invalid_entry_records_are_ignored() {
    let fixture = Fixture::new().await;
    for context in [json!({}), json!({"namespace": "session/s1", "key": "other", "value": 1}), json!({"namespace": 3})]
    {
        let record = rcrt_breadcrumb::NewBreadcrumb {
            title: "Memory: session/s1/k".into(),
            context: context.as_object().unwrap().clone(),
            tags: vec!["memory:session/s1/k".into(), "memory-in:session/s1".into(), "memory-in:session".into()],
            schema_name: Some(MEMORY_ENTRY.into()),
            ..Default::default()
        };
        fixture.tenant.breadcrumbs.create(record, None).await.unwrap();
    }
    let got = fixture.call("get_from_working_memory", json!({"key": "k"})).await;
    refused(got, ErrorCode::ExecutionFailed, "there is no entry session/s1/k");
    let listed = fixture.call("list_working_memory", json!({})).await.unwrap();
    assert_eq!(listed["entries"].as_array().unwrap().len(), 1, "{listed}");
    // A save deletes all of them.
    fixture.call("save_to_working_memory", json!({"key": "k", "value": "mine"})).await.unwrap();
    assert_eq!(fixture.call("get_from_working_memory", json!({"key": "k"})).await.unwrap(), "mine");
}

/// A tool that entries trigger must not be triggered by its own entries, nor gain rights that their
/// author lacks.
#[tokio::test]
async fn entries_have_the_chain_and_profiles_of_the_saving_call() {
    let fixture = Fixture::new().await;
    for version in 1..=2 {
        let mut call = fixture.prepared("save_to_working_memory", json!({"key": "k", "value": version}));
        call.chain = rcrt_executors::TriggerChain::default().with("watcher");
        call.profiles = rcrt_breadcrumb::Profiles::of(rcrt_breadcrumb::Profile::Subagent);
        fixture.execute(call).await.unwrap();
        let query = BreadcrumbQuery::of_schema(MEMORY_ENTRY);
        let record = fixture.tenant.breadcrumbs.list(&query).await.unwrap().remove(0);
        assert_eq!(record.version, version);
        assert!(rcrt_executors::TriggerChain::of(&record.tags, version).contains("watcher"), "{:?}", record.tags);
        assert!(record.tags.contains(&"profile:subagent".to_owned()), "{:?}", record.tags);
    }
}

#[tokio::test]
async fn responses_about_entries_match_the_golden_files() {
    let fixture = Fixture::new().await;
    let mut read = String::new();
    for (tool, input) in [
        (
            "save_to_working_memory",
            json!({"key": "plan", "value": "1. read the issue\n2. write a test", "category": "todo"}),
        ),
        ("save_to_working_memory", json!({"key": "plan", "value": "1. write a test", "category": "todo"})),
        ("save_to_working_memory", json!({"key": "limits", "value": {"left": 12}, "ttl_seconds": 600})),
        ("get_from_working_memory", json!({"key": "plan"})),
        ("list_working_memory", json!({})),
        ("search_working_memory", json!({"query": "test left"})),
        ("delete_from_working_memory", json!({"key": "plan"})),
    ] {
        let output = fixture.call(tool, input.clone()).await.unwrap();
        read += &format!("> {tool} {input}\n{}\n", steady(&output));
    }
    golden(env!("CARGO_MANIFEST_DIR"), "entries.txt", &read);
}
