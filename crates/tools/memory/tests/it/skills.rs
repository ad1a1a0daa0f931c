//! Skills: saved, replaced, found and deleted, separately from guides.

use std::sync::Arc;

use rcrt_breadcrumb::{BreadcrumbQuery, ErrorCode, NewBreadcrumb, Profile, schema_names::TOOL_GUIDE};
use serde_json::{Value, json};

use crate::fixture::{Fixture, refused};

async fn save(fixture: &Fixture, name: &str, content: &str) -> Value {
    fixture.call("save_skill", json!({"name": name, "content": content})).await.unwrap()
}

#[tokio::test]
async fn skill_is_saved_replaced_listed_and_deleted() {
    let fixture = Fixture::new().await;
    assert_eq!(fixture.call("list_skills", json!({})).await.unwrap(), json!({"skills": []}));
    let first = json!({
        "name": "report", "content": "# Report\n\nFirst this.", "summary": "How it is\n done.",
        "tools": ["echo"], "resources": ["project/x", "https://example.com/"]
    });
    let saved = fixture.call("save_skill", first).await.unwrap();
    assert_eq!(saved, json!({"name": "report", "summary": "How it is done.", "replaced": false}));
    let read = fixture.call("get_skill", json!({"name": "report"})).await.unwrap();
    assert_eq!(
        read,
        json!({
            "name": "report", "summary": "How it is done.", "content": "# Report\n\nFirst this.", "tools": ["echo"],
            "resources": ["project/x", "https://example.com/"]
        })
    );
    assert_eq!(save(&fixture, "report", "Then that.").await["replaced"], true);
    save(&fixture, "another", "x").await;
    let listed = fixture.call("list_skills", json!({})).await.unwrap();
    let names: Vec<&Value> = listed["skills"].as_array().unwrap().iter().map(|skill| &skill["name"]).collect();
    assert_eq!(names, ["another", "report"]);
    let read = fixture.call("get_skill", json!({"name": "report"})).await.unwrap();
    assert_eq!((&read["content"], &read["resources"], &read["tools"]), (&json!("Then that."), &json!([]), &json!([])));
    let records = fixture.tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema(TOOL_GUIDE)).await.unwrap();
    assert_eq!(records.len(), 2, "a replaced skill is still one record");
    for deleted in [true, false] {
        let output = fixture.call("delete_skill", json!({"name": "report"})).await.unwrap();
        assert_eq!(output, json!({"name": "report", "deleted": deleted}));
    }
    refused(
        fixture.call("get_skill", json!({"name": "anothr"})).await,
        ErrorCode::InvalidArguments,
        "there is no skill \"anothr\"; did you mean another?",
    );
}

#[tokio::test]
async fn default_summary_is_the_first_words() {
    let fixture = Fixture::new().await;
    let long = format!("# Title\n\n## Part\n\n{}", "word ".repeat(30));
    for (content, summary) in [
        ("Only this.", "Only this.".to_owned()),
        ("# Only a heading", "# Only a heading".to_owned()),
        (&*long, format!("{}…", "word ".repeat(15))),
    ] {
        assert_eq!(save(&fixture, "s", content).await["summary"], summary);
    }
}

#[tokio::test]
async fn skill_cannot_replace_a_guide() {
    let fixture = Fixture::new().await;
    let context = json!({"name": "files", "title": "T", "summary": "S", "tools": ["read_file"], "content": "# Files"});
    let guide = NewBreadcrumb {
        title: "Guide: files".into(),
        context: context.as_object().unwrap().clone(),
        tags: vec!["tool:guide".into(), "guide:files".into()],
        schema_name: Some(TOOL_GUIDE.into()),
        ..NewBreadcrumb::default()
    };
    fixture.tenant.breadcrumbs.create(guide, None).await.unwrap();
    refused(
        fixture.call("save_skill", json!({"name": "files", "content": "x"})).await,
        ErrorCode::InvalidArguments,
        "is the name of a guide to tools",
    );
    let about = json!({"name": "aaa", "content": "Do as I say.", "tools": ["read_file"]});
    fixture.call("save_skill", about).await.unwrap();
    assert_eq!(fixture.call("get_tool_guide", json!({"name": "read_file"})).await.unwrap(), "# Files");
    let listed = fixture.call("list_tool_guides", json!({})).await.unwrap();
    assert_eq!(listed["guides"].as_array().unwrap().len(), 1);
    // Deleting a skill does not delete a guide.
    assert_eq!(fixture.call("delete_skill", json!({"name": "files"})).await.unwrap()["deleted"], false);
    assert_eq!(fixture.call("get_tool_guide", json!({"name": "files"})).await.unwrap(), "# Files");
}

#[tokio::test]
async fn invalid_input_is_refused_with_the_field() {
    let fixture = Fixture::new().await;
    let many: Vec<String> = (0..101).map(|number| format!("r{number}")).collect();
    for (field, value, says) in [
        ("name", json!("a b"), "name: must be a letter"),
        ("name", json!("1a"), "name: must be a letter"),
        ("name", json!("a".repeat(101)), "name: must be a letter"),
        ("content", json!(" \n"), "content: must have 1 to 200000"),
        ("content", json!("x".repeat(200_001)), "content: must have 1 to 200000"),
        ("summary", json!(" "), "summary: must have 1 to 500"),
        ("resources", json!(many), "resources: has 101 entries"),
        ("resources", json!(["a", "a"]), "resources[1]: \"a\" is listed twice"),
        ("tools", json!([""]), "tools[0]: must have 1 to 100"),
    ] {
        let mut input = json!({"name": "n", "content": "c"});
        input[field] = value;
        let failure = fixture.unchecked(fixture.prepared("save_skill", input)).await.unwrap_err();
        assert_eq!(failure.code, ErrorCode::InvalidArguments);
        assert!(failure.message.starts_with(says), "{failure}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn concurrent_saves_leave_one_record() {
    let fixture = Arc::new(Fixture::new().await);
    for round in 0..8 {
        let name = format!("raced-{round}");
        let saves = (0..6).map(|number| {
            let (fixture, name) = (fixture.clone(), name.clone());
            tokio::spawn(async move { save(&fixture, &name, &format!("By {number}.")).await })
        });
        for saved in saves.collect::<Vec<_>>() {
            saved.await.unwrap();
        }
        let records = fixture.tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema(TOOL_GUIDE)).await.unwrap();
        assert_eq!(records.len(), round + 1);
        let read = fixture.call("get_skill", json!({"name": name})).await.unwrap();
        assert!(read["content"].as_str().unwrap().starts_with("By "), "{read}");
    }
}

#[tokio::test]
async fn skill_has_the_profile_of_its_author() {
    let fixture = Fixture::new().await;
    let mut call = fixture.prepared("save_skill", json!({"name": "s", "content": "x"}));
    call.profiles.add(Profile::Subagent);
    fixture.execute(call).await.unwrap();
    let records = fixture.tenant.breadcrumbs.list(&BreadcrumbQuery::of_schema(TOOL_GUIDE)).await.unwrap();
    assert!(records[0].tags.contains(&"profile:subagent".to_owned()), "{:?}", records[0].tags);
}
